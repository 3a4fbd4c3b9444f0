// SPDX-License-Identifier: MIT
// Breaks the table beside it: a prediction must not know what executes.
#include "gswbench/backend.h"

// SPDX-License-Identifier: MIT
// A prediction must not know what executes.
#include "gswbench/backend.h"

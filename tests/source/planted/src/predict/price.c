// SPDX-License-Identifier: MIT
// A prediction must not depend on a backend.
#include "gswbench/backend.h"

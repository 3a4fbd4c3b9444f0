// SPDX-License-Identifier: MIT
// Kernels must not know backends.
#include "gswbench/backend.h"
#include "gswbench/text.h"

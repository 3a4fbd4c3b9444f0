// SPDX-License-Identifier: MIT
// Only backends may include kernel headers.
#include "kernels/norm.h"

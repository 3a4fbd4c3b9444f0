// SPDX-License-Identifier: MIT
// Kernels' headers are for backends.
#include "kernels/norm.h"

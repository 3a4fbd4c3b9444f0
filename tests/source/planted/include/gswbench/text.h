// SPDX-License-Identifier: MIT
// May use what is above it, but its row allows it model, which is below: a circle.
#include "gswbench/model.h"

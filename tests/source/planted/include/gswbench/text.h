// SPDX-License-Identifier: MIT
// Its row allows model, which is below it: a cycle.
#include "gswbench/model.h"

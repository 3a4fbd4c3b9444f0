// SPDX-License-Identifier: MIT
// The table lets this folder include model, which is in a later row: a cycle.
#include "gswbench/model.h"

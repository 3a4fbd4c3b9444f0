// SPDX-License-Identifier: MIT
// The test cases of every op: realistic shapes, and odd ones with partial tiles.
#pragma once

#include "gswbench/op.h"

struct op_case {
    const char *name;
    // One letter per operand: f fp32, b bf16, 4 E4M3, 5 E5M2, 8 E8M0, i i32, - absent; F and B: large, some infinite; z
    // and Z: fp32 near zero, bf16 zeros; N: fp32 NaN; m and M: bf16 with mean 6, fp32 with mean 30,000.
    const char *operands;
    struct op   op;    // kind, accumulates and shape
};

extern const struct op_case op_cases[];    // [op_case_count]
extern const int            op_case_count;

// SPDX-License-Identifier: MIT
// The test cases of every op, with realistic shapes and with odd ones that have partial tiles.
#pragma once

#include "gswbench/op.h"

struct op_case {
    const char *name;
    // One letter per operand: f fp32, b BF16, 4 E4M3, 5 E5M2, 8 E8M0, i int32, - absent. Special values: F and B large,
    // some of them infinite; z fp32 near zero; Z BF16 zeros; N fp32 NaN; m BF16 with mean 6; M fp32 with mean 30,000.
    const char *operands;
    struct op   op;    // kind, accumulates and shape
};

extern const struct op_case op_cases[];    // [op_case_count]
extern const int            op_case_count;

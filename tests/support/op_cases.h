// SPDX-License-Identifier: MIT
// Every op in shapes that a model has and in odd ones, where kernels have ends to get wrong.
#ifndef GSWBENCH_TESTS_OP_CASES_H
#define GSWBENCH_TESTS_OP_CASES_H

#include "gswbench/op.h"

struct op_case {
    const char *name;
    // A letter a slot: f fp32, b bf16, 4 E4M3, 5 E5M2, i i32, - absent; F and B: large, and some infinite; z and Z:
    // fp32 next to zero, bf16 zeros; N: fp32 that is no number; m and M: bf16
    // with a mean of 6, fp32 with one of 30,000.
    const char *operands;
    struct op   op;    // kind, accumulates and shape
};

extern const struct op_case op_cases[];    // [op_case_count]
extern const int            op_case_count;

#endif

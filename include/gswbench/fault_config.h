// SPDX-License-Identifier: MIT
// Fault injection.
#pragma once

#include <stdint.h>

#include "gswbench/option.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_NAN,      // an output element of the op becomes NaN
    FAULT_FLIP,     // flips a bit of an output element
    FAULT_DELAY,    // the rank sleeps before the op
    FAULT_STOP,     // the process stops before the op (SIGSTOP)
    FAULT_SPIN,     // the rank loops forever before the op
    FAULT_SKIP,
    FAULT_SLOW,    // every compute op takes amount percent longer
};

// [fault]
struct fault_config {
    int64_t kind;    // enum fault_kind
    int64_t rank, step;
    char    at[160];    // substring of an op's name, or "tensor " and the name of a tensor
    int64_t element, bit;
    double  amount;
    int64_t repeats;
};
extern const struct option fault_options[];

// SPDX-License-Identifier: MIT
// A fault that a run makes on purpose.
#ifndef GSWBENCH_FAULT_CONFIG_H
#define GSWBENCH_FAULT_CONFIG_H

#include <stdint.h>

#include "gswbench/option.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_NAN,      // an element that the op wrote becomes no number
    FAULT_FLIP,     // a bit of it is flipped
    FAULT_DELAY,    // before the op, the rank sleeps
    FAULT_STOP,     // before the op, the process is stopped, as by SIGSTOP
    FAULT_SPIN,     // before the op, the rank loops for ever
    FAULT_SKIP,     // the op is left out
    FAULT_SLOW,     // every op that computes takes so many percent longer
};

// [fault]
struct fault_config {
    int64_t kind;    // enum fault_kind
    int64_t rank, step;
    char    at[160];    // part of an op's name; after "tensor ", of a tensor's
    int64_t element, bit;
    double  amount;
    int64_t repeats;
};
extern const struct option fault_options[];

#endif

// SPDX-License-Identifier: MIT
// What is observed beside the measured steps.
#ifndef GSWBENCH_PROFILE_H
#define GSWBENCH_PROFILE_H

#include <stdint.h>

#include "gswbench/option.h"

// [profile]
struct profile_config {
    int64_t trace_steps;
};
extern const struct option profile_options[];

#endif

// SPDX-License-Identifier: MIT
// What is observed beside the measured steps.
#ifndef GSWBENCH_PROFILE_H
#define GSWBENCH_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

// [profile]
struct profile_config {
    int64_t trace_steps;
    char    timeline[160];    // ranks: "0,8", or "all"; "": none
};
extern const struct option profile_options[];

// Whether the timeline shows traced steps of ranks that there are; and whether it shows this rank.
status profile_check(const struct profile_config *profile, int64_t world);
bool   profile_draws(const struct profile_config *profile, int64_t rank);

#endif

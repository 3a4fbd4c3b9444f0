// SPDX-License-Identifier: MIT
// Which steps and ranks a profiler collects.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

// [profile]
struct profile_config {
    int64_t start_step, stop_step;    // both inclusive; stop_step -1: same as start_step
    char    ranks[160];               // "0,8", or "all"
};
extern const struct option profile_options[];

// Check that the steps are below steps, and the ranks below world.
status profile_config_check_steps(const struct profile_config *profile, int64_t steps);
status profile_config_check_ranks(const struct profile_config *profile, int64_t world);

bool    profile_config_is_set(const struct profile_config *profile);
bool    profile_config_has_rank(const struct profile_config *profile, int64_t rank);
int64_t profile_config_last_step(const struct profile_config *profile);

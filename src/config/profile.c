// SPDX-License-Identifier: MIT
// The [profile] options.
#include "gswbench/profile.h"

// clang-format off
const struct option profile_options[] = {
    INTEGER_OPTION(profile_config, trace_steps, "2", 0, 1000, "steps after the measured ones in which each op is timed; the last of them is explained; 0: none"),
    END_OPTIONS
};
// clang-format on

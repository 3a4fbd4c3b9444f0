// SPDX-License-Identifier: MIT
// The [profile] options.
#include "gswbench/profile_config.h"

#include <inttypes.h>

#include "internal.h"

// clang-format off
const struct option profile_options[] = {
    AUTO_OPTION(profile_config, start_step, "auto", 0, 1000000, "first step that the profiler collects, counted from 0; auto: none"),
    AUTO_OPTION(profile_config, stop_step, "auto", 0, 1000000, "last step that the profiler collects; auto: start_step"),
    TEXT_OPTION(profile_config, ranks, "0", "ranks whose profiler collects these steps: 0,8 or all"),
    END_OPTIONS
};
// clang-format on

bool profile_config_is_set(const struct profile_config *profile)
{
    return profile->start_step >= 0;
}

int64_t profile_config_last_step(const struct profile_config *profile)
{
    return profile->stop_step >= 0 ? profile->stop_step : profile->start_step;
}

bool profile_config_has_rank(const struct profile_config *profile, int64_t rank)
{
    return rank_list_has(profile->ranks, rank);
}

status profile_config_check_steps(const struct profile_config *profile, int64_t steps)
{
    int64_t last = profile_config_last_step(profile);
    if (!profile_config_is_set(profile)) {
        return last < 0
                   ? OK
                   : fail("[profile] stop_step = %" PRId64 " has no effect without start_step: set start_step", last);
    }
    if (last < profile->start_step) {
        return fail("[profile] stop_step = %" PRId64 " is before start_step = %" PRId64
                    ": set stop_step to start_step or later",
                    last, profile->start_step);
    }
    if (last >= steps) {
        return fail("[profile] %s = %" PRId64 ": [run] steps = %" PRId64 " has steps 0 to %" PRId64
                    ": use one of these, or raise steps",
                    profile->stop_step >= 0 ? "stop_step" : "start_step", last, steps, steps - 1);
    }
    return OK;
}

status profile_config_check_ranks(const struct profile_config *profile, int64_t world)
{
    if (profile_config_is_set(profile) && profile->ranks[0] == '\0') {
        return fail("[profile] ranks is empty: use a list such as 0,8, or all");
    }
    return rank_list_check("[profile] ranks", profile->ranks, world);
}

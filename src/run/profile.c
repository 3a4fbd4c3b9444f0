// SPDX-License-Identifier: MIT
// Profiler support: NVTX ranges for ops, and the steps to collect.
#include <inttypes.h>
#include <stdio.h>

#include "gswbench/text.h"
#include "internal.h"

void profile_open(struct steps *steps)
{
    steps->ranges = ranges_open(steps->plan, step_can_capture(steps->step));
    if (steps->ranges != NULL) {
        steps->watch = (struct step_watch){.begin = ranges_begin_op, .end = ranges_end_op, .state = steps->ranges};
        step_set_watch(steps->step, &steps->watch);
    }
}

void profile_close(struct steps *steps)
{
    if (steps->ranges != NULL) {
        step_set_watch(steps->step, NULL);
        ranges_close(steps->ranges);
        steps->ranges = NULL;
    }
}

// The NVTX range serves profilers that collect by range, also without a device.
static void collect(const struct steps *steps, bool is_on, int64_t step)
{
    struct backend *backend = steps->backend;
    if (!is_on) {
        ranges_end(steps->ranges);
    }
    if (backend->ops->profile != NULL) {
        backend->ops->profile(backend, is_on);
    }
    if (is_on) {
        ranges_begin(steps->ranges, RANGE_PROFILE, step);
    }
}

void profile_begin(const struct steps *steps, int64_t step)
{
    const struct profile_config *profile = &steps->benchmark->job.config.profile;
    if (step == profile->start_step && profile_config_has_rank(profile, steps->comm->topology.rank)) {
        collect(steps, true, step);
    }
}

void profile_end(const struct steps *steps, int64_t step, bool is_stopped)
{
    const struct profile_config *profile = &steps->benchmark->job.config.profile;
    int64_t                      last    = profile_config_last_step(profile);
    bool                         is_last = step == last || (is_stopped && step < last && step >= profile->start_step);
    if (profile_config_is_set(profile) && is_last && profile_config_has_rank(profile, steps->comm->topology.rank)) {
        collect(steps, false, step);
    }
}

void profile_check(struct result *result, const struct profile_config *profile)
{
    if (!profile_config_is_set(profile)) {
        return;
    }
    int64_t              last   = profile_config_last_step(profile);
    struct result_reason reason = {
        .verdict = VERDICT_DEGRADED, .id = RESULT_PROFILED, .rank = -1, .step = profile->start_step};
    snprintf(reason.message, sizeof(reason.message),
             "profilers collect steps %" PRId64 " to %" PRId64
             " of ranks %.100s: step times are not those of a normal run",
             profile->start_step, last, profile->ranks);
    result_add_reason(result, &reason);
}

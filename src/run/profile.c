// SPDX-License-Identifier: MIT
// Profiler support: NVTX ranges for ops, and the steps to collect.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

void profile_open(struct steps *steps)
{
    steps->ranges = ranges_open(steps->plan, step_can_capture(steps->step));
    profile_watch(steps, true);
}

void profile_advise(const struct profile_config *profile)
{
    if (profile_config_is_set(profile) && getenv("NSYS_PROFILING_SESSION_ID") == NULL) {
        printf("# profile steps %" PRId64 " to %" PRId64 ": no profiler is attached. After mpirun or srun, write:\n"
               "#   nsys profile -t cuda,nvtx -s none -c cudaProfilerApi --capture-range-end=stop gswbench ...\n",
               profile->start_step, profile_config_last_step(profile));
    }
}

void profile_watch(const struct steps *steps, bool is_on)
{
    const struct step_watch watch = {ranges_begin_op, ranges_end_op, steps->ranges};
    step_set_watch(steps->step, is_on && steps->ranges != NULL ? &watch : NULL);
}

void profile_close(struct steps *steps)
{
    if (steps->ranges != NULL) {
        profile_watch(steps, false);
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

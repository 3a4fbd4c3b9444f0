// SPDX-License-Identifier: MIT
// Which steps are repeated: all, or the first, which a device does cold, and the last, which it does hot.
#include "internal.h"

static bool is_repeated(const struct steps *steps, int64_t index)
{
    switch ((enum run_verify)steps->benchmark->job.config.run.verify) {
    case VERIFY_FULL:
        return true;
    case VERIFY_QUICK:
        return index == 0 || index == steps->result->planned_steps - 1;
    case VERIFY_OFF:
        return false;
    }
    return false;
}

bool validation_of_transfers(struct steps *steps, int64_t step)
{
    if (steps->validation == NULL || steps->benchmark->job.config.run.verify == VERIFY_OFF) {
        return true;
    }
    fault_begin(steps, step, step >= 0);
    bool is_right = validation_examine(steps->validation, step);
    fault_end(steps);
    return is_right;
}

status validation_start(struct steps *steps, int64_t index)
{
    if (steps->validation == NULL) {
        return OK;
    }
    return place_agree(steps->comm, validation_begin(steps->validation, index, is_repeated(steps, index)));
}

bool validation_end(struct steps *steps, int64_t index, bool is_finite)
{
    bool is_right = true;
    if (steps->validation == NULL || (is_finite && !is_repeated(steps, index))) {
        return true;
    }
    step_set_watch(steps->step, NULL);    // a profiler sees each step once
    steps_enter(steps, WATCH_STEP, index);
    fault_begin(steps, index, true);
    if (is_finite) {
        is_right = validation_repeat(steps->validation, index);
    } else {
        validation_find(steps->validation, index);
        is_right = false;
    }
    fault_end(steps);
    steps_enter(steps, WATCH_BETWEEN, index);
    step_set_watch(steps->step, steps->ranges != NULL ? &steps->watch : NULL);
    return is_right;
}

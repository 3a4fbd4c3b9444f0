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

// What is run beside the steps is not shown to profilers.
static void begin_beside(struct steps *steps, int64_t step, bool is_repetition)
{
    step_set_watch(steps->step, NULL);
    fault_begin(steps, step, is_repetition);
}

static void end_beside(struct steps *steps)
{
    fault_end(steps);
    step_set_watch(steps->step, steps->ranges != NULL ? &steps->watch : NULL);
}

bool validation_of_parts(struct steps *steps, int64_t step)
{
    if (steps->validation == NULL || steps->benchmark->job.config.run.verify == VERIFY_OFF) {
        return true;
    }
    begin_beside(steps, step, step >= 0);
    bool has_ops = step < 0 || steps->benchmark->job.config.run.verify == VERIFY_FULL;
    bool is_right =
        (!has_ops || validation_examine_ops(steps->validation, step)) && validation_examine(steps->validation, step);
    end_beside(steps);
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
    steps_enter(steps, WATCH_STEP, index);
    begin_beside(steps, index, true);
    if (is_finite) {
        is_right = validation_repeat(steps->validation, index);
    } else {
        validation_find(steps->validation, index);
        is_right = false;
    }
    end_beside(steps);
    steps_enter(steps, WATCH_BETWEEN, index);
    return is_right;
}

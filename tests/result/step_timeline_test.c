// SPDX-License-Identifier: MIT
// Tests memory use and pipeline actions over the timeline of a step, against the plan's live bytes and the pipeline
// schedule.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/result.h"
#include "gswbench/schedule.h"
#include "layouts.h"

// Returns op times of one second each, in the order of the plan without gaps.
static struct op_time *in_order(const struct plan *plan)
{
    struct op_time *times = memory_allocate((size_t)plan->op_count * sizeof(*times));
    for (int32_t i = 0; i < plan->op_count; i++) {
        times[i] = (struct op_time){i, i + 1};
    }
    return times;
}

// The ops run one after another in plan order, so the maximum of live bytes must equal the plan's.
Test(step_timeline, has_the_plan_s_most_bytes_of_activations)
{
    const struct plan *plan   = tiny_plan_of("", 0);
    struct op_time    *times  = in_order(plan);
    struct result      result = {.method = 0};

    result_set_moments(&result, plan, times);

    int64_t maximum = 0;
    cr_assert_eq(result.moment_count, RESULT_MOMENTS);
    for (int64_t i = 0; i < result.moment_count; i++) {
        maximum = result.moments[i].bytes > maximum ? result.moments[i].bytes : maximum;
    }
    cr_expect_eq(maximum, plan->activation_live_bytes);
    cr_expect_lt(result.moments[0].bytes, maximum);
    cr_expect_float_eq(result.moments[64].seconds, plan->op_count / 2.0, 1e-9);
    free(times);
    result_free(&result);
}

static void expect_schedule(const struct result_action *found, int64_t count, const struct schedule_shape *shape,
                            int64_t stage)
{
    int64_t                 actions = schedule_actions(shape), at = 0;
    struct schedule_action *action = memory_allocate((size_t)actions * sizeof(*action));
    schedule_build(shape, stage, action);
    for (int64_t i = 0; i < count; i++) {
        bool is_forward = strcmp(found[i].phase, "forward") == 0, is_backward = strcmp(found[i].phase, "backward") == 0;
        cr_expect_eq(found[i].stage, stage);
        if (is_forward || is_backward) {
            cr_assert_lt(at, actions);
            cr_expect_eq(action[at].pass, is_forward ? SCHEDULE_FORWARD : SCHEDULE_BACKWARD, "%d", (int)at);
            cr_expect_eq(action[at].microbatch, found[i].microbatch, "%d", (int)at);
            at++;
        }
    }
    cr_expect_eq(at, actions);
    free(action);
}

static int64_t find_actions(const struct plan *plan, struct result_action actions[RESULT_ACTIONS])
{
    struct op_time *times = in_order(plan);
    int64_t         count = result_find_actions(actions, plan, times);
    free(times);
    return count;
}

Test(step_timeline, has_the_actions_of_the_schedule)
{
    struct result_action actions[RESULT_ACTIONS];
    for (int64_t stage = 0; stage < 2; stage++) {
        int64_t count = find_actions(tiny_plan_of("pp 2; accumulation 6", stage), actions);

        expect_schedule(actions, count, &(struct schedule_shape){.stages = 2, .chunks = 1, .microbatches = 6}, stage);
        for (int64_t i = 1; i < count; i++) {
            cr_expect(actions[i].begin >= actions[i - 1].end);
        }
    }
}

// A stage with a thousand pipeline actions merges them into at most RESULT_ACTIONS intervals. While the stage is busy,
// there is no gap between intervals.
Test(step_timeline, cuts_many_actions_into_equal_parts)
{
    static struct result_action actions[RESULT_ACTIONS];
    const struct plan          *plan  = tiny_plan_of("pp 2; accumulation 500", 0);
    int64_t                     count = find_actions(plan, actions);
    cr_expect_leq(count, RESULT_ACTIONS);
    cr_expect_gt(count, RESULT_ACTIONS * 9 / 10);
    cr_expect_float_eq(actions[1].end - actions[1].begin, (double)plan->op_count / RESULT_ACTIONS, 1e-6);
}

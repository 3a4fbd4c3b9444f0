// SPDX-License-Identifier: MIT
// Memory and pipeline actions over the timeline of a step, against the plan's live bytes and the pipeline schedule.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/result.h"
#include "gswbench/schedule.h"
#include "tiny.h"

// Op times back to back, one second each.
static struct op_time *in_order(const struct plan *plan)
{
    struct op_time *times = memory_allocate((size_t)plan->op_count * sizeof(*times));
    for (int32_t i = 0; i < plan->op_count; i++) {
        times[i] = (struct op_time){i, i + 1};
    }
    return times;
}

// With one lane in list order, the live bytes equal the plan's.
Test(course, has_the_plan_s_most_bytes_of_activations)
{
    struct tiny   tiny;
    struct result result = {.method = 0};
    tiny_init(&tiny);
    tiny_plan_rank(&tiny, 1, 0);
    struct op_time *times = in_order(&tiny.plan);

    result_set_moments(&result, &tiny.plan, times);

    int64_t most = 0;
    cr_assert_eq(result.moment_count, RESULT_MOMENTS);
    for (int64_t i = 0; i < result.moment_count; i++) {
        most = result.moments[i].bytes > most ? result.moments[i].bytes : most;
    }
    cr_expect_eq(most, tiny.plan.activation_live_bytes);
    cr_expect_lt(result.moments[0].bytes, most);
    cr_expect_float_eq(result.moments[64].seconds, tiny.plan.op_count / 2.0, 1e-9);
    free(times);
    plan_free(&tiny.plan);
    result_free(&result);
}

static void expect_schedule(const struct result_turn *found, int64_t count, const struct schedule_shape *shape,
                            int64_t stage)
{
    int64_t               turns = schedule_turns(shape), at = 0;
    struct schedule_turn *turn = memory_allocate((size_t)turns * sizeof(*turn));
    schedule_build(shape, stage, turn);
    for (int64_t i = 0; i < count; i++) {
        bool is_forward = strcmp(found[i].phase, "forward") == 0, is_backward = strcmp(found[i].phase, "backward") == 0;
        cr_expect_eq(found[i].stage, stage);
        if (is_forward || is_backward) {
            cr_assert_lt(at, turns);
            cr_expect_eq(turn[at].action, is_forward ? SCHEDULE_FORWARD : SCHEDULE_BACKWARD, "%d", (int)at);
            cr_expect_eq(turn[at].microbatch, found[i].microbatch, "%d", (int)at);
            at++;
        }
    }
    cr_expect_eq(at, turns);
    free(turn);
}

static int64_t find_turns(struct tiny *tiny, int64_t stage, int64_t microbatches,
                          struct result_turn turns[RESULT_TURNS])
{
    tiny_init(tiny);
    tiny->parallel.pp        = 2;
    tiny->train.accumulation = microbatches;
    tiny_plan_rank(tiny, 2, stage);
    struct op_time *times = in_order(&tiny->plan);
    int64_t         count = result_find_turns(turns, &tiny->plan, times);
    free(times);
    return count;
}

Test(course, has_the_turns_of_the_schedule)
{
    struct result_turn turns[RESULT_TURNS];
    for (int64_t stage = 0; stage < 2; stage++) {
        struct tiny tiny;
        int64_t     count = find_turns(&tiny, stage, 6, turns);

        expect_schedule(turns, count, &(struct schedule_shape){.stages = 2, .chunks = 1, .microbatches = 6}, stage);
        for (int64_t i = 1; i < count; i++) {
            cr_expect(turns[i].begin >= turns[i - 1].end);
        }
        plan_free(&tiny.plan);
    }
}

// A thousand pipeline actions are merged into at most RESULT_TURNS intervals, without gaps where the stage is busy.
Test(course, cuts_many_turns_into_equal_parts)
{
    static struct result_turn turns[RESULT_TURNS];
    struct tiny               tiny;
    int64_t                   count = find_turns(&tiny, 0, 500, turns);
    cr_expect_leq(count, RESULT_TURNS);
    cr_expect_gt(count, RESULT_TURNS * 9 / 10);
    cr_expect_float_eq(turns[1].end - turns[1].begin, (double)tiny.plan.op_count / RESULT_TURNS, 1e-6);
    plan_free(&tiny.plan);
}

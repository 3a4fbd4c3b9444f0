// SPDX-License-Identifier: MIT
// Compares the ops that lanes have executed with the plan: each op once, in lane order.
#include "step/internal.h"

#include <criterion/criterion.h>
#include <pthread.h>

#include "hand.h"

static void copy(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    (void)group;
    (void)op;
    (void)format;
    *(float *)out = *(const float *)in;
}

static struct local_hub *hub;
static struct bench      bench;

static void open_three_ops(void)
{
    struct hand *hand     = hand_new(1, 0);
    int32_t      set      = hand_append(hand, OP_GEMM, LANE_COMPUTE, OPERANDS(-1, -1, 0), -1);
    int32_t      transfer = hand_append(hand, OP_ALL_GATHER, LANE_TENSOR, OPERANDS(0, 1, -1), set);
    hand_append(hand, OP_CAST, LANE_COMPUTE, OPERANDS(1, 2, -1), transfer);
    hub = local_hub_open(1);
    bench_open(&bench, hand, hub, copy);
}

static void close_ops(void)
{
    bench_close(&bench);
    local_hub_close(hub);
}

TestSuite(executed, .init = open_three_ops, .fini = close_ops, .timeout = 30);

Test(executed, is_the_plan_where_all_ops_run)
{
    struct step_departure departure;
    for (int run = 0; run < 2; run++) {
        step_run(bench.step);
        cr_expect(step_followed_plan(bench.step, &departure));
    }
}

Test(executed, lacks_an_op_that_is_left_out)
{
    const struct step_fault skip = {.kind = FAULT_SKIP, .op = 2, .tensor = -1};
    struct step_departure   departure;
    step_set_fault(bench.step, &skip);
    step_run(bench.step);
    cr_assert_not(step_followed_plan(bench.step, &departure));
    cr_expect_eq(departure.lane, LANE_COMPUTE);
    cr_expect_eq(departure.executed, 1);
    cr_expect_eq(departure.planned, 2);
}

Test(executed, differs_where_the_order_does)
{
    struct queue         *queue = &bench.step->lanes.queues[LANE_COMPUTE];
    struct step_departure departure;
    step_run(bench.step);
    struct queued_op *first = queue->ops[0];
    queue->ops[0]           = queue->ops[1];
    queue->ops[1]           = first;
    cr_expect_not(step_followed_plan(bench.step, &departure));
}

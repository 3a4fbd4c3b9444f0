// SPDX-License-Identifier: MIT
// Tests that order_prune drops all redundant dependencies of a plan, and no others.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "gswbench/plan.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "success.h"

// Appends an op on a stream. The op waits for the ops first and second; -1 means none.
static void append(struct plan *plan, enum stream stream, int32_t first, int32_t second)
{
    struct op *op = &plan->ops[plan->op_count++];
    *op           = (struct op){.stream = (uint8_t)stream};
    if (first >= 0) {
        op->wait[op->wait_count++] = first;
    }
    if (second >= 0) {
        op->wait[op->wait_count++] = second;
    }
}

Test(order, drops_waits_that_streams_and_other_waits_imply)
{
    struct op   ops[8];
    struct plan plan = {.ops = ops};
    append(&plan, STREAM_COMPUTE, -1, -1);    // 0
    append(&plan, STREAM_TENSOR, 0, -1);      // 1
    append(&plan, STREAM_CONTEXT, 0, 1);      // 2: op 1 has waited for op 0
    append(&plan, STREAM_COMPUTE, 2, 1);      // 3: op 2 has waited for op 1
    append(&plan, STREAM_COMPUTE, 1, -1);     // 4: op 3 came after op 1
    append(&plan, STREAM_TENSOR, 0, -1);      // 5: op 1 of this stream has waited for op 0
    append(&plan, STREAM_TENSOR, 4, -1);      // 6
    append(&plan, STREAM_CONTEXT, 3, -1);     // 7: this stream does not wait for op 3 yet

    int32_t  position[8];
    int32_t *clocks = order_clocks(&plan, position);
    order_prune(&plan, clocks, position);
    free(clocks);

    const uint8_t counts[] = {0, 1, 1, 1, 0, 0, 1, 1};
    for (int i = 0; i < 8; i++) {
        cr_assert_eq(ops[i].wait_count, counts[i], "op %d", i);
    }
    cr_assert_eq(ops[2].wait[0], 1);
    cr_assert_eq(ops[3].wait[0], 2);
    cr_assert_eq(ops[7].wait[0], 3);
}

// Returns the sum of the ops' vector clocks. It changes if a dependency is missing.
static int64_t sum_clocks(const struct plan *plan)
{
    int32_t *position = malloc((size_t)plan->op_count * sizeof(*position));
    int32_t *clocks   = order_clocks(plan, position);
    int64_t  sum      = 0;
    for (int32_t i = 0; i < plan->op_count * STREAM_COUNT; i++) {
        sum += clocks[i];
    }
    free(clocks);
    free(position);
    return sum;
}

Test(order, leaves_a_built_plan_verified_and_every_wait_needed)
{
    struct plan *plan = tiny_plan_of("fsdp 2; tp 2; pp 2", 5);
    int32_t      findings, waits = 0;
    int64_t      sum = sum_clocks(plan);

    REQUIRE(plan_verify(plan, &findings));
    for (int32_t i = 0; i < plan->op_count; i++) {
        struct op full = plan->ops[i];
        for (int w = 0; w < full.wait_count; w++) {
            plan->ops[i].wait[w] = full.wait[full.wait_count - 1];
            plan->ops[i].wait_count--;
            cr_assert_lt(sum_clocks(plan), sum, "op %d", i);
            plan->ops[i] = full;
            waits++;
        }
    }
    cr_assert_gt(waits, 20);
}

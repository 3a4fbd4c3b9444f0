// SPDX-License-Identifier: MIT
// Tests collectives that compute waits for (is_alone). Only another microbatch in the opposite direction can hide them.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "simulated.h"

static struct cost cost_alone(const void *state, const struct plan *plan, const struct op *op)
{
    const bool *is_alone = state;
    (void)plan;
    bool computes = op->kind == OP_GEMM, exchanges = op->kind == OP_ALL_TO_ALL;
    return (struct cost){.seconds  = computes || exchanges ? 1.0 : 0.0,
                         .links    = exchanges ? LINK_NODE_OUT | LINK_NODE_IN : 0,
                         .is_alone = exchanges && *is_alone};
}

// Two ranks have two experts each. The all-to-all of the second expert overlaps with the first expert's GEMMs, or, if
// is_alone, comes before both experts.
Test(predict_overlap, computes_nothing_beside_a_communication_that_is_alone)
{
    struct predict_pipeline pipeline = pipeline_of("experts 4; top_k 2; capacity_factor 1.0; dp 2; ep 2");
    double                  beside   = simulate_with(&pipeline, cost_alone, &(bool){false});
    double                  apart = simulate_with(&pipeline, cost_alone, &(bool){true}), sum = 0.0;
    for (int32_t i = 0; i < pipeline.simulation.actors[0].task_count; i++) {
        sum += pipeline.simulation.actors[0].tasks[i].seconds;
    }
    cr_expect_float_eq(apart, sum, 1e-9 * sum);
    cr_expect_lt(beside, sum - 1.0);
    predict_pipeline_free(&pipeline);
}

static const char apart_row[] = "experts 4; top_k 2; capacity_factor 1.0; dp 2; ep 2; accumulation 4";
static const char overlapped_row[] =
    "experts 4; top_k 2; capacity_factor 1.0; dp 2; ep 2; accumulation 4; overlap_microbatches yes";

// Two layers with two experts have 16 all-to-alls of one second per microbatch. Another microbatch hides all of them,
// except for the forward all-to-alls of the first and the backward all-to-alls of the last of 4 microbatches.
Test(predict_overlap, hides_exchanges_that_compute_waits_for_behind_another_microbatch)
{
    double apart  = simulate_row(apart_row, cost_alone, &(bool){true});
    double beside = simulate_row(overlapped_row, cost_alone, &(bool){true});
    cr_expect_float_eq(apart - beside, 3 * 16.0, 1e-9 * apart, "%g and %g", apart, beside);
    cr_expect_leq(simulate_row(overlapped_row, cost_alone, &(bool){false}), beside);
}

// Returns the first compute op of the all-to-all's microbatch that follows compute of another microbatch, or -1.
static int32_t next_of(const struct plan *plan, int32_t exchange)
{
    bool is_other = false;
    for (int32_t i = exchange + 1; i < plan->op_count; i++) {
        bool is_own = plan->ops[i].tag.microbatch == plan->ops[exchange].tag.microbatch;
        if (plan->ops[i].stream == STREAM_COMPUTE && is_own && is_other) {
            return i;
        }
        is_other |= plan->ops[i].stream == STREAM_COMPUTE && !is_own;
    }
    return -1;
}

// Returns costs with all-to-alls that take longer than the compute that overlaps them.
static struct cost cost_slowly(const void *state, const struct plan *plan, const struct op *op)
{
    struct cost cost = cost_alone(state, plan, op);
    cost.seconds *= cost.is_alone ? 8.0 : 1.0;
    return cost;
}

// Returns costs with all-to-alls that end before the next one is ready.
static struct cost cost_quickly(const void *state, const struct plan *plan, const struct op *op)
{
    struct cost cost = cost_alone(state, plan, op);
    cost.seconds *= cost.is_alone ? 0.125 : 1.0;
    return cost;
}

// Expects that consecutive all-to-alls of a microbatch act as one collective, and that no expert starts before it ends.
static void expect_one_exchange(cost_fn *cost)
{
    struct predict_pipeline pipeline  = pipeline_of(overlapped_row);
    int                     exchanges = 0;
    predict_pipeline_cost(&pipeline, &(struct cost_model){.cost = cost, .state = &(bool){true}});
    const struct plan *plan  = &pipeline.stages[0].plan;
    struct actor_time  times = {.tasks = memory_allocate((size_t)plan->op_count * sizeof(struct op_time))};
    REQUIRE(simulate(&pipeline.simulation, &times));
    for (int32_t i = 0; i < plan->op_count; i++) {
        int32_t next = plan->ops[i].is_aside ? next_of(plan, i) : -1;
        if (next >= 0) {
            cr_expect_geq(times.tasks[next].begin, times.tasks[i].end, "op %d after %d", next, i);
            exchanges++;
        }
    }
    cr_expect_eq(exchanges, 3 * 16);
    // In the backward pass, the first all-to-all of input gradients starts when the last gradient is ready.
    for (int32_t i = 0; i + 1 < plan->op_count; i++) {
        if (plan->ops[i].is_aside && strcmp(plan->ops[i].tag.role, "input gradient exchange") == 0) {
            int32_t last = i + 1;
            while (plan->ops[last].kind != OP_ALL_TO_ALL) {
                last++;
            }
            cr_expect_geq(times.tasks[i].begin, times.tasks[last - 1].end);
            i = last;
        }
    }
    free(times.tasks);
    predict_pipeline_free(&pipeline);
}

Test(predict_overlap, goes_on_with_a_microbatch_when_all_its_exchanges_have_ended)
{
    expect_one_exchange(cost_slowly);
    expect_one_exchange(cost_quickly);
}

// Returns 10 seconds for compute, 1 second for reductions over replicas, and nothing for other gradient ops.
static struct cost cost_sums(const void *state, const struct plan *plan, const struct op *op)
{
    (void)state, (void)plan;
    bool is_sum   = strcmp(op->tag.role, "gradient reduce") == 0;
    bool computes = op->stream == STREAM_COMPUTE && op->kind != OP_CAST && op->kind != OP_CLEAR;
    return (struct cost){.seconds = is_sum     ? 1.0
                                    : computes ? 10.0
                                               : 0.0,
                         .links   = is_sum ? LINK_NODE_OUT | LINK_NODE_IN : 0};
}

// Each reduction overlaps with the backward pass, except for the embedding's, which comes last. It is exposed once in
// the last microbatch, or with gradient_reduce = microbatch in each of three.
Test(predict_overlap, hides_sums_of_gradients_behind_the_backward_pass_of_their_microbatch)
{
    double once = simulate_row("dp 2; accumulation 3", cost_sums, NULL);
    double each = simulate_row("dp 2; accumulation 3; gradient_reduce microbatch", cost_sums, NULL);
    cr_expect_float_eq(each - once, 2.0, 1e-9 * once, "%g and %g", each, once);
}

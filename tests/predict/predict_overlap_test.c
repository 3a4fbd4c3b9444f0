// SPDX-License-Identifier: MIT
// Tests collectives that compute waits for (is_alone). Only another microbatch in the opposite direction can hide them.
// Also tests steps that wait for launches: ops that share one launch, and launches that wait until the host has read
// the routing.
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

enum { LAYERS = 2 };

// One rank has two layers of four experts, and two microbatches.
static const char experts[] = "experts 4; top_k 2; auxiliary_loss 0.05; capacity_factor 1.0; accumulation 2";

static struct cost cost_products(const void *state, const struct plan *plan, const struct op *op)
{
    const struct cost *cost = state;
    (void)plan;
    return op->kind == OP_GEMM && op->tag.layer >= 0 ? *cost : (struct cost){.seconds = 0.0};
}

// The host launches each GEMM once for all four experts. A block has 5 launches forward, and 10 for data and weight
// gradients. While the GPU computes, the host launches in advance, so only the first launch delays the GPU.
Test(predict_launch, counts_what_experts_do_one_after_another_once)
{
    struct predict_pipeline pipeline = pipeline_of(experts);
    const double            blocks = 2.0 * LAYERS, products = 3.0 * (3.0 + 2.0 * 4.0) * blocks;
    const struct cost       host   = {.launch_seconds = 1.0};
    const struct cost       graph  = {.launch_seconds = 1.0, .is_in_graph = true};
    const struct cost       device = {.seconds = 1.0};
    const struct cost       ahead  = {.seconds = 1.0, .launch_seconds = 0.25};
    const struct cost       alone  = {.seconds = 1.0, .launch_seconds = 0.25, .launch_alone = 0.125};
    cr_expect_float_eq(simulate_with(&pipeline, cost_products, &host), 15.0 * blocks, 1e-6);
    cr_expect_float_eq(simulate_with(&pipeline, cost_products, &graph), 2.0 * blocks, 1e-6);
    cr_expect_float_eq(simulate_with(&pipeline, cost_products, &device), products, 1e-6);
    cr_expect_float_eq(simulate_with(&pipeline, cost_products, &ahead), products + 0.25, 1e-6);
    cr_expect_float_eq(simulate_with(&pipeline, cost_products, &alone), products + 0.25 + 0.125 * 15.0 * blocks, 1e-6);
    predict_pipeline_free(&pipeline);
}

static struct cost cost_activations(const void *state, const struct plan *plan, const struct op *op)
{
    const struct cost *cost          = state;
    bool               is_activation = op->kind == OP_ACTIVATION_FORWARD || op->kind == OP_ACTIVATION_BACKWARD;
    (void)plan;
    return is_activation ? *cost : (struct cost){.seconds = 0.0};
}

// Each pass of a block has one launch for the four routed experts, and one for the shared experts.
Test(predict_launch, counts_shared_experts_on_their_own)
{
    static const char shared[] =
        "experts 4; top_k 2; auxiliary_loss 0.05; capacity_factor 1.0; accumulation 2; shared_ffn 8";
    const struct cost host = {.launch_seconds = 1.0};
    cr_expect_float_eq(simulate_row(experts, cost_activations, &host), 2.0 * 2.0 * LAYERS, 1e-6);
    cr_expect_float_eq(simulate_row(shared, cost_activations, &host), 2.0 * 2.0 * 2.0 * LAYERS, 1e-6);
}

// Returns costs in which GEMMs take one second. Only dispatch takes a launch, and the host may have to read the
// routing.
static struct cost cost_sorting(const void *state, const struct plan *plan, const struct op *op)
{
    const struct cost *cost = state;
    (void)plan;
    return (struct cost){.seconds        = op->kind == OP_GEMM ? 1.0 : 0.0,
                         .launch_seconds = op->kind == OP_DISPATCH ? cost->launch_seconds : 0.0,
                         .is_read        = op->kind == OP_ROUTE_FORWARD && cost->is_read};
}

// Each forward pass waits for one launch after the host has read the routing. The host cannot launch it in advance.
Test(predict_launch, waits_behind_what_the_host_reads)
{
    struct predict_pipeline pipeline = pipeline_of(experts);
    const double            passes   = 2.0 * LAYERS;
    const struct cost       none     = {.seconds = 0.0};
    const struct cost       ahead    = {.launch_seconds = 0.5};
    const struct cost       reads    = {.launch_seconds = 0.5, .is_read = true};
    const struct cost       slow     = {.launch_seconds = 1000.0};
    double                  device   = simulate_with(&pipeline, cost_sorting, &none);
    cr_expect_float_eq(simulate_with(&pipeline, cost_sorting, &ahead), device, 1e-6);
    cr_expect_float_eq(simulate_with(&pipeline, cost_sorting, &reads), device + 0.5 * passes, 1e-6);
    // The GPU idles until the last launch. Then it runs the experts of that layer and the whole backward pass.
    double last = simulate_with(&pipeline, cost_sorting, &slow) - 1000.0 * passes;
    cr_expect(last > 8.0 && last < device, "%g of %g", last, device);
    predict_pipeline_free(&pipeline);
}

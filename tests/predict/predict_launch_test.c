// SPDX-License-Identifier: MIT
// Tests steps that wait for launches: ops that share one launch, and launches that wait until the host has read the
// routing.
#include "simulated.h"

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

// SPDX-License-Identifier: MIT
// Tests the time of host launches in a layer with experts, op by op or with CUDA graphs.
#include <criterion/criterion.h>

#include "gswbench/software.h"
#include "round_machine.h"
#include "layouts.h"

// A norm, a GEMM or an all-to-all takes one launch of the host (expert_launch). A GEMM for a weight gradient takes
// none, since it shares the launch of the GEMM for the input gradient. An all-to-all that sends a token once per node
// (expert_nodes) takes none, either. A cast or another collective takes half a launch.
Test(cost_launch, launches_the_steps_of_a_layer_by_the_host_of_the_machine)
{
    struct tensor     tensors[] = {{.format = FORMAT_BF16}, {.format = FORMAT_BF16, .storage = STORAGE_GRADIENT}};
    struct plan_group group     = {.size = 1};
    struct plan       plan      = {.tensors = tensors, .groups = &group, .mesh.world = 1, .model.experts = 2};
    struct round     *round     = round_new();
    round->software.expert_launch.value = 4e-3;
    round->hardware.launch_alone.value  = 0.25;
    struct op norm = {.kind = OP_NORM_FORWARD}, product = {.kind = OP_GEMM, .tag.part = PART_QKV},
              cast      = {.kind = OP_QUANTIZE};
    struct op exchange  = {.kind = OP_ALL_TO_ALL, .stream = STREAM_EXPERT};
    struct op reduction = {.kind = OP_ALL_REDUCE, .stream = STREAM_TENSOR};
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &norm).launch_seconds, 4e-3);
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &norm).launch_alone, 1e-3);
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &product).launch_seconds, 4e-3);
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &exchange).launch_seconds, 4e-3);
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &reduction).launch_seconds, 2e-3);
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &cast).launch_seconds, 2e-3);
    round->hardware.launch_share.value = 1.5;
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &product).launch_seconds, 6e-3);
    product.tag.makes            = MAKES_WEIGHT_GRADIENT;
    round->software.expert_nodes = true;
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &product).launch_seconds, 0.0);
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &exchange).launch_seconds, 0.0);
    norm.tag.layer = -1;
    cr_expect_eq(predict_cost_op(&round->machine, &plan, &norm).launch_seconds, 0.0);
}

// launch_alone is the part of a launch during which the op has started and waits for the host. The host also waits to
// read the routing, unless a capacity factor fixes the number of rows.
Test(cost_launch, knows_what_the_host_reads_before_it_goes_on)
{
    struct round *round = round_new();
    struct op op = {.kind = OP_ROUTE_FORWARD, .tag.part = PART_ROUTER, .shape.routing = {.experts = 8, .owners = 2}};
    round->plan.model.experts           = 8;
    round->software.expert_launch.value = 4e-3;
    round->hardware.launch_alone.value  = 0.25;
    round->hardware.launch_share.value  = 1.5;
    cr_expect(predict_cost_op(&round->machine, &round->plan, &op).is_read);
    cr_expect_eq(predict_cost_op(&round->machine, &round->plan, &op).launch_alone, 1.5e-3);
    round->plan.model.capacity_factor = 1.0;
    cr_expect_not(predict_cost_op(&round->machine, &round->plan, &op).is_read);
    round->plan.model.capacity_factor = 0.0;
    op.kind                           = OP_DISPATCH;
    cr_expect_not(predict_cost_op(&round->machine, &round->plan, &op).is_read);
    round->software.expert_launch.value = 0.0;
    op.kind                             = OP_ROUTE_FORWARD;
    cr_expect_not(predict_cost_op(&round->machine, &round->plan, &op).is_read);
}

// Expects this number of launches in the forward and backward pass of the second layer.
static void expect_steps(struct tiny *tiny, int64_t world, enum launch_graphs graphs, double expected)
{
    struct round *round                 = round_new();
    double        steps                 = 0.0;
    round->software.expert_launch.value = 1.0;
    round->software.expert_nodes        = true;
    round->software.launch_graphs       = graphs;
    tiny_plan_rank(tiny, world, 0);
    bool has_graph[2] = {false, false};    // [is forward]
    for (int32_t i = 0; i < tiny->plan.op_count; i++) {
        const struct op *op   = &tiny->plan.ops[i];
        struct cost      cost = predict_cost_op(&round->machine, &tiny->plan, op);
        bool            *has  = &has_graph[op->tag.phase == PHASE_FORWARD];
        if (op->tag.layer == 1 && op->tag.microbatch == 1 && !(cost.is_in_graph && *has)) {
            steps += cost.launch_seconds;
            *has |= cost.is_in_graph;
        }
    }
    plan_free(&tiny->plan);
    cr_expect_float_eq(steps, expected, 1e-9, "%g", steps);
}

// There is one expert on each of two ranks. The second of three microbatches is counted, which neither casts weights
// nor reduces gradients.
static void init_experts(struct tiny *tiny)
{
    tiny_init(tiny);
    tiny_set_experts(tiny, 2, 2);
    tiny->model.capacity_factor = 1.0;    // the host reads no counts
    layout_apply(tiny, "dp 2; ep 2; zero 1; accumulation 3");
}

// Each pass launches norm, qkv, RoPE, attention, projection, norm, router, routing, dispatch, fc1, activation, fc2 and
// combine.
Test(cost_launch, counts_thirteen_steps_of_a_pass_in_bf16)
{
    struct tiny tiny;
    init_experts(&tiny);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_NONE, 26.0);
}

// The ops before the experts are one CUDA graph and thus one launch, instead of eight with attention and three without.
Test(cost_launch, counts_one_step_for_what_is_a_graph)
{
    struct tiny tiny;
    init_experts(&tiny);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ROUTER, 22.0);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ATTENTION, 12.0);
}

// The graph of router and preprocessing includes shared experts.
Test(cost_launch, counts_shared_experts_with_the_router)
{
    struct tiny tiny;
    init_experts(&tiny);
    tiny.model.shared_ffn = 32;
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_NONE, 32.0);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ROUTER, 22.0);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ATTENTION, 12.0);
}

// Inputs and output gradients of four GEMMs are cast to FP8. Two of these GEMMs belong to experts.
Test(cost_launch, counts_half_a_step_for_each_cast)
{
    struct tiny tiny;
    init_experts(&tiny);
    tiny.precision.compute   = COMPUTE_FP8;
    tiny.precision.fp8_fused = 0;
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_NONE, 30.0);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ATTENTION, 14.0);
}

// tp gathers inputs before qkv, twice in the backward pass, and the gradient of the projection. It reduces after both
// GEMMs.
Test(cost_launch, counts_half_a_step_for_each_communication_of_tensor_parallelism)
{
    struct tiny tiny;
    init_experts(&tiny);
    tiny.parallel.tp  = 2;
    tiny.parallel.etp = 1;
    expect_steps(&tiny, 4, LAUNCH_GRAPHS_NONE, 28.5);
}

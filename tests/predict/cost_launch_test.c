// SPDX-License-Identifier: MIT
// Tests the time of host launches in a layer with experts, op by op or with CUDA graphs.
#include <criterion/criterion.h>

#include "gswbench/software.h"
#include "round_machine.h"
#include "layouts.h"

TestSuite(cost_launch, .init = init_round);

// A norm, a GEMM or an all-to-all takes one launch of the host (expert_launch). A GEMM for a weight gradient takes
// none, since it shares the launch of the GEMM for the input gradient. An all-to-all that sends a token once per node
// (expert_nodes) takes none, either. A cast or another collective takes half a launch.
Test(cost_launch, launches_the_steps_of_a_layer_by_the_host_of_the_machine)
{
    struct plan_group group            = {.size = 1};
    given.tensors[1].storage           = STORAGE_GRADIENT;
    given.plan.groups                  = &group;
    given.plan.mesh.world              = 1;
    given.plan.model.experts           = 2;
    given.software.expert_launch.value = 4e-3;
    given.hardware.launch_alone.value  = 0.25;
    struct op norm = {.kind = OP_NORM_FORWARD}, product = {.kind = OP_GEMM, .tag.part = PART_QKV},
              cast      = {.kind = OP_QUANTIZE};
    struct op exchange  = {.kind = OP_ALL_TO_ALL, .stream = STREAM_EXPERT};
    struct op reduction = {.kind = OP_ALL_REDUCE, .stream = STREAM_TENSOR};
    cr_expect_eq(cost_of(&norm).launch_seconds, 4e-3);
    cr_expect_eq(cost_of(&norm).launch_alone, 1e-3);
    cr_expect_eq(cost_of(&product).launch_seconds, 4e-3);
    cr_expect_eq(cost_of(&exchange).launch_seconds, 4e-3);
    cr_expect_eq(cost_of(&reduction).launch_seconds, 2e-3);
    cr_expect_eq(cost_of(&cast).launch_seconds, 2e-3);
    given.hardware.launch_share.value = 1.5;
    cr_expect_eq(cost_of(&product).launch_seconds, 6e-3);
    product.tag.makes           = MAKES_WEIGHT_GRADIENT;
    given.software.expert_nodes = true;
    cr_expect_eq(cost_of(&product).launch_seconds, 0.0);
    cr_expect_eq(cost_of(&exchange).launch_seconds, 0.0);
    norm.tag.layer = -1;
    cr_expect_eq(cost_of(&norm).launch_seconds, 0.0);
}

// launch_alone is the part of a launch during which the op has started and waits for the host. The host also waits to
// read the routing, unless a capacity factor fixes the number of rows.
Test(cost_launch, knows_what_the_host_reads_before_it_goes_on)
{
    struct op op = {.kind = OP_ROUTE_FORWARD, .tag.part = PART_ROUTER, .shape.routing = {.experts = 8, .owners = 2}};
    given.plan.model.experts           = 8;
    given.software.expert_launch.value = 4e-3;
    given.hardware.launch_alone.value  = 0.25;
    given.hardware.launch_share.value  = 1.5;
    cr_expect(cost_of(&op).is_read);
    cr_expect_eq(cost_of(&op).launch_alone, 1.5e-3);
    given.plan.model.capacity_factor = 1.0;
    cr_expect_not(cost_of(&op).is_read);
    given.plan.model.capacity_factor = 0.0;
    op.kind                          = OP_DISPATCH;
    cr_expect_not(cost_of(&op).is_read);
    given.software.expert_launch.value = 0.0;
    op.kind                            = OP_ROUTE_FORWARD;
    cr_expect_not(cost_of(&op).is_read);
}

// Returns the number of launches in the forward and backward pass of the second layer. The second of three microbatches
// is counted, which neither casts weights nor reduces gradients.
static double count_steps(const struct plan *plan)
{
    double steps        = 0.0;
    bool   has_graph[2] = {false, false};    // [is forward]
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op   = &plan->ops[i];
        struct cost      cost = predict_cost_op(&given.machine, plan, op);
        bool            *has  = &has_graph[op->tag.phase == PHASE_FORWARD];
        if (op->tag.layer == 1 && op->tag.microbatch == 1 && !(cost.is_in_graph && *has)) {
            steps += cost.launch_seconds;
            *has |= cost.is_in_graph;
        }
    }
    return steps;
}

// There is one expert on each of two ranks. With a capacity factor, the host reads no counts.
#define EXPERTS "dp 2; ep 2; zero 1; accumulation 3; experts 2; top_k 2; auxiliary_loss 0.05; capacity_factor 1"

Test(cost_launch, counts_the_steps_of_a_layer)
{
    static const struct {
        const char        *layout;
        enum launch_graphs graphs;
        double             steps;
    } cases[] = {
        // Each pass launches norm, qkv, RoPE, attention, projection, norm, router, routing, dispatch, fc1, activation,
        // fc2 and combine.
        {EXPERTS, LAUNCH_GRAPHS_NONE, 26.0},
        // The ops before the experts are one CUDA graph and thus one launch, instead of eight with attention and three
        // without.
        {EXPERTS, LAUNCH_GRAPHS_ROUTER, 22.0},
        {EXPERTS, LAUNCH_GRAPHS_ATTENTION, 12.0},
        // The graph of router and preprocessing includes shared experts.
        {EXPERTS "; shared_ffn 32", LAUNCH_GRAPHS_NONE, 32.0},
        {EXPERTS "; shared_ffn 32", LAUNCH_GRAPHS_ROUTER, 22.0},
        {EXPERTS "; shared_ffn 32", LAUNCH_GRAPHS_ATTENTION, 12.0},
        // Inputs and output gradients of four GEMMs are cast to FP8. Two of these GEMMs belong to experts.
        {EXPERTS "; compute fp8; fp8_fused no", LAUNCH_GRAPHS_NONE, 30.0},
        {EXPERTS "; compute fp8; fp8_fused no", LAUNCH_GRAPHS_ATTENTION, 14.0},
        // tp gathers inputs before qkv, twice in the backward pass, and the gradient of the projection. It reduces
        // after both GEMMs.
        {EXPERTS "; tp 2; etp 1", LAUNCH_GRAPHS_NONE, 28.5},
    };
    given.software.expert_launch.value = 1.0;
    given.software.expert_nodes        = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        given.software.launch_graphs = cases[i].graphs;
        double steps                 = count_steps(tiny_plan_of(cases[i].layout, 0));
        cr_expect_float_eq(steps, cases[i].steps, 1e-9, "%s, graphs %d: %g", cases[i].layout, cases[i].graphs, steps);
    }
}

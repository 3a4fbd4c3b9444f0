// SPDX-License-Identifier: MIT
// What the host launches of a layer with experts, step by step or as graphs.
#include <criterion/criterion.h>

#include "gswbench/config.h"
#include "gswbench/software.h"
#include "round_machine.h"
#include "tiny.h"

// A step is a norm, a product with its gradients, or an exchange, unless that goes once to each node; a cast or another
// transfer is half a step.
Test(price_launch, launches_the_steps_of_a_layer_by_the_host_of_the_machine)
{
    struct tensor          tensors[] = {{.format = FORMAT_BF16}, {.format = FORMAT_BF16, .storage = STORAGE_GRADIENT}};
    struct plan_group      group     = {.size = 1};
    struct plan            plan      = {.tensors = tensors, .groups = &group, .mesh.world = 1, .model.experts = 2};
    struct hardware_config hardware  = round_machine();
    struct software_config software;
    struct machine         machine = {.hardware = &hardware, .software = &software};
    option_set_defaults(software_options, &software);
    software.expert_launch.value = 4e-3;
    hardware.launch_alone.value  = 0.25;
    struct op norm = {.kind = OP_NORM_FORWARD}, product = {.kind = OP_GEMM, .tag.role = "qkv"},
              cast      = {.kind = OP_QUANTIZE};
    struct op exchange  = {.kind = OP_ALL_TO_ALL, .lane = LANE_EXPERT};
    struct op reduction = {.kind = OP_ALL_REDUCE, .lane = LANE_TENSOR};
    cr_expect_eq(predict_price_op(&machine, &plan, &norm).launch_seconds, 4e-3);
    cr_expect_eq(predict_price_op(&machine, &plan, &norm).launch_alone, 1e-3);
    cr_expect_eq(predict_price_op(&machine, &plan, &product).launch_seconds, 4e-3);
    cr_expect_eq(predict_price_op(&machine, &plan, &exchange).launch_seconds, 4e-3);
    cr_expect_eq(predict_price_op(&machine, &plan, &reduction).launch_seconds, 2e-3);
    cr_expect_eq(predict_price_op(&machine, &plan, &cast).launch_seconds, 2e-3);
    hardware.launch_share.value = 1.5;
    cr_expect_eq(predict_price_op(&machine, &plan, &product).launch_seconds, 6e-3);
    product.tag.role      = "qkv weight gradient";
    software.expert_nodes = true;
    cr_expect_eq(predict_price_op(&machine, &plan, &product).launch_seconds, 0.0);
    cr_expect_eq(predict_price_op(&machine, &plan, &exchange).launch_seconds, 0.0);
    norm.tag.layer = -1;
    cr_expect_eq(predict_price_op(&machine, &plan, &norm).launch_seconds, 0.0);
}

// What its device waits for in any case; and what the router has chosen, unless an expert has so many rows anyway.
Test(price_launch, knows_what_the_host_reads_before_it_goes_on)
{
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan            plan     = {.tensors = &tensor, .mesh.etp = 1, .model.experts = 8};
    struct hardware_config hardware = round_machine();
    struct software_config software;
    struct machine         machine = {.hardware = &hardware, .software = &software};
    struct op op = {.kind = OP_ROUTE_FORWARD, .tag.role = "route", .shape.routing = {.experts = 8, .owners = 2}};
    option_set_defaults(software_options, &software);
    software.expert_launch.value = 4e-3;
    hardware.launch_alone.value  = 0.25;
    hardware.launch_share.value  = 1.5;
    cr_expect(predict_price_op(&machine, &plan, &op).is_read);
    cr_expect_eq(predict_price_op(&machine, &plan, &op).launch_alone, 1.5e-3);
    plan.model.capacity_factor = 1.0;
    cr_expect_not(predict_price_op(&machine, &plan, &op).is_read);
    plan.model.capacity_factor = 0.0;
    op.kind                    = OP_DISPATCH;
    cr_expect_not(predict_price_op(&machine, &plan, &op).is_read);
    software.expert_launch.value = 0.0;
    op.kind                      = OP_ROUTE_FORWARD;
    cr_expect_not(predict_price_op(&machine, &plan, &op).is_read);
}

// Of the second layer's passes there and back, one after the other.
static void expect_steps(struct tiny *tiny, int64_t world, enum launch_graphs graphs, double expected)
{
    struct hardware_config hardware = round_machine();
    struct software_config software;
    struct machine         machine = {.hardware = &hardware, .software = &software};
    double                 steps   = 0.0;
    option_set_defaults(software_options, &software);
    software.expert_launch.value = 1.0;
    software.expert_nodes        = true;
    software.launch_graphs       = graphs;
    tiny_plan_rank(tiny, world, 0);
    bool has_graph[2] = {false, false};    // of the pass forward and of that back
    for (int32_t i = 0; i < tiny->plan.op_count; i++) {
        const struct op *op    = &tiny->plan.ops[i];
        struct price     price = predict_price_op(&machine, &tiny->plan, op);
        bool            *has   = &has_graph[op->tag.phase == PHASE_FORWARD];
        if (op->tag.layer == 1 && op->tag.microbatch == 1 && !(price.is_in_graph && *has)) {
            steps += price.launch_seconds;
            *has |= price.is_in_graph;
        }
    }
    plan_free(&tiny->plan);
    cr_expect_float_eq(steps, expected, 1e-9, "%g", steps);
}

// One expert on each of two ranks; the second of three microbatches casts no weights and reduces no gradients.
static void init_experts(struct tiny *tiny)
{
    tiny_init(tiny);
    tiny_set_experts(tiny, 2, 2);
    tiny->model.capacity_factor = 1.0;    // nothing is read
    tiny->parallel.dp           = 2;
    tiny->parallel.ep           = 2;
    tiny->parallel.zero         = 1;
    tiny->train.accumulation    = 3;
}

// There and back: norms, qkv, rotation, attention, projection, norm, router, routing, sorting, fc1, activation, fc2,
// and what sorts back.
Test(price_launch, counts_thirteen_steps_of_a_pass_in_bf16)
{
    struct tiny tiny;
    init_experts(&tiny);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_NONE, 26.0);
}

// Graphs of what comes before the experts: eight steps with attention, three without it.
Test(price_launch, counts_one_step_for_what_is_a_graph)
{
    struct tiny tiny;
    init_experts(&tiny);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ROUTER, 22.0);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ATTENTION, 12.0);
}

// Shared experts are part of the graph but for their activation, which a pass counts once with that of the others.
Test(price_launch, counts_products_of_shared_experts_with_the_router)
{
    struct tiny tiny;
    init_experts(&tiny);
    tiny.model.shared_ffn = 32;
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_NONE, 32.0);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ROUTER, 24.0);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ATTENTION, 14.0);
}

// Casts of four products' inputs and of their outputs' gradients; two of each are of experts.
Test(price_launch, counts_half_a_step_for_each_cast)
{
    struct tiny tiny;
    init_experts(&tiny);
    tiny.precision.compute   = COMPUTE_FP8;
    tiny.precision.fp8_fused = 0;
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_NONE, 30.0);
    expect_steps(&tiny, 2, LAUNCH_GRAPHS_ATTENTION, 14.0);
}

// Gathers before q, k and v, twice backward, and of the projection's gradient; sums behind both.
Test(price_launch, counts_half_a_step_for_each_transfer_of_tensor_parallelism)
{
    struct tiny tiny;
    init_experts(&tiny);
    tiny.parallel.tp  = 2;
    tiny.parallel.etp = 1;
    expect_steps(&tiny, 4, LAUNCH_GRAPHS_NONE, 28.5);
}

// SPDX-License-Identifier: MIT
// Cost of cp attention that gathers keys and computes rank by rank, against calculations by hand.
#include "round_machine.h"

enum { HEADS = 8, KEY_HEADS = 2, SEQUENCE = 1024, WIDTH = 128 };

// Four ranks on a machine of round numbers.
struct case_of_parts {
    int64_t                ranks[4];
    struct plan_group      group;
    struct tensor          tensor;
    struct plan            plan;
    struct hardware_config hardware;
    struct software_config software;
    struct machine         machine;
};

static void init(struct case_of_parts *parts)
{
    *parts                         = (struct case_of_parts){.ranks    = {0, 1, 2, 3},
                                                            .tensor   = {.format = FORMAT_BF16},
                                                            .hardware = round_machine(),
                                                            .plan     = {.model = {.heads = HEADS, .kv_heads = KEY_HEADS}}};
    parts->group                   = (struct plan_group){.size = 4, .ranks = parts->ranks};
    parts->plan.tensors            = &parts->tensor;
    parts->plan.groups             = &parts->group;
    parts->plan.context            = CONTEXT_GATHER;
    parts->plan.mesh.size[AXIS_CP] = 4;
    parts->machine                 = (struct machine){.hardware = &parts->hardware, .software = &parts->software};
    option_set_defaults(software_options, &parts->software);
}

static double cost(const struct case_of_parts *parts, const struct op *op)
{
    return predict_cost_op(&parts->machine, &parts->plan, op).seconds;
}

Test(cost_context, merges_the_parts_of_attention_in_single_precision)
{
    struct case_of_parts parts;
    struct op            op = {.kind            = OP_ATTENTION_FORWARD,
                               .shape.attention = {.batch    = 1,
                                                   .sequence = SEQUENCE,
                                                   .heads    = HEADS,
                                                   .kv_heads = KEY_HEADS,
                                                   .head_dim = WIDTH,
                                                   .causal   = true}};
    init(&parts);
    double forward               = cost(&parts, &op);
    op.kind                      = OP_ATTENTION_BACKWARD;
    double backward              = cost(&parts, &op);
    parts.software.context_parts = true;
    expect_seconds(cost(&parts, &op), backward + 4 * 60.0 * SEQUENCE * HEADS * WIDTH / 1e12);
    op.kind = OP_ATTENTION_FORWARD;
    expect_seconds(cost(&parts, &op), forward + 3 * 46.0 * SEQUENCE * HEADS * WIDTH / 1e12);
    parts.plan.context = CONTEXT_RING;
    expect_seconds(cost(&parts, &op), forward);
    parts.plan.context            = CONTEXT_GATHER;
    parts.plan.mesh.size[AXIS_CP] = 1;
    expect_seconds(cost(&parts, &op), forward);
}

// The all-gather moves 3 of 4 shares, times four for expanded heads. Gradients in fp32 need a fourth step.
Test(cost_context, moves_keys_for_each_head_of_queries_and_gradients_round_all_ranks)
{
    enum { ELEMENTS = 40000000 };
    struct case_of_parts parts;
    struct op    op = {.kind = OP_ALL_GATHER, .stream = STREAM_CONTEXT, .shape.communication = {.elements = ELEMENTS}};
    const double latency = 15e-6 + 3 * 3.4e-6, share = 2.0 * ELEMENTS / 4 / 1e11;
    init(&parts);
    expect_seconds(cost(&parts, &op), 3 * share + latency);
    parts.software.context_parts = true;
    expect_seconds(cost(&parts, &op), 4 * 3 * share + latency);
    op.kind = OP_REDUCE_SCATTER;
    expect_seconds(cost(&parts, &op), 4 * 2 * 4 * share + latency);
    op.stream = STREAM_TENSOR;
    expect_seconds(cost(&parts, &op), 3 * share + latency);
}

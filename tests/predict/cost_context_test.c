// SPDX-License-Identifier: MIT
// Compares costs of cp attention with calculations by hand. The framework all-gathers keys and values. It then computes
// attention in one part per cp rank, over the keys and values from that rank.
#include "round_machine.h"

enum { HEADS = 8, KEY_HEADS = 2, SEQUENCE = 1024, WIDTH = 128 };

// Four cp ranks on the machine of round numbers.
static struct round *four_ranks(void)
{
    static int64_t           ranks[] = {0, 1, 2, 3};
    static struct plan_group group   = {.size = 4, .ranks = ranks};
    struct round            *round   = round_new();
    round->plan.model.heads          = HEADS;
    round->plan.model.kv_heads       = KEY_HEADS;
    round->plan.groups               = &group;
    round->plan.context              = CONTEXT_GATHER;
    round->plan.mesh.size[AXIS_CP]   = 4;
    return round;
}

Test(cost_context, merges_the_parts_of_attention_in_single_precision)
{
    struct op     op              = {.kind            = OP_ATTENTION_FORWARD,
                                     .shape.attention = {.batch    = 1,
                                                         .sequence = SEQUENCE,
                                                         .heads    = HEADS,
                                                         .kv_heads = KEY_HEADS,
                                                         .head_dim = WIDTH,
                                                         .causal   = true}};
    struct round *round           = four_ranks();
    double        forward         = round_seconds(round, &op);
    op.kind                       = OP_ATTENTION_BACKWARD;
    double backward               = round_seconds(round, &op);
    round->software.context_parts = true;
    expect_cost(round, &op, backward + 4 * 60.0 * SEQUENCE * HEADS * WIDTH / 1e12);
    op.kind = OP_ATTENTION_FORWARD;
    expect_cost(round, &op, forward + 3 * 46.0 * SEQUENCE * HEADS * WIDTH / 1e12);
    round->plan.context = CONTEXT_RING;
    expect_cost(round, &op, forward);
    round->plan.context            = CONTEXT_GATHER;
    round->plan.mesh.size[AXIS_CP] = 1;
    expect_cost(round, &op, forward);
}

// The all-gather moves 3 of 4 parts, four times as large since keys are repeated for each query head. Gradients in fp32
// need a fourth step.
Test(cost_context, moves_keys_for_each_head_of_queries_and_gradients_round_all_ranks)
{
    enum { ELEMENTS = 40000000 };
    struct op     op = {.kind = OP_ALL_GATHER, .stream = STREAM_CONTEXT, .shape.communication = {.elements = ELEMENTS}};
    const double  latency = 15e-6 + 3 * 3.4e-6, share = 2.0 * ELEMENTS / 4 / 1e11;
    struct round *round = four_ranks();
    expect_cost(round, &op, 3 * share + latency);
    round->software.context_parts = true;
    expect_cost(round, &op, 4 * 3 * share + latency);
    op.kind = OP_REDUCE_SCATTER;
    expect_cost(round, &op, 4 * 2 * 4 * share + latency);
    op.stream = STREAM_TENSOR;
    expect_cost(round, &op, 3 * share + latency);
}

// SPDX-License-Identifier: MIT
// Tests the ops of plans, their order, and their memory.
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"

#include <criterion/criterion.h>

#include "plan_ops.h"
#include "success.h"
#include "layouts.h"

Test(plan, runs_a_block_forward_and_backward_in_this_order)
{
    const struct plan *plan = tiny_plan_of("", 0);

    cr_assert_str_eq(list_roles(plan, PHASE_FORWARD, 1),
                     "attention norm,qkv,rope,attention,projection,mlp norm,fc1,activation,fc2");
    cr_assert_str_eq(list_roles(plan, PHASE_BACKWARD, 1),
                     "fc2 data gradient,fc2 weight gradient,activation gradient,fc1 data gradient,"
                     "fc1 weight gradient,mlp norm gradient,projection data gradient,"
                     "projection weight gradient,attention gradient,rope gradient,qkv data gradient,"
                     "qkv weight gradient,attention norm gradient");
    cr_assert_str_eq(list_roles(plan, PHASE_OPTIMIZER, 1), "gradient norm,adamw");
}

Test(plan, overwrites_gradients_with_the_first_microbatch_and_adds_the_rest)
{
    const struct plan *plan = tiny_plan_of("accumulation 3", 0);

    for (int microbatch = 0; microbatch < 3; microbatch++) {
        static const char *const roles[] = {"fc1 weight gradient", "attention norm gradient"};
        for (int role = 0; role < 2; role++) {
            const struct op *op = &plan->ops[find_op(plan, roles[role], 0, microbatch)];
            cr_assert_eq(op->accumulates, microbatch > 0);
        }
        cr_assert_eq(plan->ops[find_op(plan, "loss", -1, microbatch)].accumulates, microbatch > 0);
        cr_assert_eq(plan->ops[find_op(plan, "embedding gradient", -1, microbatch)].accumulates, microbatch > 0);
    }
}

Test(plan, adds_the_embedding_gradient_to_the_head_s_when_they_share_the_table)
{
    const struct plan *plan = tiny_plan_of("tied yes", 0);

    cr_assert(!plan->ops[find_op(plan, "head weight gradient", -1, 0)].accumulates);
    cr_assert(plan->ops[find_op(plan, "embedding gradient", -1, 0)].accumulates);
    cr_assert_eq(plan->weight_count, 2 * 6 + 2);
}

Test(plan, names_each_matrix_once_with_its_own_random_stream)
{
    const struct plan *plan  = tiny_plan_of("norm layernorm1p", 0);
    int                parts = 0;

    for (int32_t w = 0; w < plan->weight_count; w++) {
        for (int32_t p = 0; p < plan->weights[w].part_count; p++, parts++) {
            const struct weight_part *part = &plan->weights[w].part[p];
            for (int32_t other = 0; other < w; other++) {
                for (int32_t q = 0; q < plan->weights[other].part_count; q++) {
                    cr_assert_str_neq(part->name, plan->weights[other].part[q].name);
                    cr_assert_neq(part->stream, plan->weights[other].part[q].stream);
                }
            }
        }
    }
    // The weights are embedding, head, final norm and its bias, and in each layer two norms with biases; q, k, v;
    // projection; gate, up, down.
    cr_assert_eq(parts, 4 + 2 * (4 + 3 + 1 + 3));
    cr_assert_str_eq(plan->weights[1].part[0].name, "model.layers.0.input_layernorm.weight");
}

Test(plan, reduces_each_unit_beside_the_rest_of_the_backward_pass)
{
    const struct plan *plan = tiny_plan_of("dp 4; accumulation 2", 0);

    int reduce = find_op(plan, "gradient reduce", 1, 1);
    cr_assert_eq(plan->ops[reduce].stream, STREAM_GRADIENT_REDUCE);
    cr_assert_eq(plan->ops[reduce].wait_count, 1);
    cr_assert_eq(plan->ops[reduce].wait[0], find_op(plan, "attention norm gradient", 1, 1));
    cr_assert_lt(reduce, find_op(plan, "fc2 data gradient", 0, 1));
    cr_assert_eq(count_ops(plan, OP_ALL_REDUCE, PHASE_REDUCE), 4 + 1);
    cr_assert_eq(plan->groups[0].size, 4);
}

Test(plan, reduces_in_a_narrower_type_through_casts)
{
    const struct plan *plan = tiny_plan_of("dp 2; compute bf16; reduce bf16", 0);

    const struct op *reduce = &plan->ops[find_op(plan, "gradient reduce", 0, 0)];
    cr_assert_eq(plan->tensors[reduce->operand[COMMUNICATION_OUT]].format, FORMAT_BF16);
    cr_assert_eq(count_ops(plan, OP_CAST, PHASE_REDUCE), 2 * 4);
}

Test(plan, gives_every_unit_the_same_places_in_weights_gradients_and_moments)
{
    const struct plan *plan = tiny_plan_of("compute bf16; ffn 23", 0);

    const struct tensor *tensors = plan->tensors;
    for (int32_t w = 1; w < plan->weight_count; w++) {
        const struct weight *a = &plan->weights[w - 1], *b = &plan->weights[w];
        if (a->unit != b->unit) {
            continue;
        }
        int64_t step = (tensors[b->tensor].offset - tensors[a->tensor].offset) / 2;
        cr_assert_eq((tensors[b->gradient].offset - tensors[a->gradient].offset) / 4, step);
        cr_assert_geq(step, tensors[a->tensor].elements);
        cr_assert_eq(tensors[b->tensor].offset % 16, 0);
    }
}

// Rank 3 of fsdp 2 x cp 4 is the last cp rank of the first fsdp rank. Weights are sharded over all eight ranks, so it
// holds the fourth shard.
Test(plan, shards_weights_over_cp_where_asked)
{
    const struct plan *plan = tiny_plan_of("fsdp 2; cp 4; shard_over_cp yes", 3);

    const struct plan_unit *block = &plan->units[1];
    cr_expect_eq(block->kept.elements, block->elements / 8);
    cr_expect_eq(block->kept.first, 3 * block->elements / 8);
    cr_expect_eq(block->updated.elements, block->kept.elements);
    static const char *const roles[] = {"weight gather", "gradient reduce-scatter"};
    for (int i = 0; i < 2; i++) {
        const struct op *op = &plan->ops[find_op(plan, roles[i], 0, 0)];
        cr_expect_eq(plan->groups[op->shape.communication.group].axes, 1u << AXIS_FSDP | 1u << AXIS_CP, "%s", roles[i]);
        cr_expect_eq(plan->groups[op->shape.communication.group].size, 8, "%s", roles[i]);
    }
}

Test(plan, says_which_option_asks_for_what_it_cannot_do)
{
    static const struct {
        const char *layout, *text;
    } rows[] = {
        {"dp 2; fsdp 2; zero 1",
         "this version does not shard the optimizer over replicas of sharded weights ([parallel] zero = 1 with fsdp): "
         "set zero = 0"},
        {"fsdp 2; pp 2; deferred_head_gradients 3",
         "this version does not support deferred gradients of a sharded output layer ([parallel] "
         "deferred_head_gradients = 3 with fsdp): set deferred_head_gradients = 0"},
        {"gradient_reduce microbatch; fsdp 4",
         "[parallel] gradient_reduce = microbatch has no effect with fsdp and dp = 1, where every microbatch reduces "
         "gradients anyway: leave it out, or set dp"},
        {"gradient_reduce microbatch; fsdp 2; dp 2", ""},
        {"gradient_reduce microbatch; dp 2; pp 2; deferred_head_gradients 3",
         "[parallel] gradient_reduce = microbatch reduces gradients after each microbatch, but "
         "deferred_head_gradients = 3 computes some at the end: use one of the two"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tiny         tiny    = tiny_of(rows[i].layout);
        struct plan_request request = tiny_request(&tiny, 4, 0);
        status              result  = plan_supports(&request);
        cr_expect_str_eq(result.text, rows[i].text, "%s: %s", rows[i].layout, result.text);
        cr_expect_eq(result.exit_code, rows[i].text[0] != '\0' ? EXIT_CONFIG : 0);
    }
}

Test(plan, is_the_same_with_options_that_do_nothing_in_its_layout)
{
    // ZeRO-1 does nothing because the shards of fsdp have no replicas. Deferred head gradients do nothing without a
    // pipeline.
    struct tiny plain = tiny_of("fsdp 2");
    tiny_plan_rank(&plain, 2, 1);
    const struct plan *plan = tiny_plan_of("fsdp 2; zero 1; deferred_head_gradients 3", 1);
    cr_assert_eq(plan->op_count, plain.plan.op_count);
    for (int32_t i = 0; i < plan->op_count; i++) {
        cr_expect_eq(plan->ops[i].kind, plain.plan.ops[i].kind, "op %d", i);
    }
    cr_expect_eq(plan_total_bytes(plan), plan_total_bytes(&plain.plan));
    plan_free(&plain.plan);
}

Test(plan, without_places_has_the_same_ops_and_counts_what_is_live)
{
    struct plan         placed, unplaced;
    struct plan_request request = layout_request("accumulation 3; fsdp 2");

    REQUIRE(plan_build(&placed, &request));
    request.is_unplaced = true;
    REQUIRE(plan_build(&unplaced, &request));
    cr_assert_eq(unplaced.op_count, placed.op_count);
    for (int32_t i = 0; i < placed.op_count; i++) {
        cr_assert_eq(unplaced.ops[i].kind, placed.ops[i].kind);
        cr_assert_eq(unplaced.ops[i].wait_count, placed.ops[i].wait_count);
        cr_assert_arr_eq(unplaced.ops[i].wait, placed.ops[i].wait, placed.ops[i].wait_count * sizeof(int32_t));
    }
    cr_expect_gt(placed.activation_live_bytes, 0);
    cr_expect_gt(placed.storage_bytes[STORAGE_ACTIVATION], placed.activation_live_bytes);
    cr_expect_eq(unplaced.activation_live_bytes, placed.activation_live_bytes);
    cr_expect_eq(unplaced.storage_bytes[STORAGE_ACTIVATION], placed.activation_live_bytes);
    cr_expect_eq(unplaced.storage_bytes[STORAGE_WEIGHT], placed.storage_bytes[STORAGE_WEIGHT]);
    plan_free(&placed);
    plan_free(&unplaced);
}

// The gradient norm adds one sum of squares for each parameter group of the job. Groups without a gradient on this
// rank, because it is frozen, on another stage, or in a repeated MTP module, must be written as well, else the norm
// reads stale memory. So must those without weights: a layer without shared experts has no linears.
Test(plan, writes_every_square_sum_that_the_norm_adds)
{
    static const char *const rows[] = {
        "",
        "pp 2; layers 2; accumulation 2",
        "pattern -/-/-; layers 1; predicted_tokens 2; repeat_prediction yes",
        "pattern *E; layers 2; experts 4; top_k 2; compute fp8; recipe current; fp8_weights yes",
        "pattern *E; layers 2; experts 4; top_k 2; optimizer muon",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan *plan = tiny_plan_of(rows[i], 0);
        int32_t            sums = 0;
        while (strcmp(plan->tensors[sums].name, "squares") != 0) {
            sums++;
        }
        bool is_written[64] = {false};
        for (int32_t op = 0; op < plan->op_count; op++) {
            for (int slot = 0; slot < plan->ops[op].operand_count; slot++) {
                int32_t tensor = plan->ops[op].operand[slot];
                if (tensor < 0 || plan->tensors[tensor].whole != sums || plan->ops[op].access[slot] != ACCESS_WRITE) {
                    continue;
                }
                int64_t first = plan->tensors[tensor].part_offset / (int64_t)sizeof(float);
                for (int64_t at = first; at < first + plan->tensors[tensor].elements; at++) {
                    is_written[at] = true;
                }
            }
        }
        for (int64_t at = 0; at < plan->tensors[sums].elements; at++) {
            cr_expect(is_written[at], "%s: sum %d of %d", rows[i], (int)at, (int)plan->tensors[sums].elements);
        }
    }
}

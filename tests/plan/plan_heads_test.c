// SPDX-License-Identifier: MIT
// Tests plans in which several tp ranks hold the same KV head, and plans with Ulysses all-to-alls over cp.
#include "gswbench/plan.h"

#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/verify.h"
#include "layouts.h"
#include "plan_ops.h"

static const struct weight *weight_of(const struct plan *plan, const char *name)
{
    for (int32_t i = 0; i < plan->weight_count; i++) {
        if (strcmp(plan->weights[i].name, name) == 0) {
            return &plan->weights[i];
        }
    }
    cr_assert_fail("no weight %s", name);
    return NULL;
}

// There are four query heads and two KV heads of four elements. Ranks 2 and 3 of tp both hold the second KV head.
Test(plan_heads, gives_a_head_of_keys_to_several_ranks_of_tp)
{
    const struct plan   *plan = tiny_plan_of("tp 4; kv_heads 2; attention_bias yes", 3);
    const struct weight *qkv  = weight_of(plan, "qkv weight");
    cr_expect_eq(qkv->rows, 12);
    static const int64_t rows[] = {16, 8, 8}, first[] = {12, 4, 4}, local[] = {4, 4, 4};
    for (int part = 0; part < 3; part++) {
        cr_expect_eq(qkv->part[part].rows, rows[part], "part %d", part);
        cr_expect_eq(qkv->part[part].first_row, first[part], "part %d", part);
        cr_expect_eq(qkv->part[part].local_rows, local[part], "part %d", part);
        cr_expect_eq(qkv->part[part].replica_axes, part == 0 ? 0 : MESH_HEAD_COPIES, "part %d", part);
        cr_expect_eq(weight_of(plan, "qkv bias")->part[part].first_column, first[part], "part %d", part);
    }
}

// The ranks that hold a KV head sum its gradients: in each layer the weight, [2 x 4, 16], and the biases, 2 x 4.
Test(plan_heads, sums_gradients_of_a_head_over_the_ranks_that_have_it)
{
    static const struct {
        const char *row;
        int64_t     sums;
    } rows[] = {{"tp 4; kv_heads 2; attention_bias yes", 2 * 2},
                {"tp 4; kv_heads 1; attention_bias yes; fsdp 2; accumulation 2", 2 * 2 * 2},
                {"tp 4; kv_heads 1; accumulation 2", 2},
                {"tp 2; kv_heads 2; attention_bias yes", 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan *plan = tiny_plan_of(rows[i].row, 1);
        int64_t            sums = 0, elements = 0;
        for (int32_t op = 0; op < plan->op_count; op++) {
            const struct op *summed = &plan->ops[op];
            if (op_is_communication((enum op_kind)summed->kind) &&
                (plan->groups[summed->shape.communication.group].axes & MESH_HEAD_COPIES) != 0) {
                sums++;
                elements += summed->shape.communication.elements;
            }
        }
        bool has_bias = plan->model.attention_bias != 0;
        cr_expect_eq(sums, rows[i].sums, "%s: %lld", rows[i].row, (long long)sums);
        cr_expect_eq(elements, has_bias ? sums / 2 * (128 + 8) : sums * 128, "%s", rows[i].row);
    }
}

Test(plan_heads, exchanges_heads_for_positions_around_attention)
{
    const struct plan *plan = tiny_plan_of("cp 2; context exchange; recompute attention", 0);
    cr_expect_str_eq(list_roles(plan, PHASE_FORWARD, 0),
                     "attention norm,qkv,rope,q exchange,q exchange,q exchange,kv exchange,kv exchange,kv exchange,"
                     "attention,attention exchange,attention exchange,attention exchange,projection,mlp norm,fc1,"
                     "activation,fc2");
    cr_expect_str_eq(list_roles(plan, PHASE_RECOMPUTE, 0),
                     "attention,attention exchange,attention exchange,attention exchange");
    const char *exchanges = strstr(list_roles(plan, PHASE_BACKWARD, 0), "attention gradient exchange");
    cr_assert_not_null(exchanges);
    cr_expect_eq(strncmp(exchanges,
                         "attention gradient exchange,attention gradient exchange,attention gradient exchange,"
                         "attention gradient,q gradient exchange,q gradient exchange,q gradient exchange,"
                         "kv gradient exchange,kv gradient exchange,kv gradient exchange,rope gradient",
                         224),
                 0, "%s", exchanges);
}

// Each of 2 ranks moves its 8 tokens in 2 layers. Per token, queries, outputs and the gradients of both have 4 heads x
// 4 elements each. Keys and values together, and their gradients, have 2 x 2 heads x 4 elements.
Test(plan_heads, moves_each_head_once_each_way)
{
    const struct plan *plan = tiny_plan_of("cp 2; context exchange", 1);
    struct account     account;
    double             elements = 0;
    plan_account(plan, &account);
    for (int32_t i = 0; i < account.communication_count; i++) {
        const struct plan_communication *communication = &account.communications[i];
        elements += communication->kind == OP_ALL_TO_ALL ? (double)(communication->elements * communication->count) : 0;
    }
    cr_expect_eq(elements, 2.0 * 8 * (4 * 16 + 2 * 16), "%g", elements);
    const struct attention_shape *shape = &plan->ops[find_op(plan, "attention", 0, 0)].shape.attention;
    cr_expect_eq(shape->heads, 2);
    cr_expect_eq(shape->kv_heads, 1);
    cr_expect_eq(shape->sequence, 8);
    cr_expect_eq(shape->batch, 2);
}

Test(plan_heads, refuses_heads_that_cannot_be_exchanged)
{
    static const struct {
        const char *row, *expected;
    } rows[] = {
        {"cp 4; context exchange",
         "[parallel] context = exchange shards heads over tp x cp = 4 ranks, which must divide [model] heads = 4 and "
         "kv_heads = 2: use a smaller cp, or context = gather or ring"},
        {"cp 2; tp 2; context exchange", "over tp x cp = 4 ranks"},
        {"cp 2; context exchange; attention_sinks yes", "this version does not support latent attention or sinks"},
        {"cp 2; context exchange; kv_heads 4; kv_rank 12; rope_dim 6; value_dim 5; pattern latent + mlp",
         "this version does not support latent attention"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct plan_request request = layout_request(rows[i].row);
        status              result  = plan_supports(&request);
        cr_expect_not_null(strstr(result.text, rows[i].expected), "%s: %s", rows[i].row, result.text);
    }
}

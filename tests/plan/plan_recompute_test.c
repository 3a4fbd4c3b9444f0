// SPDX-License-Identifier: MIT
// Tests recompute: which ops run again in the backward pass, and how much memory this saves.
#include "gswbench/plan.h"

#include <criterion/criterion.h>

#include "layouts.h"
#include "line.h"
#include "plan_ops.h"

static void assert_recomputed(enum recompute policy, uint32_t save, const char *expected)
{
    struct tiny tiny           = tiny_of("");
    tiny.train.recompute       = policy;
    tiny.train.recompute_save  = save;
    tiny.train.recompute_every = 2;
    tiny_plan(&tiny);
    cr_expect_str_eq(list_roles(&tiny.plan, PHASE_RECOMPUTE, 0), expected, "policy %d", (int)policy);
    plan_free(&tiny.plan);
}

Test(plan_recompute, recomputes_what_the_policy_does_not_keep_and_no_more)
{
    const char *all = "attention norm,qkv,rope,attention,projection,mlp norm,fc1,activation";
    assert_recomputed(RECOMPUTE_NONE, 0, "");
    assert_recomputed(RECOMPUTE_ATTENTION, 0, "attention");
    assert_recomputed(RECOMPUTE_FULL, 0, all);
    assert_recomputed(RECOMPUTE_BLOCK_EVERY, 0, all);
    assert_recomputed(RECOMPUTE_SELECTIVE, 0, all);
    // The published run of Llama 2 70B keeps q, k, v, the output projection and fc2.
    assert_recomputed(RECOMPUTE_SELECTIVE, 1 << OUTPUT_QKV | 1 << OUTPUT_PROJECTION | 1 << OUTPUT_FC2,
                      "attention norm,attention,mlp norm,fc1,activation");
    assert_recomputed(RECOMPUTE_SELECTIVE, 1 << OUTPUT_NORM | 1 << OUTPUT_QKV | 1 << OUTPUT_ATTENTION | 1 << OUTPUT_FC1,
                      "activation");
}

static void assert_modules(const char *row, int layer, const char *expected)
{
    const struct plan *plan = tiny_plan_of(line_of("recompute modules; %s", row), 0);
    cr_expect_str_eq(list_roles(plan, PHASE_RECOMPUTE, layer), expected, "%s, layer %d", row, layer);
}

Test(plan_recompute, recomputes_the_modules_that_are_named_alone)
{
    static const char *const mixed = "pattern dense, experts; experts 2; top_k 1; shared_ffn 8; routing balanced; "
                                     "capacity_factor 1; recompute_modules ";
    static const struct {
        const char *modules, *dense, *experts;
    } rows[] = {
        {"core_attn", "attention", "attention"},
        {"layernorm", "attention norm,mlp norm", "attention norm,mlp norm"},
        {"mlp", "fc1,activation", ""},
        {"moe_act", "", "activation,activation"},
        {"shared_experts", "", "shared fc1,activation"},
        {"moe", "", "router,route,dispatch,shared fc1,activation,fc1,fc1,activation,activation,fc2,fc2"},
        {"layernorm, mlp, moe_act", "attention norm,mlp norm,fc1,activation",
         "attention norm,mlp norm,activation,activation"},
        {"none", "", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *row = line_of("%s%s", mixed, rows[i].modules);
        assert_modules(row, 0, rows[i].dense);
        assert_modules(row, 1, rows[i].experts);
    }
    static const char *const latent = "kv_heads 4; kv_rank 12; rope_dim 6; value_dim 5; pattern latent + mlp; "
                                      "recompute_modules mla_up_proj";
    assert_modules(latent, 0, "q up,kv up,rope");
}

// The norm is recomputed from the residual stream. The norm's gradient reads that tensor anyway, so it costs no memory.
Test(plan_recompute, computes_a_norm_again_from_what_its_gradient_reads)
{
    const struct plan *plan = tiny_plan_of("recompute modules; recompute_modules layernorm", 0);
    for (int32_t op = 0; op < plan->op_count; op++) {
        bool is_again = plan->ops[op].kind == OP_NORM_FORWARD && plan->ops[op].tag.phase == PHASE_RECOMPUTE;
        cr_expect(!is_again || plan->ops[op].operand_count <= NORM_BRANCH || plan->ops[op].operand[NORM_BRANCH] < 0);
    }
}

Test(plan_recompute, recomputes_the_first_layers_of_a_chunk_alone_when_asked)
{
    static const struct {
        const char *row;
        bool        is_recomputed[4];
    } rows[] = {
        {"recompute full; recompute_layers 1", {true, false, false, false}},
        {"recompute full; recompute_layers 3", {true, true, true, false}},
        {"recompute full; recompute_layers 0", {true, true, true, true}},
        {"recompute attention; recompute_layers 2", {true, true, false, false}},
        {"recompute modules; recompute_modules mlp; recompute_layers 2", {true, true, false, false}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan *plan = tiny_plan_of(line_of("layers 4; %s", rows[i].row), 0);
        for (int layer = 0; layer < 4; layer++) {
            const char *roles = list_roles(plan, PHASE_RECOMPUTE, layer);
            cr_expect_eq(roles[0] != '\0', rows[i].is_recomputed[layer], "%s: layer %d", rows[i].row, layer);
        }
    }
}

// With pp 2 and vp 2, the second stage has layers 2 and 3 of 8 in its first chunk, and 6 and 7 in its second.
Test(plan_recompute, counts_the_first_layers_of_each_chunk_of_a_stage)
{
    const struct plan *plan =
        tiny_plan_of("layers 8; pp 2; vp 2; accumulation 2; recompute full; recompute_layers 1", 1);
    for (int layer = 2; layer < 8; layer += layer % 4 == 3 ? 3 : 1) {
        const char *roles = list_roles(plan, PHASE_RECOMPUTE, layer);
        cr_expect_eq(roles[0] != '\0', layer % 2 == 0, "layer %d: %s", layer, roles);
    }
}

Test(plan_recompute, recomputes_only_every_second_block_when_asked)
{
    const struct plan *plan = tiny_plan_of("recompute block_every; recompute_every 2", 0);

    cr_assert_str_eq(list_roles(plan, PHASE_RECOMPUTE, 1), "");
}

Test(plan_recompute, keeps_less_memory_the_more_it_recomputes)
{
    static const char *const rows[] = {"layers 6; sequence 64", "layers 6; sequence 64; recompute attention",
                                       "layers 6; sequence 64; recompute full"};
    int64_t                  before = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        const struct plan *plan = tiny_plan_of(rows[i], 0);
        cr_assert_lt(plan->storage_bytes[STORAGE_ACTIVATION], before);
        before = plan->storage_bytes[STORAGE_ACTIVATION];
        cr_assert_leq(plan->activation_live_bytes, before);
    }
}

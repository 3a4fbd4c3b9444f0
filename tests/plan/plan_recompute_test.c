// SPDX-License-Identifier: MIT
// What a plan computes a second time, and the memory that it saves.
#include "gswbench/plan.h"

#include <criterion/criterion.h>

#include "plan_ops.h"
#include "tiny.h"

static void assert_recomputed(enum recompute policy, uint32_t save, const char *expected)
{
    struct tiny tiny;
    char        roles[1024];
    tiny_init(&tiny);
    tiny.train.recompute       = policy;
    tiny.train.recompute_save  = save;
    tiny.train.recompute_every = 2;
    tiny_plan(&tiny);
    list_roles(&tiny.plan, PHASE_RECOMPUTE, 0, roles);
    cr_expect_str_eq(roles, expected, "policy %d: \"%s\" is not \"%s\"", (int)policy, roles, expected);
    plan_free(&tiny.plan);
}

Test(plan, recomputes_what_the_policy_does_not_keep_and_no_more)
{
    const char *all = "attention norm,qkv,rope,attention,projection,mlp norm,fc1,activation";
    assert_recomputed(RECOMPUTE_NONE, 0, "");
    assert_recomputed(RECOMPUTE_ATTENTION, 0, "attention");
    assert_recomputed(RECOMPUTE_FULL, 0, all);
    assert_recomputed(RECOMPUTE_BLOCK_EVERY, 0, all);
    assert_recomputed(RECOMPUTE_SELECTIVE, 0, all);
    // What the published Llama2-70B run keeps: q, k, v, the output projection and fc2.
    assert_recomputed(RECOMPUTE_SELECTIVE, 1 << OUTPUT_QKV | 1 << OUTPUT_PROJECTION | 1 << OUTPUT_FC2,
                      "attention norm,attention,mlp norm,fc1,activation");
    assert_recomputed(RECOMPUTE_SELECTIVE, 1 << OUTPUT_NORM | 1 << OUTPUT_QKV | 1 << OUTPUT_ATTENTION | 1 << OUTPUT_FC1,
                      "activation");
}

Test(plan, recomputes_only_every_second_block_when_asked)
{
    struct tiny tiny;
    char        roles[1024];
    tiny_init(&tiny);
    tiny.train.recompute       = RECOMPUTE_BLOCK_EVERY;
    tiny.train.recompute_every = 2;

    tiny_plan(&tiny);

    list_roles(&tiny.plan, PHASE_RECOMPUTE, 1, roles);
    cr_assert_str_eq(roles, "");
    plan_free(&tiny.plan);
}

Test(plan, keeps_less_memory_the_more_it_recomputes)
{
    int64_t bytes[3];
    for (int i = 0; i < 3; i++) {
        struct tiny tiny;
        tiny_init(&tiny);
        tiny.model.layers    = 6;
        tiny.train.sequence  = 64;
        tiny.train.recompute = (int64_t[]){RECOMPUTE_NONE, RECOMPUTE_ATTENTION, RECOMPUTE_FULL}[i];
        tiny_plan(&tiny);
        bytes[i] = tiny.plan.storage_bytes[STORAGE_ACTIVATION];
        cr_assert_leq(tiny.plan.activation_live_bytes, bytes[i]);
        plan_free(&tiny.plan);
    }
    cr_assert_lt(bytes[1], bytes[0]);
    cr_assert_lt(bytes[2], bytes[1]);
}

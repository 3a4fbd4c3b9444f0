// SPDX-License-Identifier: MIT
// Tests the all-gathers of FSDP: when a rank gathers the weights of a block, and how long it keeps them.
#include <criterion/criterion.h>
#include <string.h>

#include "layouts.h"

enum { LAYERS = 4, SHARDS = 2 };

static struct tiny tiny_ahead(int64_t prefetch)
{
    struct tiny tiny       = tiny_of("layers 4; fsdp 2");
    tiny.parallel.prefetch = prefetch;
    return tiny;
}

// Counts the all-gathers of a layer's weights among the ops before index `end`.
static int count_gathers(const struct plan *plan, int64_t layer, int32_t end)
{
    int count = 0;
    for (int32_t i = 0; i < end; i++) {
        count += plan->ops[i].kind == OP_ALL_GATHER && plan->ops[i].tag.layer == layer;
    }
    return count;
}

static int32_t first_op(const struct plan *plan, const char *role, int64_t layer)
{
    int32_t i = 0;
    while (i < plan->op_count && (plan->ops[i].tag.layer != layer || strcmp(plan->ops[i].tag.role, role) != 0)) {
        i++;
    }
    cr_assert_lt(i, plan->op_count, "no %s on layer %d", role, (int)layer);
    return i;
}

// Checks how often a step gathers the weights of each layer.
static void expect_gathers(int64_t reshard, const int expected[LAYERS])
{
    struct tiny tiny      = tiny_ahead(1);
    tiny.parallel.reshard = reshard;
    tiny_plan_rank(&tiny, SHARDS, 0);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        int count = count_gathers(&tiny.plan, layer, tiny.plan.op_count);
        cr_expect_eq(count, expected[layer], "reshard %d: layer %d is gathered %d times", (int)reshard, (int)layer,
                     count);
    }
    plan_free(&tiny.plan);
}

Test(gather, is_done_again_in_the_backward_pass_for_all_blocks_but_those_that_stay)
{
    expect_gathers(RESHARD_ALWAYS, (const int[]){2, 2, 2, 2});
    expect_gathers(RESHARD_EXCEPT_LAST, (const int[]){2, 2, 2, 1});
    expect_gathers(RESHARD_NEVER, (const int[]){1, 1, 1, 1});
}

// Checks how many all-gathers of each layer's weights are queued before layer 0 starts.
static void expect_ahead(struct tiny *tiny, const int expected[LAYERS])
{
    tiny_plan_rank(tiny, SHARDS, 0);
    int32_t begin = first_op(&tiny->plan, "attention norm", 0);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        int count = count_gathers(&tiny->plan, layer, begin);
        cr_expect_eq(count, expected[layer], "prefetch %d: layer %d is gathered %d times", (int)tiny->parallel.prefetch,
                     (int)layer, count);
    }
    plan_free(&tiny->plan);
}

Test(gather, begins_as_many_blocks_ahead_as_prefetch_says)
{
    struct tiny tiny = tiny_ahead(0);
    expect_ahead(&tiny, (const int[]){1, 0, 0, 0});
    tiny = tiny_ahead(1);
    expect_ahead(&tiny, (const int[]){1, 1, 0, 0});
    tiny = tiny_ahead(2);
    expect_ahead(&tiny, (const int[]){1, 1, 1, 0});
}

// With weights stored in FP8, the linears of a block are a separate FSDP unit, so each block has two all-gathers.
Test(gather, of_weights_in_fp8_brings_whole_blocks_ahead)
{
    for (int64_t prefetch = 0; prefetch <= 2; prefetch++) {
        struct tiny tiny = tiny_ahead(prefetch);
        layout_apply(&tiny, "compute fp8; recipe current; fp8_weights yes");
        expect_ahead(&tiny, (const int[]){2, prefetch >= 1 ? 2 : 0, prefetch >= 2 ? 2 : 0, 0});
    }
}

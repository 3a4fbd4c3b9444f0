// SPDX-License-Identifier: MIT
// Each layout of a table trains as one rank does. Compares losses, gradient norms, and weights after five steps. A
// commit draws a third of the layouts; GSWBENCH_ROWS=all trains all.
#include <criterion/criterion.h>

#include "draw.h"
#include "layouts.h"
#include "line.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 5, FP8_STEPS = 3, DRAWN = 3 };

static const char model[] = "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; "
                            "learning_rate 5e-4; recompute_every 2; recompute_save qkv";

// clang-format off
static const char *const layouts[] = {
    "fsdp 2",
    "fsdp 4; prefetch 0",
    "fsdp 4; accumulation 2; prefetch 2; recompute full",
    "fsdp 8; reshard except-last; recompute attention",
    "fsdp 4; prefetch 9; reshard never",
    "fsdp 2; accumulation 4; tied yes",
    "fsdp 4; accumulation 2; reshard except-last; tied yes; recompute selective",
    "fsdp 4; reshard never; tied yes",
    "dp 2; fsdp 2",
    "dp 2; fsdp 2; accumulation 2; tied yes; recompute block_every",
    "dp 2; fsdp 4; prefetch 2; reshard except-last; recompute full",
    "dp 4; fsdp 2",
    "dp 2; zero 1",
    "dp 4; zero 1; accumulation 2; tied yes",
    "dp 8; zero 1; recompute full",
    "dp 4; accumulation 2",
    "tp 2",
    "tp 4; accumulation 2; tied yes; recompute full",
    "tp 2; tied yes; recompute selective",
    "dp 2; tp 2; accumulation 2; recompute attention",
    "dp 2; tp 4; zero 1",
    "fsdp 2; tp 2",
    "fsdp 4; tp 2; accumulation 2; prefetch 2; reshard except-last; tied yes; recompute full",
    "dp 2; fsdp 2; tp 2; accumulation 2; recompute block_every",
    "dp 2; fsdp 2; tp 4; prefetch 0; reshard never; tied yes",
    "cp 2; accumulation 8",
    "cp 4; accumulation 8; tied yes; recompute full",
    "dp 2; cp 2; accumulation 4; recompute attention",
    "dp 2; cp 2; zero 1; accumulation 4; recompute selective",
    "cp 4; zero 1; accumulation 8",
    "fsdp 4; cp 2; accumulation 2",
    "dp 2; fsdp 2; cp 2; accumulation 2; prefetch 2; reshard except-last; tied yes; recompute full",
    "cp 2; shard_over_cp yes",
    "cp 4; shard_over_cp yes; accumulation 2; tied yes; recompute full; context ring",
    "fsdp 2; cp 2; shard_over_cp yes; accumulation 2; prefetch 2; reshard except-last; recompute selective",
    "fsdp 4; cp 2; shard_over_cp yes; reshard never; tied yes",
    "dp 2; cp 2; shard_over_cp yes; accumulation 2; recompute attention; context ring",
    "dp 2; fsdp 2; cp 2; shard_over_cp yes; prefetch 0; recompute block_every",
    "fsdp 2; tp 2; cp 2; shard_over_cp yes; accumulation 2; recompute full; tp_overlap yes",
    "tp 2; cp 4; shard_over_cp yes; tied yes; reshard except-last; sequence_parallel no",
    "cp 2; shard_over_cp yes; pp 2; accumulation 4; layers 4; reshard never",
    "fsdp 2; cp 2; shard_over_cp yes; pp 2; vp 2; accumulation 2; layers 4; recompute full",
    "fsdp 2; cp 2; shard_over_cp yes; tp 2; accumulation 2; compute bf16; reduce bf16",
    "tp 2; cp 2; accumulation 8",
    "dp 2; fsdp 2; tp 2; cp 2; accumulation 2; recompute attention",
    "dp 2; tp 4; cp 2; zero 1; accumulation 4; tied yes; recompute full",
    "cp 2; accumulation 8; context ring; tp_overlap yes",
    "cp 4; accumulation 8; tied yes; recompute full; context ring; tp_overlap yes",
    "dp 2; cp 4; zero 1; accumulation 4; recompute attention; context ring; tp_overlap yes",
    "fsdp 2; tp 2; cp 2; accumulation 4; recompute selective; context ring; tp_overlap yes",
    "dp 2; fsdp 2; cp 4; accumulation 2; reshard except-last; context ring; tp_overlap yes",
    "tp 2; context ring; tp_overlap yes",
    "tp 4; accumulation 2; tied yes; recompute full; context ring; tp_overlap yes",
    "dp 2; fsdp 2; tp 2; accumulation 2; recompute attention; context ring; tp_overlap yes",
    "dp 2; tp 4; cp 2; zero 1; accumulation 4; recompute selective; context ring; tp_overlap yes",
    // cp, with several sequences per microbatch
    "cp 2; accumulation 4",
    "cp 2; context ring; tp_overlap yes",
    "cp 4; accumulation 4; tied yes; recompute selective",
    "dp 2; cp 4; zero 1; recompute full; context ring; tp_overlap yes",
    "fsdp 2; cp 2; accumulation 2; recompute attention",
    "fsdp 2; tp 2; cp 2; accumulation 2; context ring; tp_overlap yes",
    // tp without sequence parallelism
    "tp 2; sequence_parallel no",
    "dp 2; tp 4; zero 1; accumulation 2; sequence_parallel no",
    "fsdp 2; tp 2; accumulation 2; tied yes; recompute full; sequence_parallel no",
    "tp 2; cp 2; accumulation 4; tied yes; recompute attention; sequence_parallel no",
    "tp 2; cp 2; accumulation 8; recompute selective; context ring; sequence_parallel no",
    // QK norm, for which each tp rank has a partial gradient. Heads are larger here: the norm of a small head can be so
    // small that it amplifies FP8 rounding.
    "tp 2; qk_norm yes; head_dim 16; recompute selective",
    "tp 4; kv_heads 4; qk_norm yes; head_dim 16; sequence_parallel no; accumulation 2",
    "fsdp 2; tp 2; qk_norm yes; head_dim 16; sequence_parallel no; accumulation 2; recompute attention",
    "dp 2; tp 2; zero 1; qk_norm yes; head_dim 16; accumulation 2; tp_overlap yes",
    "cp 4; qk_norm yes; head_dim 16; accumulation 8; recompute full",
    "dp 2; fsdp 2; cp 2; qk_norm yes; head_dim 16; context ring; accumulation 2; recompute block_every",
    // BF16 compute with BF16 gradient reduction
    "tp 4; accumulation 2; sequence_parallel no; compute bf16; reduce bf16",
    "tp 2; cp 2; accumulation 2; sequence_parallel no; compute bf16; reduce bf16",
    "dp 2; cp 4; accumulation 2; context ring; tp_overlap yes; compute bf16; reduce bf16",
    "dp 2; tp 4; accumulation 2; context ring; tp_overlap yes; compute bf16; reduce bf16",
    "dp 2; cp 4; accumulation 4; context ring; tp_overlap yes; compute bf16; reduce bf16",
    "dp 2; cp 4; accumulation 4; compute bf16; reduce bf16",
    "fsdp 2; tp 2; cp 2; accumulation 4; tied yes; recompute full; compute bf16; reduce bf16",
    "tp 4; accumulation 2; compute bf16; reduce bf16",
    "dp 2; fsdp 2; tp 2; accumulation 2; tied yes; recompute full; compute bf16; reduce bf16",
    "fsdp 4; compute bf16; reduce bf16",
    "dp 2; fsdp 2; accumulation 2; tied yes; recompute full; compute bf16; reduce bf16",
    "dp 2; fsdp 4; reshard except-last; compute bf16; reduce bf16",
    "dp 4; zero 1; accumulation 2; compute bf16; reduce bf16",
    // scaled embeddings and logits
    "tp 2; accumulation 2; embedding_scale 4; logit_scale 0.6",
    "dp 2; fsdp 2; tp 2; tied yes; embedding_scale 4; logit_scale 1.5; recompute full; sequence_parallel no",
    "dp 2; tp 4; zero 1; embedding_scale 4; logit_scale 0.6; compute bf16; reduce bf16",
    // replicas reduce gradients after every microbatch
    "dp 4; accumulation 2; gradient_reduce microbatch; tied yes",
    "dp 2; zero 1; accumulation 4; gradient_reduce microbatch; tied yes; zero_gather forward",
    "dp 2; fsdp 2; accumulation 2; gradient_reduce microbatch; recompute full",
    "tp 2; cp 2; zero 1; accumulation 8; gradient_reduce microbatch; sequence_parallel no",
    "tp 2; cp 2; accumulation 8; gradient_reduce microbatch; context ring; tp_overlap yes",
    "dp 4; zero 1; accumulation 2; gradient_reduce microbatch; compute bf16; reduce bf16",
    "dp 2; tp 2; accumulation 4; gradient_reduce microbatch; compute bf16; reduce bf16",
};

static const char *const pipelines[] = {
    "pp 2; layers 4",
    "pp 2; accumulation 2",
    "pp 2; accumulation 8; layers 2; layers_per_chunk_embedding yes; recompute full",
    "pp 4; accumulation 4; layers 6",
    "pp 4; accumulation 8; layers 2; layers_per_chunk_embedding yes; recompute attention",
    "pp 4; layers 5",
    "pp 2; vp 2; accumulation 4; layers 4",
    "pp 2; vp 2; layers 6; recompute full",
    "pp 2; vp 3; accumulation 8; layers 4; layers_per_chunk_embedding yes; recompute selective",
    "pp 4; vp 2; accumulation 8; layers 6; layers_per_chunk_embedding yes",
    "dp 2; pp 2; accumulation 2",
    "dp 2; pp 2; vp 2; zero 1; accumulation 4; layers 5; layers_per_chunk_embedding yes",
    "fsdp 2; pp 2; accumulation 4; layers 5",
    "fsdp 2; pp 2; vp 2; accumulation 4; layers 4; prefetch 2; reshard never",
    "dp 2; fsdp 2; pp 2; vp 2; accumulation 2; layers 6; layers_per_chunk_embedding yes; prefetch 2; "
    "reshard except-last; recompute full",
    "tp 2; pp 2; vp 2; accumulation 4; layers 4",
    "tp 2; cp 2; pp 2; vp 2; accumulation 8; layers 6; layers_per_chunk_embedding yes; recompute full",
    "dp 2; tp 2; pp 4; zero 1; accumulation 4; layers 4",
    "tp 2; cp 2; pp 2; vp 2; zero 1; accumulation 8; layers 6; layers_per_chunk_embedding yes; context ring; "
    "tp_overlap yes",
    "dp 2; tp 2; pp 2; vp 2; zero 1; accumulation 4; layers 5; recompute attention; context ring; tp_overlap yes",
    "tp 2; cp 2; pp 2; accumulation 4; layers 4",
    "tp 2; pp 2; accumulation 4; layers 4; sequence_parallel no",
    "tp 2; pp 2; vp 2; zero 1; accumulation 4; layers 4; qk_norm yes; head_dim 16; sequence_parallel no; recompute full",
    // tied embeddings on the first and the last stage
    "pp 2; accumulation 4; layers 4; tied yes",
    "dp 2; pp 4; vp 2; zero 1; accumulation 4; layers 6; layers_per_chunk_embedding yes; tied yes",
    "fsdp 2; tp 2; pp 2; accumulation 4; layers 2; layers_per_chunk_embedding yes; tied yes; recompute full",
    "dp 2; fsdp 2; pp 3; accumulation 2; layers 4; prefetch 2; reshard except-last; tied yes; recompute full; "
    "sequence_parallel no",
    "tp 2; pp 2; accumulation 4; layers 4; tied yes; embedding_scale 4; logit_scale 0.6",
    "dp 2; pp 2; vp 2; accumulation 4; layers 4; tied yes; gradient_reduce microbatch; recompute full",
    "dp 2; pp 2; zero 1; accumulation 4; layers 5; gradient_reduce microbatch; zero_gather forward",
    // BF16 compute with BF16 gradient reduction
    "dp 2; pp 4; accumulation 4; layers 4; tied yes; compute bf16; reduce bf16",
    "pp 4; accumulation 8; layers 4; compute bf16; reduce bf16",
    "dp 2; pp 2; vp 2; zero 1; accumulation 4; layers 4; recompute full; compute bf16; reduce bf16",
    "fsdp 2; tp 2; pp 2; vp 2; accumulation 4; layers 6; layers_per_chunk_embedding yes; compute bf16; reduce bf16",
};
// clang-format on
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]), PIPELINES = sizeof(pipelines) / sizeof(pipelines[0]) };

static struct training describe(const char *layout)
{
    return training_of(model, layout, BATCH, STEPS);
}

static struct training train(const char *layout)
{
    struct training training = describe(layout);
    training_run(&training);
    return training;
}

static void expect_as_one_rank_each(const char *const *list, int count)
{
    for (int i = 0; i < count; i++) {
        struct training many = describe(list[i]);
        if (is_drawn(i, DRAWN)) {
            expect_as_one_rank(&many, layout_alone, list[i]);
        }
    }
}

Test(layout, trains_as_one_rank_does, .timeout = 300)
{
    expect_as_one_rank_each(layouts, LAYOUTS);
}

Test(layout, trains_in_a_pipeline_as_one_rank_does, .timeout = 300)
{
    expect_as_one_rank_each(pipelines, PIPELINES);
}

// Half of the layouts keep weights in BF16, half in FP8. Ranks sum in another order, so single FP8 roundings differ.
static void expect_as_one_rank_in_fp8(const char *layout, int row, enum scaling_recipe recipe)
{
    struct training many            = describe(layout);
    many.steps                      = FP8_STEPS;
    many.tiny.precision.compute     = COMPUTE_FP8;
    many.tiny.precision.recipe      = recipe;
    many.tiny.precision.fp8_history = 3;
    many.tiny.precision.fp8_weights = row % 2 && recipe < RECIPE_BLOCK;
    struct training one             = on_one_rank(&many, layout_alone);
    const char     *name            = line_of("%s, recipe %d", layout, recipe);
    training_run(&one);
    expect_losses(&many, &one, 1e-2, name);
    expect_near(many.norm[0], one.norm[0], 5e-2, name);
}

// A commit runs a third of the layouts, each with one FP8 recipe.
static void expect_as_one_rank_in_recipes(const char *const *list, int count)
{
    enum { RECIPES = RECIPE_ROWS - RECIPE_DELAYED + 1 };
    for (int i = 0; i < count; i++) {
        for (int recipe = 0; recipe < RECIPES; recipe++) {
            if (is_drawn(RECIPES * i + (recipe + i) % RECIPES, DRAWN * RECIPES)) {
                expect_as_one_rank_in_fp8(list[i], i / RECIPES, (enum scaling_recipe)(RECIPE_DELAYED + recipe));
            }
        }
    }
}

Test(layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    expect_as_one_rank_in_recipes(layouts, LAYOUTS);
    expect_as_one_rank_in_recipes(pipelines, PIPELINES);
}

Test(layout, repeats_bit_for_bit, .timeout = 240)
{
    // clang-format off
    static const char *const mixes[] = {
        "dp 2; tp 2; cp 2; accumulation 4; prefetch 2; recompute full; context ring; tp_overlap yes; compute bf16; "
        "reduce bf16",
        "dp 2; fsdp 2; tp 2; accumulation 2; reshard except-last; tied yes; recompute selective; compute bf16; "
        "reduce bf16",
        "dp 2; pp 2; vp 2; zero 1; accumulation 4; layers 5; layers_per_chunk_embedding yes; recompute full; "
        "compute bf16; reduce bf16",
        "tp 2; cp 2; pp 2; vp 2; zero 1; accumulation 8; layers 6; layers_per_chunk_embedding yes; context ring; "
        "tp_overlap yes",
        "fsdp 2; cp 2; pp 2; accumulation 4; compute bf16; reduce bf16",
    };
    // clang-format on
    for (size_t i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++) {
        struct training first = describe(mixes[i]), second = first;
        expect_same_training(&first, &second, &(struct closeness){0}, mixes[i]);
    }
}

Test(layout, shards_weights_gradients_and_optimizer, .timeout = 60)
{
    struct training one = train("compute bf16; reduce bf16"), sharded = train("fsdp 4; compute bf16; reduce bf16"),
                    shared = train("dp 4; zero 1; compute bf16; reduce bf16"),
                    summed =
                        train("dp 4; zero 1; accumulation 2; gradient_reduce microbatch; compute bf16; reduce bf16");
    for (int storage = STORAGE_WEIGHT; storage <= STORAGE_OPTIMIZER; storage++) {
        int64_t whole = one.planned_bytes[storage];
        cr_expect_leq(sharded.planned_bytes[storage], whole / 4 + whole / 10, "%d", storage);
        if (storage == STORAGE_OPTIMIZER) {
            cr_expect_leq(shared.planned_bytes[storage], whole / 4 + whole / 10);
        } else {
            cr_expect_geq(shared.planned_bytes[storage], whole);
        }
        if (storage == STORAGE_WEIGHT) {
            cr_expect_geq(summed.planned_bytes[storage], whole);
        } else {
            cr_expect_leq(summed.planned_bytes[storage], whole / 4 + whole / 10);
        }
    }
}

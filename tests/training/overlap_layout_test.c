// SPDX-License-Identifier: MIT
// Interleaved forward and backward microbatches train as one rank does in sequence. Compares losses, gradient norms,
// and weights after three steps.
#include <criterion/criterion.h>

#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 3 };

static const char model[] = "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; experts 4; top_k 2; "
                            "auxiliary_loss 0.05; capacity_scope sequence; sequence 16; learning_rate 5e-4; "
                            "recompute_every 2; recompute_save qkv, dispatch, fc1; overlap_microbatches yes";

// clang-format off
static const char *const layouts[] = {
    // dropless, or balanced
    "dp 2; ep 2; accumulation 2",
    "dp 2; ep 2; accumulation 4; layers 2; shared_ffn 12; recompute full; delay_weight_gradients yes",
    "dp 4; ep 4; accumulation 2; capacity_factor 1; zero 1; recompute selective",
    "dp 2; ep 2; accumulation 4; experts 8; zero 1; zero_gather forward; recompute attention",
    // layers without experts, whose backward order differs
    "dp 2; ep 2; accumulation 2; layers 4; pattern dense, experts; recompute block_every",
    "dp 2; ep 2; accumulation 4; layers 4; pattern 2 x experts, 2 x dense; shared_ffn 12; tied yes",
    // weights that both passes gather and release
    "fsdp 2; ep 2; accumulation 4; recompute full",
    "fsdp 4; ep 2; accumulation 2; prefetch 2; reshard except-last; shared_ffn 12",
    "fsdp 4; ep 4; accumulation 2; prefetch 0; reshard never; capacity_factor 1",
    // tp and cp
    "dp 2; ep 2; tp 2; accumulation 2; capacity_factor 1; tp_overlap yes; delay_weight_gradients yes",
    "dp 2; tp 2; ep 4; etp 1; accumulation 2; shared_ffn 12; recompute selective",
    "dp 2; ep 2; cp 2; accumulation 2; context ring; shared_ffn 12",
    // pipelines with and without chunks, with an incomplete last group, with fewer microbatches than stages
    "dp 2; ep 2; pp 2; accumulation 4; layers 4",
    "dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4; shared_ffn 12; zero 1",
    "dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 5; pattern dense, 4 x experts; capacity_factor 1; recompute full",
    "dp 2; ep 2; pp 4; accumulation 4; layers 4; deferred_head_gradients 2",
    "dp 4; ep 2; accumulation 2; layers 2; gradient_reduce microbatch; delay_weight_gradients yes",
    "fsdp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4; tied yes",
    "dp 2; ep 2; tp 2; pp 2; vp 2; accumulation 4; layers 4; etp 1; zero 1; experts 8; router_score sigmoid; router_bias_rate 0.02",
};
// clang-format on
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

// Keeps the microbatch size: where ranks compete for capacity, the same tokens must compete.
static struct training alone(const struct training *many)
{
    struct training one = *many;
    one.ranks           = 1;
    layout_alone_in_turn(&one.tiny);
    return one;
}

Test(overlap_layout, trains_as_one_rank_does, .timeout = 300)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5};
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many = training_of(model, layouts[i], BATCH, STEPS), one = alone(&many);
        expect_same_training(&many, &one, &exact, layouts[i]);
    }
}

// Rotates through the FP8 recipes. Ranks reduce in a different order, so single FP8 roundings differ.
Test(overlap_layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS; i += 3) {
        struct training many           = training_of(model, layouts[i], BATCH, STEPS);
        many.tiny.precision.compute    = COMPUTE_FP8;
        many.tiny.precision.fp8_recipe = i / 3 % (RECIPE_MXFP8 + 1);
        struct training one            = alone(&many);
        training_run(&many);
        training_run(&one);
        for (int step = 0; step < STEPS; step++) {
            expect_near(many.loss[step], one.loss[step], 1e-2, layouts[i]);
        }
        cr_expect_arr_eq(many.storage_bytes, many.planned_bytes, sizeof(many.planned_bytes), "%s", layouts[i]);
    }
}

// SPDX-License-Identifier: MIT
// Shared experts and every kind of router: every layout trains as one rank does. Compares losses, gradient norms, and
// weights after three steps.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 3 };

static const char model[] = "layers 2; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; experts 4; top_k 2; "
                            "auxiliary_loss 0.05; capacity_scope sequence; sequence 16; learning_rate 5e-4; "
                            "recompute_every 2; recompute_save qkv, dispatch, fc1";

// clang-format off
static const char *const layouts[] = {
    // shared experts
    "shared_ffn 12; accumulation 2; recompute full",
    "shared_ffn 12; dp 2; ep 2; recompute selective",
    "shared_ffn 24; dp 4; ep 4; zero 1; accumulation 2; capacity_factor 1",
    "shared_ffn 12; fsdp 4; ep 2; accumulation 2; prefetch 2; reshard except-last; recompute full",
    "shared_ffn 12; tp 2; recompute attention",
    "shared_ffn 12; tp 2; sequence_parallel no; accumulation 2; recompute selective",
    "shared_ffn 12; tp 4; accumulation 2; context ring; tp_overlap yes; recompute full",
    "shared_ffn 12; dp 2; ep 2; tp 2; capacity_factor 1; recompute selective",
    "shared_ffn 12; tp 2; ep 2; etp 1; accumulation 2; recompute full",
    "shared_ffn 16; dp 2; tp 2; ep 4; etp 1; zero 1; tp_overlap yes",
    "shared_ffn 12; dp 2; tp 2; cp 2; ep 8; etp 1; experts 8; accumulation 2; recompute block_every",
    "shared_ffn 12; dp 2; ep 2; cp 2; accumulation 2; context ring; recompute selective",
    "shared_ffn 12; dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4; pattern dense, experts; recompute full",
    "shared_ffn 12; fsdp 2; ep 2; pp 2; accumulation 4; layers 4; pattern dense, experts",
    "shared_ffn 12; dp 2; ep 2; tp 2; zero 1; zero_gather forward; activation gelu; accumulation 2",
    "shared_ffn 12; dp 4; ep 4; tp 2; pp 2; zero 1; accumulation 2; experts 8; context ring; tp_overlap yes; "
    "capacity_scope rank; routing balanced; compute bf16; reduce bf16",
    // sigmoid scores, raw or normalised
    "router_score sigmoid; accumulation 2; recompute full",
    "router_score sigmoid; router_scale 2.5; dp 2; ep 2; accumulation 2",
    "router_score sigmoid; router_normalise no; tp 2; recompute selective",
    "router_score softmax; router_normalise no; dp 2; ep 2; cp 2",
    "router_score sigmoid; capacity_factor 1; dp 4; ep 4; zero 1",
    "router_score sigmoid; router_scale 2; fsdp 4; ep 2; accumulation 2; recompute full",
    "router_score sigmoid; tp 2; ep 2; etp 1; accumulation 2",
    "router_score softmax; router_normalise no; router_scale 3; dp 2; tp 2; ep 4; etp 1",
    // groups
    "experts 8; router_groups 4; router_top_groups 2; accumulation 2",
    "experts 8; router_groups 2; router_top_groups 1; router_score sigmoid; dp 2; ep 2",
    "experts 8; router_groups 4; router_top_groups 3; top_k 3; router_score sigmoid; dp 4; ep 4; zero 1",
    "experts 8; router_groups 4; router_top_groups 2; router_score sigmoid; tp 2; ep 4; etp 1; dp 2; recompute full",
    "experts 8; router_groups 8; router_top_groups 4; fsdp 4; ep 4; accumulation 2; capacity_factor 1",
    "experts 8; router_groups 4; router_top_groups 2; router_score sigmoid; tp 2; cp 2; ep 2; etp 1; context ring",
    // router biases, updated by the loads of every rank
    "router_bias_rate 0.02; accumulation 2",
    "router_bias_rate 0.02; router_score sigmoid; dp 2; ep 2; recompute full",
    "router_bias_rate 0.05; router_score sigmoid; fsdp 4; ep 2; accumulation 2",
    "router_bias_rate 0.02; router_score sigmoid; tp 2; accumulation 2; recompute selective",
    "router_bias_rate 0.02; router_score sigmoid; tp 2; sequence_parallel no",
    "router_bias_rate 0.02; router_score sigmoid; dp 2; ep 2; cp 2; zero 1; accumulation 2",
    "router_bias_rate 0.02; router_score sigmoid; dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4",
    "router_bias_rate 0.02; router_score sigmoid; pp 2; accumulation 4; layers 4; pattern dense, experts",
    "router_bias_rate 0.05; router_score sigmoid; dp 2; tp 2; ep 4; etp 1; zero 1; capacity_factor 1",
    // DeepSeek-V3: the features above combined
    "experts 8; expert_ffn 8; shared_ffn 8; router_groups 4; router_top_groups 2; router_score sigmoid; router_scale 2.5; "
    "router_bias_rate 0.02; dp 4; ep 4; pp 2; zero 1; accumulation 2; layers 4; pattern dense, experts; recompute full",
    "experts 8; expert_ffn 8; shared_ffn 8; router_groups 4; router_top_groups 2; router_score sigmoid; router_scale 2.5; "
    "router_bias_rate 0.02; dp 2; tp 2; ep 4; etp 1; pp 2; accumulation 2; layers 4; pattern dense, experts",
    "experts 8; expert_ffn 8; shared_ffn 8; router_groups 4; router_top_groups 2; router_score sigmoid; router_scale 2.5; "
    "router_bias_rate 0.02; fsdp 2; tp 2; cp 2; ep 8; etp 1; accumulation 2; layers 3; pattern dense, experts",
    "experts 8; expert_ffn 8; shared_ffn 8; router_groups 4; router_top_groups 2; router_score sigmoid; router_scale 2.5; "
    "router_bias_rate 0.02; dp 2; fsdp 4; ep 4; layers 3; pattern dense, experts; recompute selective; top_k 4",
    // skewed towards the first experts
    "routing skewed; routing_skew 1.5; dp 2; ep 2; capacity_scope rank",
    "routing skewed; routing_skew 1.5; fsdp 4; ep 4; accumulation 2; capacity_scope rank; recompute full",
    "routing skewed; routing_skew 2; dp 4; ep 2; zero 1; capacity_scope rank; capacity_factor 1; shared_ffn 12",
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

// Every third row, unless GSWBENCH_ROWS=all.
static int stride(void)
{
    const char *rows = getenv("GSWBENCH_ROWS");
    return rows != NULL && strcmp(rows, "all") == 0 ? 1 : 3;
}

Test(routed_layout, trains_as_one_rank_does, .timeout = 300)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5}, narrow = {1e-2, 3e-2, 3e-2};
    for (int i = 0; i < LAYOUTS; i += stride()) {
        struct training many = training_of(model, layouts[i], BATCH, STEPS), one = alone(&many);
        bool            is_narrow = many.tiny.precision.compute == COMPUTE_BF16;
        expect_same_training(&many, &one, is_narrow ? &narrow : &exact, layouts[i]);
    }
}

// Rotates through the FP8 recipes. Ranks reduce in a different order, so single FP8 roundings differ.
Test(routed_layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    for (int i = 1; i < LAYOUTS; i += stride()) {
        struct training many           = training_of(model, layouts[i], BATCH, STEPS);
        many.tiny.precision.compute    = COMPUTE_FP8;
        many.tiny.precision.fp8_recipe = i % (RECIPE_MXFP8 + 1);
        struct training one            = alone(&many);
        training_run(&many);
        training_run(&one);
        for (int step = 0; step < STEPS; step++) {
            expect_near(many.loss[step], one.loss[step], 1e-2, layouts[i]);
        }
        cr_expect_arr_eq(many.storage_bytes, many.planned_bytes, sizeof(many.planned_bytes), "%s", layouts[i]);
    }
}

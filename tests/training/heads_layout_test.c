// SPDX-License-Identifier: MIT
// KV heads that tp ranks share, and heads exchanged over cp (Ulysses): every layout trains as one rank does. Compares
// losses, gradient norms, and weights after five steps.
#include <criterion/criterion.h>
#include <stdio.h>

#include "gswbench/proof.h"
#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 5, FP8_STEPS = 3 };

// Biases start at zero; the learning rate is high enough to move them.
static const char model[] = "layers 2; ffn 20; vocab 37; vocab_multiple 2; sequence 16; learning_rate 2e-3; "
                            "recompute_every 2; recompute_save qkv";

// Four heads.
// clang-format off
static const char *const layouts[] = {
    "tp 4; kv_heads 2",
    "tp 4; kv_heads 1; accumulation 2; tied yes; recompute full; tp_overlap yes",
    "tp 2; kv_heads 1; cp 2; accumulation 4; context ring",
    "fsdp 2; tp 4; kv_heads 2; qk_norm yes; head_dim 16; sequence_parallel no; accumulation 2",
    "dp 2; tp 4; kv_heads 2; zero 1; accumulation 2; attention_bias yes; qk_norm yes; head_dim 16",
    "fsdp 2; cp 2; tp 4; kv_heads 2; shard_over_cp yes; attention_bias yes; tied yes; recompute selective",
    "tp 4; kv_heads 2; pp 2; zero 1; accumulation 4; attention_bias yes; attention_sinks yes",
    "dp 2; tp 4; kv_heads 2; accumulation 2; compute bf16; reduce bf16",
    "cp 2; context exchange",
    "cp 4; kv_heads 4; context exchange; accumulation 4; tied yes; recompute full",
    "cp 2; tp 2; kv_heads 4; context exchange; accumulation 2; recompute attention; tp_overlap yes",
    "dp 2; cp 2; context exchange; qk_norm yes; head_dim 16; attention_bias yes; zero 1; accumulation 2",
    "fsdp 2; cp 2; context exchange; shard_over_cp yes; recompute selective; sequence_parallel no",
    "cp 2; pp 2; vp 2; layers 4; context exchange; accumulation 4; recompute block_every",
    "cp 4; kv_heads 4; context exchange; pattern window_attention + mlp, dense; window 5; recompute modules",
    "dp 2; ep 2; cp 2; context exchange; pattern dense, experts; experts 4; top_k 2; capacity_scope sequence",
    "dp 2; cp 2; context exchange; accumulation 2; compute bf16; reduce bf16",
};
// clang-format on
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static struct training alone(const struct training *many)
{
    struct training one = *many;
    one.ranks           = 1;
    layout_alone(&one.tiny);
    return one;
}

Test(heads_layout, trains_as_one_rank_does, .timeout = 300)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5}, narrow = {1e-2, 3e-2, 0.5};
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many = training_of(model, layouts[i], BATCH, STEPS), one = alone(&many);
        bool            is_narrow = many.tiny.precision.compute == COMPUTE_BF16;
        expect_same_training(&many, &one, is_narrow ? &narrow : &exact, layouts[i]);
    }
}

// Rotates through the FP8 recipes. Ranks scale their part of a matrix by its maximum, so a shared head rounds to
// different FP8 values.
Test(heads_layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many            = training_of(model, layouts[i], BATCH, FP8_STEPS);
        many.tiny.precision.compute     = COMPUTE_FP8;
        many.tiny.precision.fp8_recipe  = RECIPE_DELAYED + i % (RECIPE_BLOCK - RECIPE_DELAYED + 1);
        many.tiny.precision.fp8_weights = i % 2 && many.tiny.precision.fp8_recipe < RECIPE_BLOCK;
        struct training one             = alone(&many);
        training_run(&many);
        training_run(&one);
        for (int step = 0; step < FP8_STEPS; step++) {
            char name[256];
            snprintf(name, sizeof(name), "%s, step %d: loss", layouts[i], step);
            expect_near(many.loss[step], one.loss[step], 1e-2, name);
        }
    }
}

Test(heads_layout, passes_the_proof_of_the_job)
{
    for (int i = 0; i < LAYOUTS; i++) {
        struct training     training = training_of(model, layouts[i], BATCH, STEPS);
        struct plan_request request  = tiny_request(&training.tiny, training.ranks, 0);
        struct job_proof    proof;
        status              result = job_verify(&request, &proof);
        cr_expect(!failed(&result), "%s: %s", layouts[i], result.text);
        cr_expect_eq(proof.findings, 0, "%s", layouts[i]);
    }
}

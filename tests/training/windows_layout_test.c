// SPDX-License-Identifier: MIT
// Sliding windows, attention sinks and biases: every layout trains as one rank does. Compares losses, gradient norms,
// and weights after five steps.
#include <criterion/criterion.h>
#include <stdio.h>

#include "gswbench/proof.h"
#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 5 };

// Biases start at zero; the learning rate is high enough to move them.
static const char model[] =
    "layers 4; pattern 2 x (window_attention + experts, dense); window 5; attention_sinks yes; attention_bias yes; "
    "mlp_bias yes; router_offset yes; ffn 20; expert_ffn 12; kv_heads 4; vocab 37; vocab_multiple 2; experts 4; "
    "top_k 2; shared_ffn 8; auxiliary_loss 0.05; capacity_scope sequence; sequence 16; learning_rate 2e-3; "
    "recompute_every 2; recompute_save qkv, dispatch; context gather";

// clang-format off
static const char *const layouts[] = {
    "accumulation 2; recompute full",
    "dp 2; ep 2; accumulation 2",
    "dp 4; ep 2; zero 1; recompute attention",
    "tp 2",
    "tp 4; recompute full; tp_overlap yes",
    "tp 2; sequence_parallel no; accumulation 2",
    "dp 2; ep 2; tp 2; sequence_parallel no; zero 1; recompute selective",
    "dp 2; ep 2; tp 2; tp_overlap yes; accumulation 2",
    "dp 2; ep 2; tp 2; tp_overlap yes; tp_overlap_experts no; recompute block_every",
    "dp 2; tp 2; ep 4; etp 1; zero 1; accumulation 2",
    "fsdp 4; tp 2; ep 4; etp 1; reshard never; recompute full",
    "fsdp 4; accumulation 2; prefetch 0",
    "fsdp 4; ep 2; reshard except-last; recompute attention",
    "fsdp 2; tp 2; accumulation 2; recompute selective",
    "dp 2; fsdp 2; ep 2; recompute full",
    "cp 2; accumulation 2",
    "dp 2; ep 2; cp 2; tp 2; zero 1; recompute full",
    "cp 4; sequence 32; window 11; tp 2; sequence_parallel no",
    "pp 2; accumulation 4",
    "dp 2; ep 2; pp 2; vp 2; zero 1; accumulation 4; recompute full",
    "fsdp 2; tp 2; pp 2; accumulation 4; tp_overlap yes",
    "dp 2; cp 2; context ring; pattern dense, experts, dense, experts; window 0; accumulation 2; recompute attention",
    "dp 2; tp 2; ep 2; activation gelu; norm layernorm; capacity_factor 1",
    // bf16 with bf16 gradient reduction
    "dp 2; tp 2; ep 4; etp 1; zero 1; accumulation 2; capacity_factor 1; capacity_scope rank; routing balanced; "
    "recompute full; compute bf16; reduce bf16",
    "fsdp 4; ep 2; accumulation 2; capacity_factor 1; capacity_scope rank; routing balanced; recompute full; "
    "compute bf16; reduce bf16",
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

Test(windows_layout, trains_as_one_rank_does, .timeout = 300)
{
    // Rounding in bf16 determines the smallest bias gradients, which AdamW turns into full steps.
    static const struct closeness exact = {1e-5, 1e-5, 1e-5}, narrow = {1e-2, 3e-2, 0.5};
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many = training_of(model, layouts[i], BATCH, STEPS), one = alone(&many);
        bool            is_narrow = many.tiny.precision.compute == COMPUTE_BF16;
        expect_same_training(&many, &one, is_narrow ? &narrow : &exact, layouts[i]);
    }
}

// Rotates through the FP8 recipes. Ranks reduce in a different order, so single FP8 roundings differ.
Test(windows_layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS; i += 2) {
        struct training many = training_of(model, layouts[i], BATCH, STEPS), one = alone(&many);
        struct training runs[] = {many, one};
        for (int run = 0; run < 2; run++) {
            runs[run].tiny.precision.compute    = COMPUTE_FP8;
            runs[run].tiny.precision.fp8_recipe = i / 2 % (RECIPE_BLOCK + 1);
            training_run(&runs[run]);
        }
        for (int step = 0; step < STEPS; step++) {
            char name[400];
            snprintf(name, sizeof(name), "%s, step %d: loss", layouts[i], step);
            expect_near(runs[0].loss[step], runs[1].loss[step], 1e-2, name);
        }
    }
}

Test(windows_layout, passes_the_proof_of_the_job)
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

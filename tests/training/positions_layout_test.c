// SPDX-License-Identifier: MIT
// Learned positions and ALiBi: every layout trains as one rank does. Compares losses, gradient norms, and weights
// after five steps.
#include <criterion/criterion.h>
#include <stdio.h>

#include "gswbench/proof.h"
#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 5 };

// Like GPT-3, and like MPT with ALiBi and a number of heads that is no power of two. Without RoPE, a key bias adds a
// constant to every score of a query. Its gradient would be pure rounding, so attention has no bias here.
static const char model[] =
    "layers 4; norm layernorm; activation gelu; mlp_bias yes; tied yes; heads 12; kv_heads 12; "
    "head_dim 4; vocab 37; vocab_multiple 2; sequence 16; learning_rate 2e-3; recompute_every 2; "
    "recompute_save qkv";

// clang-format off
static const char *const layouts[] = {
    "positions learned; max_positions 19; accumulation 2; recompute full",
    "positions learned; max_positions 19; dp 4; zero 1; accumulation 2",
    "positions learned; max_positions 16; tp 2",
    "positions learned; max_positions 19; tp 4; sequence_parallel no; accumulation 2",
    "positions learned; max_positions 19; tp 4; tp_overlap yes; recompute full; accumulation 2",
    "positions learned; max_positions 19; dp 2; tp 2; zero 1; tied no",
    "positions learned; max_positions 19; fsdp 4; accumulation 2; recompute full",
    "positions learned; max_positions 19; fsdp 2; tp 2; accumulation 2; reshard never",
    "positions learned; max_positions 19; cp 2; context ring; accumulation 2",
    "positions learned; max_positions 19; cp 2; tp 2; context gather; zero 1",
    "positions learned; max_positions 19; cp 4; tp 2; context ring; sequence_parallel no",
    "positions learned; max_positions 19; pp 2; accumulation 4",
    "positions learned; max_positions 19; pp 2; tp 2; accumulation 4; zero 1; dp 2",
    "positions learned; max_positions 19; pp 4; tp 2; sequence_parallel no; accumulation 4; deferred_head_gradients 2",
    "positions learned; max_positions 19; pp 2; vp 2; dp 2; accumulation 4; tied no",
    "positions learned; max_positions 19; pp 2; fsdp 2; accumulation 4; recompute full",
    "positions learned; max_positions 19; pp 2; cp 2; accumulation 4",
    "positions alibi; accumulation 2; recompute full",
    "positions alibi; dp 4; zero 1; recompute attention",
    "positions alibi; tp 2",
    "positions alibi; tp 4; sequence_parallel no; recompute selective",
    "positions alibi; fsdp 2; tp 2; accumulation 2; recompute full",
    "positions alibi; cp 2; context ring; accumulation 2",
    "positions alibi; cp 4; context ring; recompute full",
    "positions alibi; cp 4; tp 2; context gather; accumulation 2",
    "positions alibi; cp 2; context exchange; accumulation 2",
    "positions alibi; cp 3; tp 2; context exchange; sequence 24; recompute attention",
    "positions alibi; dp 2; cp 4; context exchange; zero 1; recompute full",
    "positions alibi; cp 2; context gather; pattern 2 x (window_attention + mlp, dense); window 5",
    "positions alibi; pp 2; accumulation 4",
    "positions alibi; dp 2; pp 2; cp 2; context ring; accumulation 4; kv_heads 4",
    "positions none; tp 2; cp 2; accumulation 2",
};
// clang-format on
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static struct training alone(const struct training *many)
{
    struct training one = *many;
    one.ranks           = 1;
    layout_alone_in_turn(&one.tiny);
    return one;
}

Test(positions_layout, trains_as_one_rank_does, .timeout = 300)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5};
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many = training_of(model, layouts[i], BATCH, STEPS), one = alone(&many);
        expect_same_training(&many, &one, &exact, layouts[i]);
    }
}

// FP8 weights have a separate parameter group from the tables.
Test(positions_layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS; i += 3) {
        struct training many = training_of(model, layouts[i], BATCH, STEPS), one = alone(&many);
        struct training runs[] = {many, one};
        for (int run = 0; run < 2; run++) {
            runs[run].tiny.precision.compute     = COMPUTE_FP8;
            runs[run].tiny.precision.fp8_weights = i % 2;
            training_run(&runs[run]);
        }
        for (int step = 0; step < STEPS; step++) {
            char name[400];
            snprintf(name, sizeof(name), "%s, step %d: loss", layouts[i], step);
            expect_near(runs[0].loss[step], runs[1].loss[step], 1e-2, name);
        }
    }
}

Test(positions_layout, passes_the_proof_of_the_job)
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

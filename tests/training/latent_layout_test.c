// SPDX-License-Identifier: MIT
// Latent attention trains in every layout as on one rank, also with experts, and passes verification of the job.
#include <criterion/criterion.h>
#include <stdio.h>

#include "gswbench/proof.h"
#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 5, FP8_STEPS = 3 };

static const char model[] =
    "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; learning_rate 5e-4; "
    "recompute_every 2; recompute_save latent; kv_rank 12; q_rank 10; rope_dim 6; value_dim 5";
static const char experts[] =
    "pattern dense, 2 x experts; experts 8; top_k 3; expert_ffn 12; shared_ffn 14; router_score sigmoid; "
    "router_groups 4; router_top_groups 2; router_scale 2.5; router_bias_rate 0.01; auxiliary_loss 0.02; "
    "capacity_scope sequence; ";

// clang-format off
static const char *const layouts[] = {
    "tp 2",
    "tp 4; accumulation 2; recompute full",
    "tp 2; tp_overlap yes; recompute selective",
    "tp 2; q_rank 0; recompute selective; recompute_save qkv",
    "tp 4; q_rank 0; sequence_parallel no; accumulation 2",
    "dp 2; tp 2; zero 1; sequence_parallel no; recompute attention",
    "fsdp 4; accumulation 2; prefetch 2; recompute block_every",
    "dp 2; fsdp 2; tp 2; accumulation 2; reshard except-last; recompute selective; recompute_save norm, latent, projection",
    "cp 2; accumulation 4",
    "cp 4; accumulation 2; context ring; recompute full",
    "tp 2; cp 2; value_dim 0; accumulation 2",
    "fsdp 2; tp 2; cp 2; context ring; value_dim 9; recompute selective",
    "pp 2; vp 2; accumulation 4; layers 4; recompute full",
    "tp 2; pp 2; accumulation 4; layers 4; zero 1; dp 2",
};
static const char *const layouts_of_experts[] = {
    "dp 2; ep 2",
    "dp 4; ep 4; zero 1; accumulation 2; recompute full",
    "fsdp 4; ep 2; accumulation 2; recompute selective; recompute_save latent, dispatch",
    "dp 2; ep 2; tp 2; accumulation 2; recompute selective; recompute_save norm, latent",
    "dp 2; ep 2; pp 2; vp 2; zero 1; accumulation 4; layers 4; pattern dense, 3 x experts",
    "tp 2; ep 2; etp 1; accumulation 2",
    "dp 2; tp 2; ep 4; etp 1; pp 2; accumulation 4; layers 4; pattern 3 x latent + mlp, latent + experts",
};
// clang-format on
enum {
    LAYOUTS    = sizeof(layouts) / sizeof(layouts[0]),
    OF_EXPERTS = sizeof(layouts_of_experts) / sizeof(layouts_of_experts[0])
};

// Layouts with experts come last.
static struct training describe(int i, char name[512])
{
    bool has_experts = i >= LAYOUTS;
    snprintf(name, 512, "%s%s", has_experts ? experts : "", has_experts ? layouts_of_experts[i - LAYOUTS] : layouts[i]);
    return training_of(model, name, BATCH, STEPS);
}

static struct training alone(const struct training *many)
{
    struct training one = *many;
    one.ranks           = 1;
    layout_alone_in_turn(&one.tiny);
    return one;
}

Test(latent_layout, trains_as_one_rank_does, .timeout = 300)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5};
    for (int i = 0; i < LAYOUTS + OF_EXPERTS; i++) {
        char            name[512];
        struct training many = describe(i, name), one = alone(&many);
        expect_same_training(&many, &one, &exact, name);
    }
}

// Weights in BF16 and, in every second layout, in FP8.
Test(latent_layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS + OF_EXPERTS; i++) {
        char            name[512];
        struct training many   = describe(i, name);
        struct training runs[] = {many, alone(&many)};
        for (int run = 0; run < 2; run++) {
            runs[run].steps                      = FP8_STEPS;
            runs[run].tiny.precision.compute     = COMPUTE_FP8;
            runs[run].tiny.precision.fp8_weights = i % 2;
            training_run(&runs[run]);
        }
        for (int step = 0; step < FP8_STEPS; step++) {
            expect_near(runs[0].loss[step], runs[1].loss[step], 1e-2, name);
        }
    }
}

Test(latent_layout, passes_the_proof_of_the_job)
{
    for (int i = 0; i < LAYOUTS + OF_EXPERTS; i++) {
        char                name[512];
        struct training     training = describe(i, name);
        struct plan_request request  = tiny_request(&training.tiny, training.ranks, 0);
        struct job_proof    proof;
        status              result = job_verify(&request, &proof);
        cr_expect(!failed(&result), "%s: %s", name, result.text);
        cr_expect_eq(proof.findings, 0, "%s", name);
    }
}

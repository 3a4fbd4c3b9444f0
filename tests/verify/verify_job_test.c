// SPDX-License-Identifier: MIT
// Tests that verification accepts jobs with correct plans, with all options, and how many classes of ranks with equal
// communication they have.
#include <criterion/criterion.h>

#include "faulty.h"
#include "gswbench/job.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "line.h"
#include "success.h"

static void expect_sound(status result, const struct job_proof *proof, int64_t built, int64_t distinct)
{
    cr_expect(!failed(&result), "%s", result.text);
    cr_expect_eq(proof->findings, 0);
    cr_expect_eq(proof->built, built, "%d built", (int)proof->built);
    cr_expect_eq(proof->classes, distinct, "%d distinct", (int)proof->classes);
}

Test(verify_job, finds_nothing_in_any_sound_job)
{
    for (int variant = 0; variant < 48; variant++) {
        int              fsdp = variant % 3 == 0 ? 1 : variant % 3 * 2;
        int              dp = 1 + variant / 3 % 3, tp = variant % 7 < 3 ? 2 : 1;
        struct faulty    faulty = faulty_of(line_of("fsdp %d; dp %d; tp %d", fsdp, dp, tp));
        struct tiny     *tiny   = &faulty.tiny;
        struct job_proof proof;
        tiny->parallel.sequence_parallel = variant % 2;
        tiny->parallel.zero              = variant % 3 == 0 && variant % 2 == 1;
        tiny->parallel.gradient_reduce   = variant / 3 % 3 > 0 && variant / 9 % 2 == 1;
        tiny->parallel.prefetch          = variant % 5;
        tiny->parallel.reshard           = variant / 6 % 3;
        tiny->train.accumulation         = 1 + variant % 2;
        tiny->train.recompute            = variant % 5;
        tiny->model.tied                 = variant / 4 % 2;
        tiny->precision.compute          = variant % 4 < 2 ? COMPUTE_BF16 : COMPUTE_FP32;
        tiny->precision.reduce           = variant % 4 == 1 ? FORMAT_BF16 : FORMAT_F32;
        status result                    = faulty_verify(&faulty, &proof);
        // Each tp rank reduces other parts of the gradients, in another number of ops, so plans of tp ranks are
        // distinct.
        expect_sound(result, &proof, faulty.world > 8 ? proof.built : faulty.world,
                     tiny->parallel.tp > 1 ? proof.classes : 1);
        cr_expect_eq(proof.world, faulty.world);
    }
}

Test(verify_job, lets_few_ranks_of_a_large_job_stand_for_all)
{
    struct faulty    faulty = faulty_of("fsdp 128; dp 16; layers 24");
    struct job_proof proof;
    // Plans are built for rank 0, the second and last rank along fsdp, the second and last along dp, and the last rank
    // of the job.
    expect_sound(faulty_verify(&faulty, &proof), &proof, 6, 1);
}

Test(verify_job, sees_no_difference_in_how_ranks_split_the_same_work)
{
    // Ranks quantize different ranges of weights, tp ranks sum squares of different gradients, and cp ranks see
    // different keys. None of these makes plans distinct.
    for (int variant = 0; variant < 8; variant++) {
        const char *layout = line_of(
            "dp 2; %s; context ring; zero 1; zero_gather %s; micro_batch 1; compute fp8; recipe %s; fp8_weights yes",
            variant < 4 ? "tp 2" : "cp 2", variant % 2 == 0 ? "forward" : "optimizer",
            variant % 4 < 2 ? "delayed" : "current");
        struct faulty    faulty = faulty_of(layout);
        struct job_proof proof;
        expect_sound(faulty_verify(&faulty, &proof), &proof, 4, 1);
    }
}

// The first dp ranks have shards that consist of weights replicated over tp. Only tp rank 0 sums the squares of these.
// So other tp ranks wait for the gradient reduction in another op, but before everything after the norm.
Test(verify_job, sees_no_difference_in_where_local_work_waits)
{
    struct job       job;
    struct job_proof proof;
    layout_job(&job, "tiny-llama", 16,
               "model.family=gswbench model.kv_heads=4 model.q_rank=512 model.kv_rank=32 model.rope_dim=8 "
               "model.value_dim=16 model.layers=4 parallel.tp=2 parallel.pp=2 parallel.zero=1 "
               "parallel.sequence_parallel=yes train.micro_batch=1 train.global_batch=32");
    expect_sound(job_verify(&job.request, &proof), &proof, 16, 2);
}

Test(verify, finds_nothing_in_any_sound_plan)
{
    for (int64_t policy = RECOMPUTE_NONE; policy <= RECOMPUTE_MODULES; policy++) {
        for (int variant = 0; variant < 32; variant++) {
            struct tiny tiny = tiny_of("");
            int32_t     findings;
            tiny.train.recompute            = policy;
            tiny.train.recompute_every      = 2;
            tiny.train.recompute_save       = variant * 5 % 128;
            tiny.train.accumulation         = 1 + variant % 3;
            tiny.parallel.dp                = 1 + variant / 4 % 2;
            tiny.model.tied                 = variant / 8 % 2;
            tiny.model.norm                 = variant / 16 == 1 ? NORM_LAYER : NORM_RMS;
            tiny.precision.compute          = variant % 2 == 1 ? COMPUTE_BF16 : COMPUTE_FP32;
            tiny.precision.reduce           = variant % 4 == 1 ? FORMAT_BF16 : FORMAT_F32;
            tiny.parallel.fsdp              = variant % 5 == 0 ? 4 : 1;
            tiny.parallel.zero              = variant % 5 == 1;
            tiny.parallel.prefetch          = variant % 3;
            tiny.parallel.reshard           = variant % 3;
            tiny.parallel.tp                = 1 + variant / 2 % 2;
            tiny.parallel.cp                = 1 + variant / 3 % 2;
            tiny.parallel.context           = variant / 6 % 2 == 1 ? CONTEXT_RING : CONTEXT_GATHER;
            tiny.parallel.sequence_parallel = variant % 7 < 4;
            int64_t ranks = tiny.parallel.dp * tiny.parallel.fsdp * tiny.parallel.tp * tiny.parallel.cp;
            tiny_plan_rank(&tiny, ranks, variant % ranks);
            REQUIRE(plan_verify(&tiny.plan, &findings));
            cr_assert_eq(findings, 0);
            plan_free(&tiny.plan);
        }
    }
}

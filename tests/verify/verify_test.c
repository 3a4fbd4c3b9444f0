// SPDX-License-Identifier: MIT
// Tests that verification accepts correct plans with all options.
#include <criterion/criterion.h>

#include "gswbench/verify.h"
#include "layouts.h"

static status verify(struct tiny *tiny, int32_t *findings)
{
    status result = plan_verify(&tiny->plan, findings);
    plan_free(&tiny->plan);
    return result;
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
            status result = verify(&tiny, &findings);
            cr_assert(!failed(&result), "%s", result.text);
            cr_assert_eq(findings, 0);
        }
    }
}

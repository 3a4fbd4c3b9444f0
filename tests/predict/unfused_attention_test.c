// SPDX-License-Identifier: MIT
// Compares predictions of unfused attention with steps that BigScience measured in 2022
// (bigscience-workshop/bigscience, train/tr11-176B-ml, chronicles-prequel.md): Megatron-DeepSpeed, A100 80 GB, sequence
// 2048, full recompute. The test predicts 64 microbatches, since 128 and more as in the source take too long.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/predict.h"
#include "success.h"

struct shape {
    int    layers, hidden, heads, tp, pp, dp, micro_batch;
    double step_seconds;    // published
};

static double predict_seconds(const struct shape *shape)
{
    char text[1024];
    int  ranks  = shape->tp * shape->pp * shape->dp;
    int  length = snprintf(
         text, sizeof(text),
         "[model]\nlayers = %d\nhidden = %d\nheads = %d\nkv_heads = %d\nhead_dim = %d\nffn = %d\nvocab = 250880\n"
          "activation = gelu\nnorm = layernorm\npositions = none\n[parallel]\ntp = %d\npp = %d\ndp = %d\nzero = "
          "1\nsequence_parallel = no\n"
          "[train]\nsequence = 2048\nmicro_batch = %d\nglobal_batch = %d\nrecompute = full\n"
          "[hardware]\nprofile = a100-80gb\n[software]\nprofile = megatron-deepspeed-2022\n",
         shape->layers, shape->hidden, shape->heads, shape->heads, shape->hidden / shape->heads, 4 * shape->hidden,
         shape->tp, shape->pp, shape->dp, shape->micro_batch, 64 * shape->dp * shape->micro_batch);
    struct config         config;
    struct plan_request   job;
    struct prediction     prediction;
    struct text_buffer    errors  = {.text = NULL};
    struct config_request request = {.name = "bigscience", .ranks = ranks};
    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
    status result = config_read_text(&config, &request, text, (size_t)length, &errors);
    cr_assert_not(failed(&result), "%s", errors.text);
    REQUIRE(job_check(&job, &config));
    struct machine machine = predict_machine(&config, NULL);
    REQUIRE(predict(&prediction, &job, &machine));
    return prediction.step_seconds;
}

// Head sizes 150 and 108 are not multiples of 8, so their GEMMs cannot use tensor cores well. 216, 144 and 112 are.
Test(unfused_attention, knows_the_head_sizes_that_leave_the_tensor_cores)
{
    static const struct {
        struct shape slow, fast;
    } pairs[] = {
        {{80, 14400, 96, 8, 10, 4, 1, 221.21}, {80, 13824, 64, 8, 10, 4, 1, 160.29}},
        {{80, 14400, 96, 8, 10, 4, 4, 208.18}, {80, 13824, 64, 8, 10, 4, 4, 147.43}},
        {{78, 13824, 128, 4, 12, 8, 4, 153.90}, {78, 13824, 96, 4, 12, 8, 4, 110.31}},
        {{72, 14336, 128, 8, 6, 8, 4, 124.89}, {72, 14336, 64, 8, 6, 8, 4, 120.85}},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        double slow = predict_seconds(&pairs[i].slow), fast = predict_seconds(&pairs[i].fast);
        double found = slow / fast - 1.0, published = pairs[i].slow.step_seconds / pairs[i].fast.step_seconds - 1.0;
        cr_expect_gt(found, 0.0);
        cr_expect_float_eq(found, published, 0.1, "%zu: %g", i, found);
    }
}

// SPDX-License-Identifier: MIT
// Tests how missing batch sizes are derived from the given ones.
#include "gswbench/model.h"

#include <criterion/criterion.h>

static struct train_config batches(int64_t micro_batch, int64_t accumulation, int64_t global_batch)
{
    struct train_config train;
    option_set_defaults(train_options, &train);
    train.micro_batch  = micro_batch;
    train.accumulation = accumulation;
    train.global_batch = global_batch;
    return train;
}

Test(train, has_the_documented_defaults)
{
    struct train_config train;
    option_set_defaults(train_options, &train);
    cr_assert_eq(train.sequence, 2048);
    cr_assert_eq(train.micro_batch, 1);
    cr_assert_eq(train.global_batch, 0);
    cr_assert_eq(train.accumulation, 0);
    cr_assert_eq(train.recompute, RECOMPUTE_NONE);
    cr_assert_eq(train.recompute_save, 1 << OUTPUT_QKV | 1 << OUTPUT_PROJECTION);
    cr_assert_eq(train.learning_rate, 3e-4);
    cr_assert_eq(train.beta2, 0.95);
    cr_assert_eq(train.clip, 1.0);
}

Test(train, completes_whichever_batch_size_is_missing)
{
    static const struct {
        int64_t micro_batch, accumulation, global_batch, replicas, want_accumulation, want_global_batch;
    } cases[] = {
        {2, 0, 0, 64, 1, 128},          {1, 32, 0, 8, 32, 256}, {1, 0, 1024, 2, 512, 1024},
        {2, 3, 24, 4, 3, 24},           {1, 0, 1, 1, 1, 1},     {4, 0, 1048576, 4096, 64, 1048576},
        {1, 1, 0, 1048576, 1, 1048576},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct train_config train  = batches(cases[i].micro_batch, cases[i].accumulation, cases[i].global_batch);
        status              result = train_resolve(&train, cases[i].replicas);
        cr_assert_str_empty(result.text, "case %zu: %s", i, result.text);
        cr_assert_eq(train.accumulation, cases[i].want_accumulation, "case %zu", i);
        cr_assert_eq(train.global_batch, cases[i].want_global_batch, "case %zu", i);
        cr_assert_eq(train.micro_batch, cases[i].micro_batch, "case %zu", i);
    }
}

Test(train, completes_a_micro_batch_that_is_auto)
{
    static const struct {
        int64_t accumulation, global_batch, replicas, want_micro_batch, want_accumulation, want_global_batch;
    } cases[] = {{4, 96, 8, 3, 4, 96}, {0, 96, 8, 1, 12, 96}, {4, 0, 8, 1, 4, 32}, {0, 0, 8, 1, 1, 8}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct train_config train  = batches(0, cases[i].accumulation, cases[i].global_batch);
        status              result = train_resolve(&train, cases[i].replicas);
        cr_assert_str_empty(result.text, "case %zu: %s", i, result.text);
        cr_expect_eq(train.micro_batch, cases[i].want_micro_batch, "case %zu", i);
        cr_expect_eq(train.accumulation, cases[i].want_accumulation, "case %zu", i);
        cr_expect_eq(train.global_batch, cases[i].want_global_batch, "case %zu", i);
    }
}

Test(train, explains_why_batch_sizes_contradict)
{
    static const struct {
        int64_t     micro_batch, accumulation, global_batch, replicas;
        const char *text;
    } cases[] = {
        {2, 0, 100, 16,
         "[train] global_batch = 100 is not a multiple of micro_batch x replicas = 2 x 16 = 32 (try 96 or 128)"},
        {2, 0, 8, 16, "[train] global_batch = 8 is not a multiple of micro_batch x replicas = 2 x 16 = 32 (try 32)"},
        {1, 4, 24, 8,
         "[train] accumulation = 4 contradicts global_batch = 24: micro_batch x replicas = 1 x 8 = 8 makes it 3"},
        {0, 5, 96, 8,
         "[train] accumulation = 5 contradicts global_batch = 96: replicas x accumulation = 8 x 5 = 40 does not divide "
         "it"},
        {4096, 1048576, 0, 65536,
         "[train] micro_batch x replicas x accumulation = 4096 x 65536 x 1048576 is more than 1048576 sequences per "
         "step"},
        {4096, 1048576, 0, 4294967296,
         "[train] micro_batch x replicas x accumulation = 4096 x 4294967296 x 1048576 is more than 1048576 sequences "
         "per step"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct train_config train  = batches(cases[i].micro_batch, cases[i].accumulation, cases[i].global_batch);
        status              result = train_resolve(&train, cases[i].replicas);
        cr_assert_str_eq(result.text, cases[i].text, "case %zu: %s", i, result.text);
        cr_assert_eq(result.exit_code, EXIT_CONFIG);
    }
}

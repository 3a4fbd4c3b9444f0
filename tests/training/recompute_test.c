// SPDX-License-Identifier: MIT
// Tests that recompute changes no bit of a training, needs less memory, and allocates exactly the planned bytes. Also
// tests that results do not depend on the layout: the same global batch trains the same on one rank and on several,
// with and without gradient accumulation.
#include <criterion/criterion.h>
#include <math.h>

#include "layouts.h"
#include "same_training.h"

static struct training describe(void)
{
    return (struct training){.tiny    = tiny_of("layers 3; sequence 32; accumulation 2; compute bf16"),
                             .ranks   = 1,
                             .steps   = 3,
                             .threads = 2,
                             .seed    = 7};
}

static void expect_the_same_bits(bool qk_norm)
{
    struct training plain    = describe();
    plain.tiny.model.qk_norm = qk_norm;
    training_run(&plain);
    cr_assert_gt(plain.loss[0], 2.0f);

    for (int64_t policy = RECOMPUTE_ATTENTION; policy <= RECOMPUTE_MODULES; policy++) {
        struct training other              = describe();
        other.tiny.model.qk_norm           = qk_norm;
        other.tiny.train.recompute         = policy;
        other.tiny.train.recompute_every   = 2;
        other.tiny.train.recompute_save    = 1 << OUTPUT_QKV | 1 << OUTPUT_PROJECTION;
        other.tiny.train.recompute_modules = 1 << MODULE_MLP | 1 << MODULE_NORMS;
        training_run(&other);
        cr_expect_arr_eq(other.loss, plain.loss, 3 * sizeof(float));
        cr_expect_arr_eq(other.norm, plain.norm, 3 * sizeof(float));
        cr_expect_lt(other.planned_bytes[STORAGE_ACTIVATION], plain.planned_bytes[STORAGE_ACTIVATION]);
    }
}

Test(recompute, does_not_change_a_bit_of_loss_or_norm)
{
    expect_the_same_bits(false);
}

Test(recompute, does_not_change_a_bit_of_a_model_that_normalises_heads)
{
    expect_the_same_bits(true);
}

Test(recompute, allocates_exactly_what_the_plan_says_and_nothing_during_steps)
{
    for (int64_t policy = RECOMPUTE_NONE; policy <= RECOMPUTE_MODULES; policy++) {
        struct training training            = describe();
        training.ranks                      = 2;
        training.tiny.parallel.dp           = 2;
        training.tiny.train.recompute       = policy;
        training.tiny.train.recompute_every = 2;
        training_run(&training);
        cr_expect_arr_eq(training.storage_bytes, training.planned_bytes, sizeof(training.planned_bytes));
        cr_expect_eq(training.allocations_in_steps, 0);
    }
}

enum { SEQUENCES = 8, STEPS = 5 };

Test(equivalence, ranks_and_microbatches_do_not_change_loss_or_gradient, .timeout = 120)
{
    static const struct closeness exact  = {1e-6, 1e-5, 1e-5};
    static const char *const      cuts[] = {"accumulation 2",       "accumulation 4", "dp 2",
                                            "dp 2; accumulation 4", "dp 4",           "dp 4; accumulation 2"};
    struct training               one    = training_of("", "", SEQUENCES, STEPS);
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct training cut = training_of("", cuts[i], SEQUENCES, STEPS);
        expect_same_training(&cut, &one, &exact, cuts[i]);
    }
    cr_expect_float_eq(one.loss[0], logf(40.0f), 1.0f);
    cr_expect_neq(one.loss[1], one.loss[0]);
}

Test(equivalence, the_same_run_twice_gives_the_same_bits, .timeout = 120)
{
    struct training first = training_of("", "dp 4; accumulation 2", SEQUENCES, STEPS), second = first;
    expect_same_training(&first, &second, &(struct closeness){0}, "dp 4; accumulation 2");
}

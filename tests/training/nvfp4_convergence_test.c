// SPDX-License-Identifier: MIT
// 500 steps in NVFP4 reach nearly the loss of BF16, with and without each method of the recipe.
#include <criterion/criterion.h>
#include <math.h>

#include "draw.h"
#include "layouts.h"
#include "training.h"

enum { STEPS = 500, LAST = 25 };

// The small Llama of fp8_convergence_test. Mean loss over the last steps.
static double train(const char *options)
{
    struct training training = {.ranks = 1, .steps = STEPS, .threads = 1, .seed = 11, .data = DATA_MARKOV};
    tiny_init(&training.tiny);
    layout_apply(&training.tiny, "tied yes; hidden 64; head_dim 16; ffn 160; vocab 128; init_deviation 0.05; "
                                 "learning_rate 3e-3; sequence 32; micro_batch 8");
    layout_apply(&training.tiny, options);
    training_run(&training);
    double loss = 0;
    for (int step = STEPS - LAST; step < STEPS; step++) {
        loss += (double)training.loss[step] / LAST;
    }
    return loss;
}

Test(nvfp4_convergence, ends_near_bf16_with_and_without_each_method, .timeout = 480)
{
    static const char *const rows[] = {
        "compute fp4",
        "compute fp4; fp4_transform no",
        "compute fp4; fp4_stochastic_rounding no",
        "compute fp4; fp4_square_weights no",
        "compute fp4; fp4_transform no; fp4_stochastic_rounding no; fp4_square_weights no",
        "compute fp4; bf16_last_layers 1",
    };
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    double expected = train("compute bf16");
    cr_expect_float_eq(expected, 1.75 * log(2), 0.13, "%.4f", expected);
    for (int i = 0; i < ROWS; i++) {
        double found = is_drawn(i, 3) ? train(rows[i]) : expected;
        cr_expect_float_eq(found, expected, 0.015 * expected, "%s: loss %.4f, not %.4f", rows[i], found, expected);
    }
}

// SPDX-License-Identifier: MIT
// That 500 steps in FP8 end where they do in BF16, with every recipe, and that a wrong scale shows in the loss.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "training.h"

enum { STEPS = 500, LAST = 25 };

// The mean loss of the last steps of a small Llama.
static double train(int64_t compute, int64_t recipe, const struct backend_ops *backend)
{
    struct training training = {
        .ranks = 1, .steps = STEPS, .threads = 1, .seed = 11, .data = DATA_MARKOV, .backend = backend};
    struct tiny *tiny = &training.tiny;
    tiny_init(tiny);
    tiny->precision.compute    = compute;
    tiny->precision.fp8_recipe = recipe;
    tiny->model.hidden         = 64;
    tiny->model.head_dim       = 16;
    tiny->model.ffn            = 160;
    tiny->model.vocab          = 128;
    tiny->model.init_deviation = 0.05;
    tiny->train.learning_rate  = 3e-3;
    tiny->train.sequence       = 32;
    tiny->train.micro_batch    = 8;
    training_run(&training);
    cr_expect_lt(training.loss[STEPS - 1], 0.5f * training.loss[0]);
    double sum = 0;
    for (int step = STEPS - LAST; step < STEPS; step++) {
        sum += (double)training.loss[step];
    }
    return sum / LAST;
}

static float wrong_by;

// As the host does, but with the scale of current values times wrong_by. The factor is that scale's, so that only what
// is lost to saturation or underflow differs.
static void quantize_wrongly(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    backend_host.run[OP_QUANTIZE](backend, op, buffers);
    float         scale = wrong_by / *(float *)buffers[QUANTIZE_FACTOR].data;
    struct buffer given[OP_OPERANDS];
    memcpy(given, buffers, sizeof(given));
    given[QUANTIZE_SCALE] = (struct buffer){&scale, 1, DTYPE_F32};
    backend_host.run[OP_QUANTIZE](backend, op, given);
}

static double train_wrongly(float by)
{
    op_run            *run[OP_COUNT];
    struct backend_ops broken = backend_host;
    memcpy(run, backend_host.run, sizeof(run));
    run[OP_QUANTIZE] = quantize_wrongly;
    broken.run       = run;
    wrong_by         = by;
    return train(COMPUTE_FP8, FP8_CURRENT, &broken);
}

Test(fp8_convergence, ends_within_a_percent_of_bf16_but_not_with_a_wrong_scale, .timeout = 240)
{
    static const struct {
        const char *name;
        int64_t     recipe;
    } recipes[]     = {{"current", FP8_CURRENT}, {"delayed", FP8_DELAYED}, {"block", FP8_BLOCK}};
    double expected = train(COMPUTE_BF16, 0, NULL);
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        double loss = train(COMPUTE_FP8, recipes[i].recipe, NULL);
        cr_expect_float_eq(loss, expected, 0.01 * expected, "%s: %.4f, not %.4f", recipes[i].name, loss, expected);
    }
    double saturated = train_wrongly(8), lost = train_wrongly(1e-5f);
    cr_expect_gt(saturated, 1.05 * expected, "%.4f", saturated);
    cr_expect_gt(lost, 1.05 * expected, "%.4f", lost);
}

// SPDX-License-Identifier: MIT
// After 500 steps, FP8 and NVFP4 with every recipe nearly reach the loss of BF16. Faults in scales or gradients must
// change the loss or the gradient norm.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "draw.h"
#include "training.h"
#include "layouts.h"

enum { STEPS = 500, LAST = 25 };

// Means of loss and gradient norm over the last steps.
struct outcome {
    double loss, norm;
};

// A small Llama with tied embeddings. Embeddings alone cannot encode which token follows another, so the linears have
// to learn it.
static struct outcome train(const char *options, const struct backend_ops *backend)
{
    struct training training = {
        .ranks = 1, .steps = STEPS, .threads = 1, .seed = 11, .data = DATA_MARKOV, .backend = backend};
    training.tiny = tiny_of("tied yes; hidden 64; head_dim 16; ffn 160; vocab 128; init_deviation 0.05; "
                            "learning_rate 3e-3; sequence 32; micro_batch 8; fp8_history 16");
    layout_apply(&training.tiny, options);
    training_run(&training);
    struct outcome outcome = {0, 0};
    for (int step = STEPS - LAST; step < STEPS; step++) {
        outcome.loss += (double)training.loss[step] / LAST;
        outcome.norm += (double)training.norm[step] / LAST;
    }
    return outcome;
}

// Faulty ops change scales by wrong_by, or the outputs of GEMMs whose role contains wrong_role. All other ops are the
// host backend's.
static float       wrong_by;
static const char *wrong_role;

// Multiplies the current scale by wrong_by and adapts the inverse scale. So values saturate or underflow, but are
// otherwise correct.
static void quantize_wrongly(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    backend_host.run[OP_QUANTIZE](backend, op, buffers);
    float         scale = wrong_by / *(float *)buffers[QUANTIZE_INVERSE_SCALE].data;
    struct buffer given[OP_OPERANDS];
    memcpy(given, buffers, sizeof(given));
    given[QUANTIZE_SCALE] = (struct buffer){&scale, 1, FORMAT_F32};
    backend_host.run[OP_QUANTIZE](backend, op, given);
}

// Multiplies delayed scales by wrong_by in the same way.
static void rescale_wrongly(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    backend_host.run[OP_RESCALE](backend, op, buffers);
    for (int64_t slot = 0; slot < op->shape.rescale.slots; slot++) {
        ((float *)buffers[RESCALE_SCALE].data)[slot] *= wrong_by;
        ((float *)buffers[RESCALE_FACTOR].data)[slot] /= wrong_by;
    }
}

// Multiplies only the inverse scales, so that they do not match their scales.
static void rescale_apart(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    backend_host.run[OP_RESCALE](backend, op, buffers);
    for (int64_t slot = 0; slot < op->shape.rescale.slots; slot++) {
        ((float *)buffers[RESCALE_FACTOR].data)[slot] *= wrong_by;
    }
}

static void multiply_wrongly(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct buffer given[OP_OPERANDS];
    memcpy(given, buffers, sizeof(given));
    float factor = 1;
    if (strstr(op->tag.role, wrong_role) != NULL) {
        factor                      = wrong_by * *(float *)buffers[GEMM_INVERSE_SCALE_A].data;
        given[GEMM_INVERSE_SCALE_A] = (struct buffer){&factor, 1, FORMAT_F32};
    }
    backend_host.run[OP_GEMM](backend, op, given);
}

static void expect_as_bf16(struct outcome expected)
{
    static const struct {
        const char *options;
        double      loss, norm;    // relative tolerances; norm 0: not compared
    } rows[] = {{"compute fp8; recipe current", 0.01, 0.02},
                {"compute fp8; recipe delayed", 0.01, 0.02},
                {"compute fp8; recipe block", 0.01, 0.02},
                {"compute fp8; recipe mxfp8", 0.01, 0.02},
                {"compute fp8; recipe rows", 0.01, 0.02},
                {"compute fp4", 0.015, 0},
                {"compute fp4; fp4_transform no", 0.015, 0},
                {"compute fp4; fp4_stochastic_rounding no", 0.015, 0},
                {"compute fp4; fp4_square_weights no", 0.015, 0},
                {"compute fp4; fp4_transform no; fp4_stochastic_rounding no; fp4_square_weights no", 0.015, 0},
                {"compute fp4; bf16_last_layers 1", 0.015, 0}};
    // The entropy of the next token is 1.75 bits, so a trained model nearly reaches this loss. An untrained model has
    // ln 128.
    cr_expect_float_eq(expected.loss, 1.75 * log(2), 0.13, "%.4f", expected.loss);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome found = is_drawn((int)i, 4) ? train(rows[i].options, NULL) : expected;
        cr_expect_float_eq(found.loss, expected.loss, rows[i].loss * expected.loss, "%s: loss %.4f, not %.4f",
                           rows[i].options, found.loss, expected.loss);
        cr_expect(rows[i].norm == 0 || fabs(found.norm - expected.norm) <= rows[i].norm * expected.norm,
                  "%s: gradient norm %.4f, not %.4f", rows[i].options, found.norm, expected.norm);
    }
}

// Without fused quantization every tensor is quantized by a quantize op, so a fault in this op affects all tensors.
#define APART   "compute fp8; recipe current; fp8_fused no"
#define DELAYED "compute fp8; recipe delayed"
static void expect_mistakes_to_show(struct outcome expected)
{
    static const struct {
        const char  *name;
        const char  *options;
        enum op_kind kind;
        op_run      *run;
        float        by;
        const char  *role;
    } mistakes[] = {{"saturates", APART, OP_QUANTIZE, quantize_wrongly, 8, NULL},
                    {"underflows", APART, OP_QUANTIZE, quantize_wrongly, 1e-5f, NULL},
                    {"saturates", DELAYED, OP_RESCALE, rescale_wrongly, 8, NULL},
                    {"underflows", DELAYED, OP_RESCALE, rescale_wrongly, 1e-5f, NULL},
                    {"keeps old factors", DELAYED, OP_RESCALE, rescale_apart, 4, NULL},
                    {"loses a weight gradient", APART, OP_GEMM, multiply_wrongly, 0, "fc1 weight gradient"},
                    {"loses a data gradient", DELAYED, OP_GEMM, multiply_wrongly, 0, "fc2 data gradient"},
                    {"doubles data gradients", APART, OP_GEMM, multiply_wrongly, 2, "fc1 data gradient"}};
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        if (!is_drawn((int)i, 8)) {
            continue;
        }
        op_run            *run[OP_COUNT];
        struct backend_ops broken = backend_host;
        memcpy(run, backend_host.run, sizeof(run));
        run[mistakes[i].kind] = mistakes[i].run;
        broken.run            = run;
        wrong_by              = mistakes[i].by;
        wrong_role            = mistakes[i].role;
        struct outcome found  = train(mistakes[i].options, &broken);
        cr_expect(found.loss > 1.05 * expected.loss || fabs(found.norm - expected.norm) > 0.05 * expected.norm,
                  "%s: loss %.4f as %.4f, gradient norm %.4f as %.4f", mistakes[i].name, found.loss, expected.loss,
                  found.norm, expected.norm);
    }
}

Test(convergence, ends_where_bf16_does_and_a_mistake_elsewhere, .timeout = 900)
{
    struct outcome expected = train("compute bf16", NULL);
    expect_as_bf16(expected);
    expect_mistakes_to_show(expected);
}

// SPDX-License-Identifier: MIT
// Compares the ops of Mamba-2 with their definitions in double. The reference of the scan computes one position after
// the other. Gradients are compared with central differences.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

// A chunk of 3 divides no sequence length here, and a chunk of 64 exceeds the sequence.
// clang-format off
static const struct mamba_shape shapes[] = {
    {.batch = 2, .sequence = 7, .heads = 4, .head_dim = 3, .groups = 2, .state = 5, .taps = 4, .chunk = 3, .epsilon = 1e-3f},
    {.batch = 1, .sequence = 8, .heads = 3, .head_dim = 2, .groups = 1, .state = 4, .taps = 2, .chunk = 4, .epsilon = 1e-5f},
    {.batch = 1, .sequence = 6, .heads = 2, .head_dim = 5, .groups = 2, .state = 1, .taps = 1, .chunk = 64, .epsilon = 1e-5f},
    {.batch = 3, .sequence = 1, .heads = 2, .head_dim = 2, .groups = 2, .state = 3, .taps = 3, .chunk = 1, .epsilon = 1e-5f},
};
// clang-format on
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), INPUTS = 5 };

// The inputs of an op in double, for its reference function.
struct context {
    struct mamba_shape shape;
    double            *in[INPUTS];
    int                moved;    // index of the input that is varied to compute differences
    void (*run)(const struct context *context, double *out);
};

static int64_t tokens_of(const struct mamba_shape *shape)
{
    return shape->batch * shape->sequence;
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static void of_moved(const void *context, const double *in, double *out)
{
    struct context with = *(const struct context *)context;
    with.in[with.moved] = (double *)(uintptr_t)in;
    with.run(&with, out);
}

// Reference of the convolution. Its inputs are: packed projection, weight, bias.
static void convolve(const struct context *context, double *out)
{
    const struct mamba_shape *shape    = &context->shape;
    int64_t                   channels = mamba_channels(shape), inner = mamba_inner(shape);
    for (int64_t i = 0; i < tokens_of(shape) * channels; i++) {
        int64_t token = i / channels, channel = i % channels, position = token % shape->sequence;
        double  sum = context->in[2][channel];
        for (int64_t tap = 0; tap < shape->taps; tap++) {
            int64_t back = shape->taps - 1 - tap;
            sum += back > position ? 0
                                   : context->in[1][channel * shape->taps + tap] *
                                         context->in[0][(token - back) * mamba_packed(shape) + inner + channel];
        }
        out[i] = silu(sum);
    }
}

// Reference of the scan. Its inputs are: convolved values, packed projection, step bias, decay, skip weight.
static void scan(const struct context *context, double *out)
{
    const struct mamba_shape *shape = &context->shape;
    int64_t inner = mamba_inner(shape), channels = mamba_channels(shape), each = shape->heads / shape->groups;
    double *state = make_space(sizeof(double) * (size_t)shape->state);
    for (int64_t row = 0; row < shape->batch * inner; row++) {
        int64_t element = row % inner, head = element / shape->head_dim, group = head / each;
        double  a = -exp(context->in[3][head]);
        memset(state, 0, sizeof(double) * (size_t)shape->state);
        for (int64_t position = 0; position < shape->sequence; position++) {
            int64_t       token = row / inner * shape->sequence + position;
            const double *x = context->in[0] + token * channels, *b = x + inner + group * shape->state;
            const double *c  = b + shape->groups * shape->state;
            double        dt = log1p(
                       exp(context->in[1][token * mamba_packed(shape) + inner + channels + head] + context->in[2][head]));
            double y = context->in[4][head] * x[element];
            for (int64_t n = 0; n < shape->state; n++) {
                state[n] = exp(dt * a) * state[n] + dt * x[element] * b[n];
                y += state[n] * c[n];
            }
            out[token * inner + element] = y;
        }
    }
}

// Reference of the gated norm. Its inputs are: scan output, packed projection, weight.
static void gate(const struct context *context, double *out)
{
    const struct mamba_shape *shape = &context->shape;
    int64_t                   inner = mamba_inner(shape), width = inner / shape->groups;
    for (int64_t row = 0; row < tokens_of(shape) * shape->groups; row++) {
        int64_t token = row / shape->groups, first = row % shape->groups * width;
        double  square = 0;
        for (int64_t i = first; i < first + width; i++) {
            double v = context->in[0][token * inner + i] * silu(context->in[1][token * mamba_packed(shape) + i]);
            out[token * inner + i] = v * context->in[2][i];
            square += v * v;
        }
        for (int64_t i = first; i < first + width; i++) {
            out[token * inner + i] /= sqrt(square / (double)width + (double)shape->epsilon);
        }
    }
}

// An op, its backward op, and the operand indices of inputs and gradients. -1 ends a list.
struct tested {
    const char  *name;
    enum op_kind forward, backward;
    int          in[INPUTS + 1], out, statistics;
    int          slope, in_again[INPUTS + 1], statistics_again, gradient[INPUTS + 1];
    int          packed;     // index of the packed input
    bool         updates;    // the backward op writes only its own columns of the packed gradient, and keeps others
    void (*run)(const struct context *context, double *out);
};
// clang-format off
static const struct tested ops[] = {
    {"convolution", OP_CONVOLUTION_FORWARD, OP_CONVOLUTION_BACKWARD,
     {CONVOLUTION_PACKED, CONVOLUTION_WEIGHT, CONVOLUTION_BIAS, -1}, CONVOLUTION_OUT, -1, CONVOLUTION_GRADIENT_OUT,
     {CONVOLUTION_GRADIENT_PACKED_IN, CONVOLUTION_GRADIENT_WEIGHT_IN, CONVOLUTION_GRADIENT_BIAS_IN, -1}, -1,
     {CONVOLUTION_GRADIENT_PACKED, CONVOLUTION_GRADIENT_WEIGHT, CONVOLUTION_GRADIENT_BIAS, -1}, 0, true, convolve},
    {"scan", OP_SCAN_FORWARD, OP_SCAN_BACKWARD,
     {SCAN_CONVOLVED, SCAN_PACKED, SCAN_STEP_BIAS, SCAN_DECAY, SCAN_SKIP, -1}, SCAN_OUT, -1, SCAN_GRADIENT_OUT,
     {SCAN_GRADIENT_CONVOLVED_IN, SCAN_GRADIENT_PACKED_IN, SCAN_GRADIENT_STEP_BIAS_IN, SCAN_GRADIENT_DECAY_IN,
      SCAN_GRADIENT_SKIP_IN, -1}, -1,
     {SCAN_GRADIENT_CONVOLVED, SCAN_GRADIENT_PACKED, SCAN_GRADIENT_STEP_BIAS, SCAN_GRADIENT_DECAY,
      SCAN_GRADIENT_SKIP, -1}, 1, true, scan},
    {"gated norm", OP_GATED_NORM_FORWARD, OP_GATED_NORM_BACKWARD,
     {GATED_NORM_IN, GATED_NORM_PACKED, GATED_NORM_WEIGHT, -1}, GATED_NORM_OUT, GATED_NORM_STATISTICS,
     GATED_NORM_GRADIENT_OUT,
     {GATED_NORM_GRADIENT_IN_IN, GATED_NORM_GRADIENT_PACKED_IN, GATED_NORM_GRADIENT_WEIGHT_IN, -1},
     GATED_NORM_GRADIENT_STATISTICS,
     {GATED_NORM_GRADIENT_IN, GATED_NORM_GRADIENT_PACKED, GATED_NORM_GRADIENT_WEIGHT, -1}, 1, false, gate},
};
// clang-format on

// Returns whether the op writes this column of the packed gradient.
static bool owns(const struct tested *op, const struct mamba_shape *shape, int64_t column)
{
    int64_t inner = mamba_inner(shape), channels = mamba_channels(shape);
    return op->forward == OP_SCAN_FORWARD ? column >= inner + channels : column >= inner && column < inner + channels;
}

// Makes the buffer for an input's gradient, with random values in it. `added` gets the values that must still be in the
// result: kept columns, and sums that the op adds to.
static struct buffer make_gradient(const struct tested *tested, const struct op *op, int input, enum format format,
                                   double **added)
{
    int64_t       elements  = op_operand_elements(op, tested->gradient[input]);
    bool          is_packed = input == tested->packed, is_vector = !is_packed && input != 0;
    bool          keeps = (is_packed && tested->updates) || (is_vector && op->accumulates);
    struct buffer buffer =
        keeps ? make_random(format, elements, 20 + (uint64_t)input, 1) : make_output(format, elements);
    *added = keeps ? values_of(&buffer) : NULL;
    for (int64_t i = 0; i < elements && is_packed && keeps; i++) {
        bool is_owned = owns(tested, &op->shape.mamba, i % mamba_packed(&op->shape.mamba));
        (*added)[i]   = is_owned ? 0 : (*added)[i];
    }
    return buffer;
}

static void expect_gradients(const struct tested *tested, struct context *context, const struct buffer *in,
                             const struct buffer *statistics, enum format format, bool adds)
{
    struct op op = {.kind = (uint8_t)tested->backward, .accumulates = adds, .shape.mamba = context->shape};
    int64_t   outputs =
        tokens_of(&context->shape) *
        (tested->forward == OP_CONVOLUTION_FORWARD ? mamba_channels(&context->shape) : mamba_inner(&context->shape));
    struct buffer slope = make_random(format, outputs, 9, 1), buffers[OP_OPERANDS] = {[0] = {.data = NULL}};
    double       *slopes   = values_of(&slope), *added[INPUTS];
    buffers[tested->slope] = slope;
    if (statistics != NULL) {
        buffers[tested->statistics_again] = *statistics;
    }
    for (int i = 0; tested->in[i] >= 0; i++) {
        buffers[tested->in_again[i]] = in[i];
        buffers[tested->gradient[i]] = make_gradient(tested, &op, i, format, &added[i]);
    }
    run_op(&op, buffers, THREADS);
    for (int i = 0; tested->in[i] >= 0; i++) {
        context->moved           = i;
        struct function function = {of_moved, context, op_operand_elements(&op, tested->gradient[i]),
                                    outputs,  slopes,  format == FORMAT_F32 ? 2e-5 : 0};
        expect_gradient(&function, context->in[i], &buffers[tested->gradient[i]], added[i], tested->name);
    }
}

static void expect_op(const struct tested *tested, const struct mamba_shape *shape, enum format format, bool adds)
{
    struct op      op      = {.kind = (uint8_t)tested->forward, .shape.mamba = *shape};
    struct context context = {.shape = *shape, .run = tested->run};
    struct buffer  in[INPUTS], buffers[OP_OPERANDS] = {[0] = {.data = NULL}};
    for (int i = 0; tested->in[i] >= 0; i++) {
        in[i]                  = make_random(format, op_operand_elements(&op, tested->in[i]), (uint64_t)i + 1, 1);
        context.in[i]          = values_of(&in[i]);
        buffers[tested->in[i]] = in[i];
    }
    int64_t outputs      = op_operand_elements(&op, tested->out);
    double *expected     = make_space(sizeof(double) * (size_t)outputs);
    buffers[tested->out] = make_output(format, outputs);
    if (tested->statistics >= 0) {
        buffers[tested->statistics] = make_output(FORMAT_F32, op_operand_elements(&op, tested->statistics));
    }

    run_op(&op, buffers, THREADS);

    tested->run(&context, expected);
    expect_close(&buffers[tested->out], expected, tolerance(format), tested->name);
    expect_gradients(tested, &context, in, tested->statistics >= 0 ? &buffers[tested->statistics] : NULL, format, adds);
}

Test(mamba, ops_and_gradients_follow_their_definitions)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (int j = 0; j < SHAPES * TYPES; j++) {
            expect_op(&ops[i], &shapes[j / TYPES], types[j % TYPES], j % 3 == 0);
        }
    }
}

Test(mamba, scans_the_same_with_any_chunk_within_rounding)
{
    struct mamba_shape shape = {
        .batch = 1, .sequence = 300, .heads = 4, .head_dim = 16, .groups = 2, .state = 8, .taps = 4, .chunk = 128};
    struct op      op                   = {.kind = OP_SCAN_FORWARD, .shape.mamba = shape};
    struct context context              = {.shape = shape};
    struct buffer  buffers[OP_OPERANDS] = {[SCAN_OUT] = make_output(FORMAT_F32, 300 * 64)};
    double        *expected             = make_space(sizeof(double) * 300 * 64);
    for (int i = 0; i < INPUTS; i++) {
        buffers[i]    = make_random(FORMAT_F32, op_operand_elements(&op, i), (uint64_t)i + 1, 1);
        context.in[i] = values_of(&buffers[i]);
    }
    scan(&context, expected);
    for (op.shape.mamba.chunk = 1; op.shape.mamba.chunk < 1000; op.shape.mamba.chunk *= 4) {
        run_op(&op, buffers, THREADS);
        expect_close(&buffers[SCAN_OUT], expected, 1e-5, "scan of 300 positions");
    }
}

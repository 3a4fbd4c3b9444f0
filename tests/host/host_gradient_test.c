// SPDX-License-Identifier: MIT
// Compares backward ops with central differences of the forward pass in double.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "host.h"
#include "reference.h"

struct norm_context {
    struct rows_shape shape;
    double           *x, *weight, *bias;
};

static void norm_of_x(const void *context, const double *in, double *out)
{
    const struct norm_context *norm = context;
    reference_norm(&norm->shape, in, norm->weight, norm->bias, out);
}
static void norm_of_weight(const void *context, const double *in, double *out)
{
    const struct norm_context *norm = context;
    reference_norm(&norm->shape, norm->x, in, norm->bias, out);
}
static void norm_of_bias(const void *context, const double *in, double *out)
{
    const struct norm_context *norm = context;
    reference_norm(&norm->shape, norm->x, norm->weight, in, out);
}

// Checks the gradients of a norm. The norm first adds a branch to its input and stores the sum, so the gradient of its
// input is the gradient of this sum.
static void expect_norm_gradient(const struct rows_shape *shape, enum format format, bool has_residual,
                                 bool accumulates)
{
    int64_t       elements = shape->rows * shape->columns;
    bool          has_bias = shape->variant != NORM_RMS;
    struct op     forward  = {.kind = OP_NORM_FORWARD, .shape.rows = *shape};
    struct op     backward = {.kind = OP_NORM_BACKWARD, .accumulates = accumulates, .shape.rows = *shape};
    struct buffer in[OP_OPERANDS], gradient[OP_OPERANDS];
    make_slots(&forward, has_bias ? "xxxxxxf" : "xxx-xxf", format, in);
    make_slots(&backward, has_bias ? "xxxfxxff" : "xxxfxxf", format, gradient);
    gradient[NORM_GRADIENT_X]          = in[NORM_SUM];
    gradient[NORM_GRADIENT_WEIGHT_IN]  = in[NORM_WEIGHT];
    gradient[NORM_GRADIENT_STATISTICS] = in[NORM_STATISTICS];
    gradient[NORM_GRADIENT_RESIDUAL]   = has_residual ? gradient[NORM_GRADIENT_RESIDUAL] : (struct buffer){0};
    double *weight_before              = accumulates ? values_of(&gradient[NORM_GRADIENT_WEIGHT]) : NULL;
    double *bias_before                = accumulates && has_bias ? values_of(&gradient[NORM_GRADIENT_BIAS]) : NULL;

    run_op(&forward, in, THREADS);
    run_op(&backward, gradient, THREADS);

    struct norm_context context  = {*shape, values_of(&in[NORM_SUM]), values_of(&in[NORM_WEIGHT]),
                                   has_bias ? values_of(&in[NORM_BIAS]) : NULL};
    double             *slopes   = values_of(&gradient[NORM_GRADIENT_OUT]);
    double             *residual = has_residual ? values_of(&gradient[NORM_GRADIENT_RESIDUAL]) : NULL;
    struct function     function = {norm_of_x, &context, elements, elements, slopes, 0};
    expect_gradient(&function, context.x, &gradient[NORM_GRADIENT_IN], residual, "norm input gradient");
    function.run    = norm_of_weight;
    function.inputs = shape->columns;
    expect_gradient(&function, context.weight, &gradient[NORM_GRADIENT_WEIGHT], weight_before, "norm weight gradient");
    if (has_bias) {
        function.run = norm_of_bias;
        expect_gradient(&function, context.bias, &gradient[NORM_GRADIENT_BIAS], bias_before, "norm bias gradient");
    }
}

Test(host_gradient, of_norms)
{
    static const int64_t sizes[][2] = {{1, 3}, {5, 17}, {70, 6}};
    for (int i = 0; i < 3; i++) {
        for (int bits = 0; bits < 24; bits++) {
            struct rows_shape shape = {
                .rows = sizes[i][0], .columns = sizes[i][1], .epsilon = 1e-3f, .variant = bits / 8};
            expect_norm_gradient(&shape, types[bits & 1], (bits & 2) != 0, (bits & 4) != 0);
        }
    }
}

static void activation_of(const void *context, const double *in, double *out)
{
    reference_activation(context, in, out);
}

Test(host_gradient, of_activations)
{
    for (int i = 0; i < 8; i++) {
        enum format       format   = types[i & 1];
        struct rows_shape shape    = {.rows = 3, .columns = 37, .variant = i / 2};
        int64_t           outputs  = shape.rows * shape.columns;
        int64_t           inputs   = reference_is_gated(shape.variant) ? 2 * outputs : outputs;
        struct op         backward = {.kind = OP_ACTIVATION_BACKWARD, .shape.rows = shape};
        struct buffer     buffers[OP_OPERANDS];
        make_slots(&backward, "xxx", format, buffers);

        run_op(&backward, buffers, THREADS);

        double         *in       = values_of(&buffers[ACTIVATION_GRADIENT_IN_IN]);
        double         *slopes   = values_of(&buffers[ACTIVATION_GRADIENT_OUT]);
        struct function function = {activation_of, &shape, inputs, outputs, slopes, 0};
        expect_gradient(&function, in, &buffers[ACTIVATION_GRADIENT_IN], NULL, "activation gradient");
    }
}

struct loss_context {
    struct rows_shape shape;
    double           *targets;
};

static void losses_of(const void *context, const double *in, double *out)
{
    const struct loss_context *loss = context;
    reference_cross_entropy(&loss->shape, in, loss->targets, out);
}

Test(host_gradient, of_cross_entropy_with_padding)
{
    for (int i = 0; i < TYPES; i++) {
        struct rows_shape shape = {
            .rows = 5, .columns = 40, .valid_columns = 33, .total = 33, .scale = 0.125f, .multiplier = 0.7f};
        struct op     op = {.kind = OP_CROSS_ENTROPY, .shape.rows = shape};
        struct buffer buffers[OP_OPERANDS];
        make_slots(&op, "xif", types[i], buffers);
        buffers[CROSS_ENTROPY_TARGETS] = make_tokens(5, 2, 33);
        double *logits = values_of(&buffers[CROSS_ENTROPY_LOGITS]), slopes[] = {0.125, 0.125, 0.125, 0.125, 0.125};
        struct loss_context context  = {shape, values_of(&buffers[CROSS_ENTROPY_TARGETS])};
        struct function     function = {losses_of, &context, 5 * 40, 5, slopes, 0};

        run_op(&op, buffers, THREADS);

        expect_gradient(&function, logits, &buffers[CROSS_ENTROPY_LOGITS], NULL, "logit gradient");
    }
}

// The gradients of equal tokens are summed in double and rounded once, so the expected value is exact.
Test(host_gradient, of_embeddings_sums_repeated_tokens)
{
    for (int bits = 0; bits < 8; bits++) {
        enum { ROWS = 50, COLUMNS = 3, TABLE = 7 };
        bool        accumulates = (bits & 4) != 0;
        enum format format      = types[(bits & 2) != 0];
        struct op   op          = {
                       .kind        = OP_EMBEDDING_BACKWARD,
                       .accumulates = accumulates,
                       .shape.rows  = {
                            .rows = ROWS, .columns = COLUMNS, .valid_columns = TABLE, .total = TABLE, .multiplier = 2.5f}};
        struct buffer buffers[OP_OPERANDS] = {
            [EMBEDDING_GRADIENT_TOKENS] = make_tokens(ROWS, 1, 5),
            [EMBEDDING_GRADIENT_OUT]    = make_random(types[bits & 1], ROWS * COLUMNS, 2, 1),
            [EMBEDDING_GRADIENT_TABLE] =
                accumulates ? make_random(format, TABLE * COLUMNS, 3, 1) : make_output(format, TABLE * COLUMNS),
        };
        double *table = values_of(&buffers[EMBEDDING_GRADIENT_TABLE]);
        for (int64_t i = 0; i < TABLE * COLUMNS && !accumulates; i++) {
            table[i] = 0;
        }
        for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
            int64_t token = (int64_t)get(&buffers[EMBEDDING_GRADIENT_TOKENS], i / COLUMNS);
            table[token * COLUMNS + i % COLUMNS] += 2.5 * get(&buffers[EMBEDDING_GRADIENT_OUT], i);
        }

        run_op(&op, buffers, THREADS);

        expect_close(&buffers[EMBEDDING_GRADIENT_TABLE], table, format == FORMAT_F32 ? 1e-7 : 0.004, "table gradient");
    }
}

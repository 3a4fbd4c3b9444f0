// SPDX-License-Identifier: MIT
// Launches the norm and activation kernels, which can quantize their output.
#include "gswbench/fatal.h"
#include "gswbench/op_shape.h"
#include "gswbench/status.h"
#include "internal.h"
#include "kernels/norm.h"

static float weight_offset(const struct op *op)
{
    return op->shape.rows.variant == NORM_LAYER_1P ? 1.0f : 0.0f;
}

static void check_columns(const struct op *op)
{
    if (op->shape.rows.columns > NORM_COLUMNS_MAX) {
        FATAL(EXIT_INTERNAL, "%s: rows of more than %d elements", op_name(op->kind), (int)NORM_COLUMNS_MAX);
    }
}

void device_norm_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    struct kernel_target     target = device_target(backend, op);
    check_columns(op);
    struct norm_forward_args args = {.in            = DATA(NORM_IN),
                                     .branch        = DATA(NORM_BRANCH),
                                     .weight        = DATA(NORM_WEIGHT),
                                     .bias          = DATA(NORM_BIAS),
                                     .sum           = DATA(NORM_SUM),
                                     .out           = DATA(NORM_OUT),
                                     .statistics    = DATA(NORM_STATISTICS),
                                     .magnitude     = device_fused_magnitude(backend, op),
                                     .rows          = shape->rows,
                                     .columns       = shape->columns,
                                     .epsilon       = shape->epsilon,
                                     .weight_offset = weight_offset(op),
                                     .is_centred    = shape->variant != NORM_RMS,
                                     .activation    = DEVICE_TYPE(NORM_IN, NORM_WEIGHT)};
    DEVICE_CHECK(kernel_norm_forward(&args, &target));
    if (op_is_fused(op)) {
        struct quantize_args copies = device_fused_copies(backend, op, buffers);
        DEVICE_CHECK(copies.in != NULL ? kernel_quantize(&copies, &target)
                                       : kernel_norm_quantize(&args, &copies, &target));
    }
}

int64_t device_norm_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    int sums = op->operand[NORM_GRADIENT_BIAS] >= 0 ? 2 : 1;
    return kernel_norm_backward_scratch_bytes(op->shape.rows.rows, op->shape.rows.columns, sums, target);
}

void device_norm_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    const struct device     *device = device_of(backend);
    check_columns(op);
    DEVICE_LAUNCH(norm_backward, .gradient = DATA(NORM_GRADIENT_OUT), .x = DATA(NORM_GRADIENT_X),
                  .residual = DATA(NORM_GRADIENT_RESIDUAL), .weight = DATA(NORM_GRADIENT_WEIGHT_IN),
                  .statistics = DATA(NORM_GRADIENT_STATISTICS), .out = DATA(NORM_GRADIENT_IN),
                  .weight_gradient = DATA(NORM_GRADIENT_WEIGHT), .bias_gradient = DATA(NORM_GRADIENT_BIAS),
                  .scratch = device->scratch, .rows = shape->rows, .columns = shape->columns,
                  .weight_offset = weight_offset(op), .is_centred = shape->variant != NORM_RMS,
                  .accumulates = op->accumulates, .activation = DEVICE_TYPE(NORM_GRADIENT_OUT, NORM_GRADIENT_WEIGHT_IN),
                  .weight_gradient_type = buffers[NORM_GRADIENT_WEIGHT].format);
}

static const struct {
    enum activation_function function;
    bool                     is_gated;
} variants[ACTIVATION_COUNT] = {
    [ACTIVATION_SWIGLU] = {ACTIVATION_FUNCTION_SILU, true},
    [ACTIVATION_GEGLU]  = {ACTIVATION_FUNCTION_GELU, true},
    [ACTIVATION_GELU]   = {ACTIVATION_FUNCTION_GELU, false},
    [ACTIVATION_RELU2]  = {ACTIVATION_FUNCTION_RELU2, false},
};

static void run_activation(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape       = &op->shape.rows;
    struct kernel_target     target      = device_target(backend, op);
    bool                     is_backward = op->kind == OP_ACTIVATION_BACKWARD;
    int                      in          = is_backward ? (int)ACTIVATION_GRADIENT_IN_IN : (int)ACTIVATION_IN;
    int                      out         = is_backward ? (int)ACTIVATION_GRADIENT_IN : (int)ACTIVATION_OUT;
    struct activation_args   args        = {.in        = DATA(in),
                                            .out       = DATA(out),
                                            .magnitude = device_fused_magnitude(backend, op),
                                            .rows      = shape->rows,
                                            .columns   = shape->columns,
                                            .function  = variants[shape->variant].function,
                                            .is_gated  = variants[shape->variant].is_gated,
                                            .type      = buffers[in].format};
    if (is_backward) {
        args.gradient = DATA(ACTIVATION_GRADIENT_OUT);
        DEVICE_TYPE(ACTIVATION_GRADIENT_OUT, ACTIVATION_GRADIENT_IN_IN);
    }
    if (args.out != NULL || args.magnitude != NULL) {
        DEVICE_CHECK(kernel_activation(&args, &target));
    }
    if (op_is_fused(op)) {
        struct quantize_args copies = device_fused_copies(backend, op, buffers);
        DEVICE_CHECK(args.out != NULL ? kernel_quantize(&copies, &target)
                                      : kernel_activation_quantize(&args, &copies, &target));
    }
}

void device_activation_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_activation(backend, op, buffers);
}

void device_activation_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_activation(backend, op, buffers);
}

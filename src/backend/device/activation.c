// SPDX-License-Identifier: MIT
// Launches the activation kernels.
#include "gswbench/op_shape.h"
#include "internal.h"
#include "kernels/activation.h"

static const struct {
    enum activation_function function;
    bool                     is_gated;
} variants[ACTIVATION_COUNT] = {
    [ACTIVATION_SWIGLU] = {ACTIVATION_FUNCTION_SILU, true},
    [ACTIVATION_GEGLU]  = {ACTIVATION_FUNCTION_GELU, true},
    [ACTIVATION_GELU]   = {ACTIVATION_FUNCTION_GELU, false},
    [ACTIVATION_RELU2]  = {ACTIVATION_FUNCTION_RELU2, false},
};

void device_activation_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape       *shape  = &op->shape.rows;
    struct kernel_target           target = device_target(backend, op);
    struct activation_forward_args args   = {.in        = buffers[ACTIVATION_IN].data,
                                             .out       = buffers[ACTIVATION_OUT].data,
                                             .magnitude = device_fused_magnitude(backend, op),
                                             .rows      = shape->rows,
                                             .columns   = shape->columns,
                                             .function  = variants[shape->variant].function,
                                             .is_gated  = variants[shape->variant].is_gated,
                                             .type      = buffers[ACTIVATION_IN].format};
    if (args.out != NULL || args.magnitude != NULL) {
        DEVICE_CHECK(kernel_activation_forward(&args, &target));
    }
    if (op_is_fused(op)) {
        struct quantize_args copies = device_fused_copies(backend, op, buffers);
        DEVICE_CHECK(args.out != NULL ? kernel_quantize(&copies, &target)
                                      : kernel_activation_forward_quantize(&args, &copies, &target));
    }
}

void device_activation_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape        *shape  = &op->shape.rows;
    struct kernel_target            target = device_target(backend, op);
    struct activation_backward_args args   = {
          .gradient  = buffers[ACTIVATION_GRADIENT_OUT].data,
          .in        = buffers[ACTIVATION_GRADIENT_IN_IN].data,
          .out       = buffers[ACTIVATION_GRADIENT_IN].data,
          .magnitude = device_fused_magnitude(backend, op),
          .rows      = shape->rows,
          .columns   = shape->columns,
          .function  = variants[shape->variant].function,
          .is_gated  = variants[shape->variant].is_gated,
          .type      = device_type(op, buffers, ACTIVATION_GRADIENT_OUT, ACTIVATION_GRADIENT_IN_IN)};
    if (args.out != NULL || args.magnitude != NULL) {
        DEVICE_CHECK(kernel_activation_backward(&args, &target));
    }
    if (op_is_fused(op)) {
        struct quantize_args copies = device_fused_copies(backend, op, buffers);
        DEVICE_CHECK(args.out != NULL ? kernel_quantize(&copies, &target)
                                      : kernel_activation_backward_quantize(&args, &copies, &target));
    }
}

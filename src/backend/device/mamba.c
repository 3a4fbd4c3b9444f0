// SPDX-License-Identifier: MIT
// Launches the kernels of Mamba-2: convolution, scan and gated norm.
#include "internal.h"
#include "kernels/mamba.h"

static struct mamba_sizes sizes_of(const struct op *op)
{
    const struct mamba_shape *shape = &op->shape.mamba;
    return (struct mamba_sizes){shape->batch,  shape->sequence, shape->heads, shape->head_dim,
                                shape->groups, shape->state,    shape->taps,  shape->chunk};
}

int64_t device_convolution_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    struct mamba_sizes sizes = sizes_of(op);
    return kernel_convolution_scratch_bytes(&sizes, target);
}

int64_t device_scan_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    struct mamba_sizes sizes = sizes_of(op);
    (void)target;
    return kernel_scan_scratch_bytes(&sizes);
}

int64_t device_gated_norm_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    struct mamba_sizes sizes = sizes_of(op);
    return kernel_gated_norm_scratch_bytes(&sizes, target);
}

void device_convolution_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    device_type(op, buffers, CONVOLUTION_PACKED, CONVOLUTION_WEIGHT);
    DEVICE_LAUNCH(convolution, .packed = buffers[CONVOLUTION_PACKED].data, .weight = buffers[CONVOLUTION_WEIGHT].data,
                  .bias = buffers[CONVOLUTION_BIAS].data, .out = buffers[CONVOLUTION_OUT].data, .sizes = sizes_of(op),
                  .type = device_type(op, buffers, CONVOLUTION_PACKED, CONVOLUTION_OUT));
}

void device_convolution_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target    target = device_target(backend, op);
    struct convolution_args args   = {.packed          = buffers[CONVOLUTION_GRADIENT_PACKED_IN].data,
                                      .weight          = buffers[CONVOLUTION_GRADIENT_WEIGHT_IN].data,
                                      .bias            = buffers[CONVOLUTION_GRADIENT_BIAS_IN].data,
                                      .gradient        = buffers[CONVOLUTION_GRADIENT_OUT].data,
                                      .packed_gradient = buffers[CONVOLUTION_GRADIENT_PACKED].data,
                                      .weight_gradient = buffers[CONVOLUTION_GRADIENT_WEIGHT].data,
                                      .bias_gradient   = buffers[CONVOLUTION_GRADIENT_BIAS].data,
                                      .scratch         = device_of(backend)->scratch,
                                      .sizes           = sizes_of(op),
                                      .accumulates     = op->accumulates};
    device_type(op, buffers, CONVOLUTION_GRADIENT_OUT, CONVOLUTION_GRADIENT_WEIGHT_IN);
    args.type          = device_type(op, buffers, CONVOLUTION_GRADIENT_PACKED_IN, CONVOLUTION_GRADIENT_PACKED);
    args.gradient_type = device_type(op, buffers, CONVOLUTION_GRADIENT_WEIGHT, CONVOLUTION_GRADIENT_BIAS);
    DEVICE_CHECK(kernel_convolution_backward(&args, &target));
}

void device_scan_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    device_type(op, buffers, SCAN_PACKED, SCAN_STEP_BIAS);
    device_type(op, buffers, SCAN_CONVOLVED, SCAN_PACKED);
    DEVICE_LAUNCH(scan, .convolved = buffers[SCAN_CONVOLVED].data, .packed = buffers[SCAN_PACKED].data,
                  .step_bias = buffers[SCAN_STEP_BIAS].data, .decay = buffers[SCAN_DECAY].data,
                  .skip = buffers[SCAN_SKIP].data, .out = buffers[SCAN_OUT].data, .sizes = sizes_of(op),
                  .type = device_type(op, buffers, SCAN_CONVOLVED, SCAN_OUT));
}

void device_scan_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    struct scan_args     args   = {.convolved          = buffers[SCAN_GRADIENT_CONVOLVED_IN].data,
                                   .packed             = buffers[SCAN_GRADIENT_PACKED_IN].data,
                                   .step_bias          = buffers[SCAN_GRADIENT_STEP_BIAS_IN].data,
                                   .decay              = buffers[SCAN_GRADIENT_DECAY_IN].data,
                                   .skip               = buffers[SCAN_GRADIENT_SKIP_IN].data,
                                   .gradient           = buffers[SCAN_GRADIENT_OUT].data,
                                   .convolved_gradient = buffers[SCAN_GRADIENT_CONVOLVED].data,
                                   .packed_gradient    = buffers[SCAN_GRADIENT_PACKED].data,
                                   .step_bias_gradient = buffers[SCAN_GRADIENT_STEP_BIAS].data,
                                   .decay_gradient     = buffers[SCAN_GRADIENT_DECAY].data,
                                   .skip_gradient      = buffers[SCAN_GRADIENT_SKIP].data,
                                   .scratch            = device_of(backend)->scratch,
                                   .sizes              = sizes_of(op),
                                   .accumulates        = op->accumulates};
    device_type(op, buffers, SCAN_GRADIENT_OUT, SCAN_GRADIENT_PACKED);
    device_type(op, buffers, SCAN_GRADIENT_STEP_BIAS_IN, SCAN_GRADIENT_PACKED_IN);
    args.type          = device_type(op, buffers, SCAN_GRADIENT_CONVOLVED_IN, SCAN_GRADIENT_CONVOLVED);
    args.gradient_type = device_type(op, buffers, SCAN_GRADIENT_STEP_BIAS, SCAN_GRADIENT_SKIP);
    DEVICE_CHECK(kernel_scan_backward(&args, &target));
}

void device_gated_norm_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    device_type(op, buffers, GATED_NORM_PACKED, GATED_NORM_WEIGHT);
    device_type(op, buffers, GATED_NORM_PACKED, GATED_NORM_IN);
    DEVICE_LAUNCH(gated_norm, .in = buffers[GATED_NORM_IN].data, .packed = buffers[GATED_NORM_PACKED].data,
                  .weight = buffers[GATED_NORM_WEIGHT].data, .out = buffers[GATED_NORM_OUT].data,
                  .statistics = buffers[GATED_NORM_STATISTICS].data, .sizes = sizes_of(op),
                  .epsilon = op->shape.mamba.epsilon, .type = device_type(op, buffers, GATED_NORM_IN, GATED_NORM_OUT));
}

void device_gated_norm_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target   target = device_target(backend, op);
    struct gated_norm_args args   = {.in              = buffers[GATED_NORM_GRADIENT_IN_IN].data,
                                     .packed          = buffers[GATED_NORM_GRADIENT_PACKED_IN].data,
                                     .weight          = buffers[GATED_NORM_GRADIENT_WEIGHT_IN].data,
                                     .statistics      = buffers[GATED_NORM_GRADIENT_STATISTICS].data,
                                     .gradient        = buffers[GATED_NORM_GRADIENT_OUT].data,
                                     .in_gradient     = buffers[GATED_NORM_GRADIENT_IN].data,
                                     .packed_gradient = buffers[GATED_NORM_GRADIENT_PACKED].data,
                                     .weight_gradient = buffers[GATED_NORM_GRADIENT_WEIGHT].data,
                                     .scratch         = device_of(backend)->scratch,
                                     .sizes           = sizes_of(op),
                                     .epsilon         = op->shape.mamba.epsilon,
                                     .accumulates     = op->accumulates};
    device_type(op, buffers, GATED_NORM_GRADIENT_OUT, GATED_NORM_GRADIENT_PACKED);
    device_type(op, buffers, GATED_NORM_GRADIENT_PACKED_IN, GATED_NORM_GRADIENT_WEIGHT_IN);
    args.type          = device_type(op, buffers, GATED_NORM_GRADIENT_IN_IN, GATED_NORM_GRADIENT_IN);
    args.gradient_type = buffers[GATED_NORM_GRADIENT_WEIGHT].format;
    DEVICE_CHECK(kernel_gated_norm_backward(&args, &target));
}

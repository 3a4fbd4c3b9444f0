// SPDX-License-Identifier: MIT
// Launches the kernels of Mamba-2: convolution, scan and gated norm.
#include "internal.h"
#include "kernels/mamba.h"

int64_t device_convolution_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    return kernel_convolution_scratch_bytes(&op->shape.mamba);
}

int64_t device_scan_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    return kernel_scan_scratch_bytes(&op->shape.mamba);
}

int64_t device_gated_norm_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    return kernel_gated_norm_scratch_bytes(&op->shape.mamba);
}

void device_convolution_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(convolution, .packed = DATA(CONVOLUTION_PACKED), .weight = DATA(CONVOLUTION_WEIGHT),
                  .bias = DATA(CONVOLUTION_BIAS), .out = DATA(CONVOLUTION_OUT), .shape = op->shape.mamba,
                  .type = DEVICE_TYPE(CONVOLUTION_PACKED, CONVOLUTION_WEIGHT, CONVOLUTION_OUT));
}

void device_convolution_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_TYPE(CONVOLUTION_GRADIENT_OUT, CONVOLUTION_GRADIENT_WEIGHT_IN);
    DEVICE_LAUNCH_WITH(convolution_backward, convolution_args, .packed = DATA(CONVOLUTION_GRADIENT_PACKED_IN),
                       .weight = DATA(CONVOLUTION_GRADIENT_WEIGHT_IN), .bias = DATA(CONVOLUTION_GRADIENT_BIAS_IN),
                       .gradient = DATA(CONVOLUTION_GRADIENT_OUT), .packed_gradient = DATA(CONVOLUTION_GRADIENT_PACKED),
                       .weight_gradient = DATA(CONVOLUTION_GRADIENT_WEIGHT),
                       .bias_gradient = DATA(CONVOLUTION_GRADIENT_BIAS), .scratch = device_of(backend)->scratch,
                       .shape = op->shape.mamba, .accumulates = op->accumulates,
                       .type          = DEVICE_TYPE(CONVOLUTION_GRADIENT_PACKED_IN, CONVOLUTION_GRADIENT_PACKED),
                       .gradient_type = DEVICE_TYPE(CONVOLUTION_GRADIENT_WEIGHT, CONVOLUTION_GRADIENT_BIAS));
}

void device_scan_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(scan, .convolved = DATA(SCAN_CONVOLVED), .packed = DATA(SCAN_PACKED),
                  .step_bias = DATA(SCAN_STEP_BIAS), .decay = DATA(SCAN_DECAY), .skip = DATA(SCAN_SKIP),
                  .out = DATA(SCAN_OUT), .shape = op->shape.mamba,
                  .type = DEVICE_TYPE(SCAN_CONVOLVED, SCAN_PACKED, SCAN_STEP_BIAS, SCAN_OUT));
}

void device_scan_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_TYPE(SCAN_GRADIENT_OUT, SCAN_GRADIENT_PACKED);
    DEVICE_TYPE(SCAN_GRADIENT_STEP_BIAS_IN, SCAN_GRADIENT_PACKED_IN);
    DEVICE_LAUNCH_WITH(
        scan_backward, scan_args, .convolved = DATA(SCAN_GRADIENT_CONVOLVED_IN),
        .packed = DATA(SCAN_GRADIENT_PACKED_IN), .step_bias = DATA(SCAN_GRADIENT_STEP_BIAS_IN),
        .decay = DATA(SCAN_GRADIENT_DECAY_IN), .skip = DATA(SCAN_GRADIENT_SKIP_IN), .gradient = DATA(SCAN_GRADIENT_OUT),
        .convolved_gradient = DATA(SCAN_GRADIENT_CONVOLVED), .packed_gradient = DATA(SCAN_GRADIENT_PACKED),
        .step_bias_gradient = DATA(SCAN_GRADIENT_STEP_BIAS), .decay_gradient = DATA(SCAN_GRADIENT_DECAY),
        .skip_gradient = DATA(SCAN_GRADIENT_SKIP), .scratch = device_of(backend)->scratch, .shape = op->shape.mamba,
        .accumulates = op->accumulates, .type = DEVICE_TYPE(SCAN_GRADIENT_CONVOLVED_IN, SCAN_GRADIENT_CONVOLVED),
        .gradient_type = DEVICE_TYPE(SCAN_GRADIENT_STEP_BIAS, SCAN_GRADIENT_SKIP));
}

void device_gated_norm_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(gated_norm, .in = DATA(GATED_NORM_IN), .packed = DATA(GATED_NORM_PACKED),
                  .weight = DATA(GATED_NORM_WEIGHT), .out = DATA(GATED_NORM_OUT),
                  .statistics = DATA(GATED_NORM_STATISTICS), .shape = op->shape.mamba,
                  .type = DEVICE_TYPE(GATED_NORM_IN, GATED_NORM_PACKED, GATED_NORM_WEIGHT, GATED_NORM_OUT));
}

void device_gated_norm_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_TYPE(GATED_NORM_GRADIENT_OUT, GATED_NORM_GRADIENT_PACKED);
    DEVICE_TYPE(GATED_NORM_GRADIENT_PACKED_IN, GATED_NORM_GRADIENT_WEIGHT_IN);
    DEVICE_LAUNCH_WITH(gated_norm_backward, gated_norm_args, .in = DATA(GATED_NORM_GRADIENT_IN_IN),
                       .packed = DATA(GATED_NORM_GRADIENT_PACKED_IN), .weight = DATA(GATED_NORM_GRADIENT_WEIGHT_IN),
                       .statistics = DATA(GATED_NORM_GRADIENT_STATISTICS), .gradient = DATA(GATED_NORM_GRADIENT_OUT),
                       .in_gradient = DATA(GATED_NORM_GRADIENT_IN), .packed_gradient = DATA(GATED_NORM_GRADIENT_PACKED),
                       .weight_gradient = DATA(GATED_NORM_GRADIENT_WEIGHT), .scratch = device_of(backend)->scratch,
                       .shape = op->shape.mamba, .accumulates = op->accumulates,
                       .type          = DEVICE_TYPE(GATED_NORM_GRADIENT_IN_IN, GATED_NORM_GRADIENT_IN),
                       .gradient_type = buffers[GATED_NORM_GRADIENT_WEIGHT].format);
}

// SPDX-License-Identifier: MIT
// Launches the kernels that quantize to FP8 and NVFP4, transpose FP8, and update scales.
#include "internal.h"
#include "kernels/quantize.h"

// Returns the scratch bytes of a quantization: space for the amax, if the scale of the tensor is computed from it.
int64_t device_quantize_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    return op_finds_scale(op) ? 2 * (int64_t)sizeof(float) : 0;    // NVFP4 has an amax for each of two copies
}

float *device_fused_magnitude(struct backend *backend, const struct op *op)
{
    return op_is_fused(op) && op_finds_scale(op) ? device_of(backend)->scratch : NULL;
}

static struct quantize_args args_of(const struct op *op, const struct buffer buffers[], enum format type)
{
    const struct buffer *out = &buffers[QUANTIZE_OUT], *transposed = &buffers[QUANTIZE_TRANSPOSED];
    return (struct quantize_args){.in                       = DATA(QUANTIZE_IN),
                                  .transposed_inverse_scale = DATA(QUANTIZE_TRANSPOSED_INVERSE_SCALE),
                                  .scaling                  = (enum scaling)op->shape.quantize.scaling,
                                  .out                      = out->data,
                                  .transposed               = transposed->data,
                                  .factor                   = DATA(QUANTIZE_INVERSE_SCALE),
                                  .scale                    = DATA(QUANTIZE_SCALE),
                                  .magnitude                = DATA(QUANTIZE_AMAX),
                                  .rows                     = op->shape.quantize.rows,
                                  .columns                  = op->shape.quantize.columns,
                                  .type                     = type,
                                  .format                   = (out->data != NULL ? out : transposed)->format};
}

struct quantize_args device_fused_copies(struct backend *backend, const struct op *op,
                                         const struct buffer buffers[OP_OPERANDS])
{
    struct op            quantize = op_quantize_of(op);
    struct quantize_args args     = args_of(&quantize, buffers + OP_FUSED, buffers[0].format);
    args.in                       = buffers[op_fused_output((enum op_kind)op->kind)].data;
    args.scratch                  = device_fused_magnitude(backend, op);
    args.has_magnitude            = args.scratch != NULL;
    return args;
}

void device_quantize(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct device *device = device_of(backend);
    struct kernel_target target = device_target(backend, op);
    struct quantize_args args   = args_of(op, buffers, buffers[QUANTIZE_IN].format);
    args.scratch                = device->scratch;
    if (!scaling_is_nv(args.scaling)) {
        DEVICE_CHECK(kernel_quantize(&args, &target));
        return;
    }
    const float            *hyper = DATA(QUANTIZE_HYPER);
    struct quantize_nv_args nv    = {.of                      = args,
                                     .tensor_scale            = DATA(QUANTIZE_TENSOR_SCALE),
                                     .transposed_tensor_scale = DATA(QUANTIZE_TRANSPOSED_TENSOR_SCALE),
                                     .key                     = hyper != NULL ? hyper + HYPER_KEY_LOW : NULL,
                                     .draw                    = op->shape.quantize.draw,
                                     .transforms              = op->shape.quantize.transforms,
                                     .is_stochastic           = op->shape.quantize.is_stochastic};
    DEVICE_CHECK(kernel_quantize_nv(&nv, &target));
}

void device_transpose(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(transpose, .in = DATA(TRANSPOSE_IN), .out = DATA(TRANSPOSE_OUT), .rows = op->shape.rows.rows,
                  .columns = op->shape.rows.columns);
}

void device_magnitude(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(magnitude, .in = DATA(MAGNITUDE_IN), .magnitude = DATA(MAGNITUDE_AMAX),
                  .elements = op->shape.elements.elements, .type = buffers[MAGNITUDE_IN].format);
}

void device_rescale(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(rescale, .magnitude = DATA(RESCALE_AMAX), .history = DATA(RESCALE_HISTORY),
                  .scale = DATA(RESCALE_SCALE), .factor = DATA(RESCALE_FACTOR), .slots = op->shape.rescale.slots,
                  .length = op->shape.rescale.history, .target = op->shape.rescale.target);
}

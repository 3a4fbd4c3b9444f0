// SPDX-License-Identifier: MIT
// Matrices in FP8 on the device, and the scales for them.
#include "internal.h"
#include "kernels/rescale.h"
#include "kernels/transpose.h"

int64_t cuda_quantize_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    bool is_whole = op->shape.quantize.scaling == FP8_SCALING_WHOLE;
    return is_whole && op->operand[QUANTIZE_SCALE] < 0 ? (int64_t)sizeof(float) : 0;
}

static struct quantize_args args_of(const struct op *op, const struct buffer buffers[], enum dtype type)
{
    const struct buffer *out = &buffers[QUANTIZE_OUT], *transposed = &buffers[QUANTIZE_TRANSPOSED];
    return (struct quantize_args){.in                = buffers[QUANTIZE_IN].data,
                                  .transposed_factor = buffers[QUANTIZE_TRANSPOSED_FACTOR].data,
                                  .scaling           = (enum fp8_scaling)op->shape.quantize.scaling,
                                  .out               = out->data,
                                  .transposed        = transposed->data,
                                  .factor            = buffers[QUANTIZE_FACTOR].data,
                                  .scale             = buffers[QUANTIZE_SCALE].data,
                                  .magnitude         = buffers[QUANTIZE_AMAX].data,
                                  .rows              = op->shape.quantize.rows,
                                  .columns           = op->shape.quantize.columns,
                                  .type              = type,
                                  .format            = (out->data != NULL ? out : transposed)->dtype};
}

struct quantize_args cuda_fused_copies(const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct op            quantize = op_quantize_of(op);
    struct quantize_args args     = args_of(&quantize, buffers + OP_FUSED, buffers[0].dtype);
    args.in                       = buffers[op_fused_output((enum op_kind)op->kind)].data;
    return args;
}

void cuda_quantize(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct cuda   *cuda   = backend->state;
    struct kernel_target target = cuda_target(backend, op);
    struct quantize_args args   = args_of(op, buffers, buffers[QUANTIZE_IN].dtype);
    args.scratch                = cuda->scratch;
    CUDA_CHECK(kernel_quantize(&args, &target));
}

void cuda_transpose(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = cuda_target(backend, op);
    CUDA_CHECK(kernel_transpose(&(struct transpose_args){.in      = buffers[TRANSPOSE_IN].data,
                                                         .out     = buffers[TRANSPOSE_OUT].data,
                                                         .rows    = op->shape.rows.rows,
                                                         .columns = op->shape.rows.columns},
                                &target));
}

void cuda_magnitude(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = cuda_target(backend, op);
    CUDA_CHECK(kernel_magnitude(&(struct magnitude_args){.in        = buffers[MAGNITUDE_IN].data,
                                                         .magnitude = buffers[MAGNITUDE_AMAX].data,
                                                         .elements  = op->shape.elements.elements,
                                                         .type      = buffers[MAGNITUDE_IN].dtype},
                                &target));
}

void cuda_rescale(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = cuda_target(backend, op);
    CUDA_CHECK(kernel_rescale(&(struct rescale_args){.magnitude = buffers[RESCALE_AMAX].data,
                                                     .history   = buffers[RESCALE_HISTORY].data,
                                                     .scale     = buffers[RESCALE_SCALE].data,
                                                     .factor    = buffers[RESCALE_FACTOR].data,
                                                     .slots     = op->shape.rescale.slots,
                                                     .length    = op->shape.rescale.history,
                                                     .target    = op->shape.rescale.target},
                              &target));
}

// SPDX-License-Identifier: MIT
// Embedding on the device: a gather of the table's rows, and the scatter of their gradients.
#include "internal.h"
#include "kernels/gather.h"
#include "kernels/scatter.h"

void cuda_embedding_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    struct kernel_target     target = cuda_target(backend, op);
    CUDA_CHECK(kernel_gather(&(struct gather_args){.index   = buffers[EMBEDDING_TOKENS].data,
                                                   .in      = buffers[EMBEDDING_TABLE].data,
                                                   .out     = buffers[EMBEDDING_OUT].data,
                                                   .rows    = shape->rows,
                                                   .columns = shape->columns,
                                                   .first   = shape->first,
                                                   .count   = shape->valid_columns,
                                                   .divisor = 1,
                                                   .type    = cuda_type(op, buffers, EMBEDDING_TABLE, EMBEDDING_OUT)},
                             &target));
}

int64_t cuda_embedding_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    return scatter_scratch_bytes(op->shape.rows.rows);
}

void cuda_embedding_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    const struct cuda       *cuda   = backend->state;
    struct kernel_target     target = cuda_target(backend, op);
    CUDA_CHECK(kernel_scatter(&(struct scatter_args){.tokens      = buffers[EMBEDDING_GRADIENT_TOKENS].data,
                                                     .gradient    = buffers[EMBEDDING_GRADIENT_OUT].data,
                                                     .table       = buffers[EMBEDDING_GRADIENT_TABLE].data,
                                                     .scratch     = cuda->scratch,
                                                     .rows        = shape->rows,
                                                     .columns     = shape->columns,
                                                     .table_rows  = shape->valid_columns,
                                                     .first       = shape->first,
                                                     .accumulates = op->accumulates,
                                                     .activation  = buffers[EMBEDDING_GRADIENT_OUT].dtype,
                                                     .table_type  = buffers[EMBEDDING_GRADIENT_TABLE].dtype},
                              &target));
}

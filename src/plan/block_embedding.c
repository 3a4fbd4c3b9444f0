// SPDX-License-Identifier: MIT
// The embedding: rows of the table picked by tokens, and the gradient added back to them.
#include "internal.h"

static struct op embedding_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    const struct model_config *model = &builder->plan->model;
    struct op                  op    = builder_op(builder, kind, role);

    const struct weight_part *table = &builder->plan->weights[builder->weights.embedding].part[0];
    op.shape.rows                   = (struct rows_shape){.rows          = builder->tokens,
                                                          .columns       = model->hidden,
                                                          .valid_columns = builder->plan->weights[builder->weights.embedding].rows,
                                                          .first         = table->first_row,
                                                          .total         = model->vocab};
    return op;
}

int32_t embedding_forward(struct builder *builder, int64_t microbatch)
{
    struct plan *plan = builder->plan;
    struct op    op   = embedding_op(builder, OP_EMBEDDING_FORWARD, "embedding");
    int32_t      out  = builder_activation(builder, "embedding", DIMS(builder->tokens, plan->model.hidden));

    builder_operand(&op, EMBEDDING_TOKENS, ACCESS_READ, plan->tokens[microbatch]);
    builder_operand(&op, EMBEDDING_TABLE, ACCESS_READ, plan->weights[builder->weights.embedding].tensor);
    builder_operand(&op, EMBEDDING_OUT, ACCESS_WRITE, out);
    builder_append(builder, &op);
    return tensor_reduce(builder, "embedding rows", out);
}

void embedding_backward(struct builder *builder, int64_t microbatch, int32_t gradient)
{
    struct plan *plan = builder->plan;
    struct op    op   = embedding_op(builder, OP_EMBEDDING_BACKWARD, "embedding gradient");
    op.accumulates    = gradient_accumulates(builder, builder->weights.embedding);
    gradient          = tensor_gather(builder, "embedding gradient rows", gradient);

    builder_operand(&op, EMBEDDING_GRADIENT_TOKENS, ACCESS_READ, plan->tokens[microbatch]);
    builder_operand(&op, EMBEDDING_GRADIENT_OUT, ACCESS_READ, gradient);
    builder_operand(&op, EMBEDDING_GRADIENT_TABLE, op.accumulates ? ACCESS_UPDATE : ACCESS_WRITE,
                    plan->weights[builder->weights.embedding].gradient);
    builder_append(builder, &op);
}

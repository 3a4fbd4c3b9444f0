// SPDX-License-Identifier: MIT
// The embedding: rows of the table picked by tokens, and the gradient added back to them.
#include "embedding.h"

#include "kind.h"
#include "tensor.h"

enum { WEIGHT_TABLE = WEIGHT_OWN };

static const struct exported exported = {"model.embed_tokens.weight", 0};

static struct layer_count count(const struct model_config *model)
{
    return (struct layer_count){.parameters = model->vocab * model->hidden, .active = model->vocab * model->hidden};
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    struct declaration *table = declare_matrix(declarations, &weights[WEIGHT_TABLE], "embedding table");
    declare_table(declarations, table, &exported);
}

int32_t embedding_table(const struct builder *builder)
{
    return builder->blocks[0].weights[0][WEIGHT_TABLE];
}

static struct op embedding_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    const struct weight      *table = &builder->plan->weights[embedding_table(builder)];
    const struct weight_part *part  = &table->part[0];
    struct op                 op    = assembly_op(&builder->assembly, kind, role);
    op.shape.rows                   = (struct rows_shape){.rows          = builder->tokens,
                                                          .columns       = table->columns,
                                                          .valid_columns = table->rows,
                                                          .first         = part->first_row,
                                                          .total         = part->rows};
    return op;
}

int32_t embedding_rows(struct builder *builder, int32_t tokens)
{
    struct plan *plan = builder->plan;
    struct op    op   = embedding_op(builder, OP_EMBEDDING_FORWARD, "embedding");
    int32_t      out  = assembly_activation(&builder->assembly, "embedding", DIMS(builder->tokens, plan->model.hidden));

    assembly_operand(&op, EMBEDDING_TOKENS, ACCESS_READ, tokens);
    assembly_operand(&op, EMBEDDING_TABLE, ACCESS_READ, plan->weights[embedding_table(builder)].tensor);
    assembly_operand(&op, EMBEDDING_OUT, ACCESS_WRITE, out);
    assembly_append(&builder->assembly, &op);
    return tensor_reduce(builder, "embedding rows", out);
}

void embedding_gradient(struct builder *builder, int32_t tokens, int32_t gradient)
{
    struct plan *plan  = builder->plan;
    int32_t      table = embedding_table(builder);
    struct op    op    = embedding_op(builder, OP_EMBEDDING_BACKWARD, "embedding gradient");
    op.accumulates     = gradient_accumulates(builder, table);
    gradient           = tensor_gather(builder, "embedding gradient rows", gradient);

    assembly_operand(&op, EMBEDDING_GRADIENT_TOKENS, ACCESS_READ, tokens);
    assembly_operand(&op, EMBEDDING_GRADIENT_OUT, ACCESS_READ, gradient);
    assembly_operand(&op, EMBEDDING_GRADIENT_TABLE, op.accumulates ? ACCESS_UPDATE : ACCESS_WRITE,
                     plan->weights[table].gradient);
    assembly_append(&builder->assembly, &op);
}

static void append_rows(struct sublayer *sublayer)
{
    struct builder *builder             = sublayer->builder;
    int64_t         microbatch          = builder->assembly.tag.microbatch;
    sublayer->values->tensor[VALUE_OUT] = embedding_rows(builder, builder->plan->tokens[microbatch]);
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder *builder = sublayer->builder;
    embedding_gradient(builder, builder->plan->tokens[builder->assembly.tag.microbatch], gradient);
    return -1;
}

static const struct forward_step steps[] = {
    {append_rows, 0, BIT(VALUE_OUT), 0, 0},
    {.append = NULL},
};

const struct layer_kind embedding_kind = {
    .name = "embedding", .declare = declare, .steps = steps, .backward = {backward}, .count = count, .begins = true};

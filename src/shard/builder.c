// SPDX-License-Identifier: MIT
// Helper functions for every layer: they find the index of a block (a layer, an MTP module, the embedding or the head),
// and append collectives, and splits and joins of columns.
#include "gswbench/builder.h"

int64_t block_head(const struct model_config *model)
{
    return model->layers + 1;
}

int64_t block_places(const struct model_config *model)
{
    return model_all_layers(model) + 2;
}

int64_t block_place(const struct model_config *model, int64_t layer)
{
    return layer < model->layers ? layer + 1 : layer + 2;
}

int64_t block_layer(const struct model_config *model, int64_t place)
{
    int64_t head = block_head(model);
    return place == 0 || place == head ? -1 : place < head ? place - 1 : place - 2;
}

int32_t collect(struct builder *builder, const struct communication *communication)
{
    return assembly_communication(&builder->assembly, communication);
}

// Returns an op that splits or joins the columns of a tensor. first and rest: its left and right columns. In the shape,
// columns is the width of the whole tensor, and valid_columns the width of `first`.
static struct op columns_op(const struct builder *builder, enum op_kind kind, const char *role, int32_t first,
                            int32_t rest)
{
    const struct tensor *tensors = builder->plan->tensors;
    struct op            op      = assembly_op(&builder->assembly, kind, role);
    op.shape.rows                = (struct rows_shape){.rows          = builder->shard_tokens,
                                                       .columns       = tensors[first].dim[1] + tensors[rest].dim[1],
                                                       .valid_columns = tensors[first].dim[1]};
    return op;
}

void columns_split(struct builder *builder, const char *role, int32_t whole, int32_t first, int32_t rest)
{
    struct op op = columns_op(builder, OP_SPLIT, role, first, rest);
    assembly_append_with(&builder->assembly, &op, SLOTS({SPLIT_IN, whole}, {SPLIT_FIRST, first}, {SPLIT_REST, rest}));
}

int32_t columns_join(struct builder *builder, const char *role, const char *name, int32_t first, int32_t rest)
{
    struct op op    = columns_op(builder, OP_JOIN, role, first, rest);
    int32_t   whole = assembly_activation(&builder->assembly, name, DIMS(builder->shard_tokens, op.shape.rows.columns));
    assembly_append_with(&builder->assembly, &op, SLOTS({JOIN_FIRST, first}, {JOIN_REST, rest}, {JOIN_OUT, whole}));
    return whole;
}

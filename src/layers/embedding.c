// SPDX-License-Identifier: MIT
// Defines the layer kind of the embedding: lookup of table rows by token, and the gradient of the table. Learned
// positions are rows of a second table, added after the residual stream is sharded over tp.
#include "embedding.h"

#include "gswbench/linear.h"

// Tensors in the exported model, with the random streams of their initial values.
static const struct exported exported           = {"model.embed_tokens.weight", 0};
static const struct exported exported_positions = {"model.embed_positions.weight", 4};

static int64_t positions_of(const struct model_config *model)
{
    return model->positions == POSITIONS_LEARNED ? model->max_positions : 0;
}

static struct layer_count count(const struct model_config *model)
{
    int64_t parameters = (model->vocab + positions_of(model)) * model->hidden;
    return (struct layer_count){.parameters = parameters, .active = parameters};
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    struct declaration *table = declare_matrix(declarations, &weights[WEIGHT_TABLE], "embedding table");
    declare_table(declarations, table, &exported);
    const struct model_config *model = &declarations->builder->plan->model;
    if (positions_of(model) > 0) {
        struct declaration *positions = declare_matrix(declarations, &weights[WEIGHT_POSITIONS], "position table");
        positions->is_replicated      = true;
        declare_rows(declarations, positions, &exported_positions, positions_of(model), model->hidden);
    }
}

int32_t embedding_table(const struct builder *builder)
{
    return builder->blocks[0].weights[0][WEIGHT_TABLE];
}

// Returns an op on the rows of a table. With tp, this rank has only a shard of the vocabulary's rows.
static struct op embedding_op(const struct builder *builder, enum op_kind kind, const char *role, int32_t weight)
{
    const struct weight      *table = &builder->plan->weights[weight];
    const struct weight_part *part  = &table->part[0];
    struct op                 op    = assembly_op(&builder->assembly, kind, role);
    // [model] embedding_scale does not apply to learned positions.
    bool is_scaled = weight == embedding_table(builder);
    op.shape.rows  = (struct rows_shape){.rows          = builder->tokens,
                                         .columns       = table->columns,
                                         .valid_columns = table->rows,
                                         .first         = part->first_row,
                                         .total         = part->rows,
                                         .multiplier = is_scaled ? (float)builder->plan->model.embedding_scale : 1.0F};
    return op;
}

int32_t embedding_rows(struct builder *builder, int32_t tokens)
{
    struct plan *plan  = builder->plan;
    int32_t      table = embedding_table(builder);
    struct op    op    = embedding_op(builder, OP_EMBEDDING_FORWARD, "embedding", table);
    int32_t      out = assembly_activation(&builder->assembly, "embedding", DIMS(builder->tokens, plan->model.hidden));

    assembly_append_with(
        &builder->assembly, &op,
        SLOTS({EMBEDDING_TOKENS, tokens}, {EMBEDDING_TABLE, plan->weights[table].tensor}, {EMBEDDING_OUT, out}));
    return tp_reduce(builder, "embedding rows", out);
}

static void append_gradient(struct builder *builder, struct op *op, int32_t rows, int32_t gradient, int32_t weight)
{
    op->accumulates = gradient_accumulates(builder, weight);
    assembly_append_with(&builder->assembly, op,
                         SLOTS({EMBEDDING_GRADIENT_TOKENS, rows}, {EMBEDDING_GRADIENT_OUT, gradient},
                               {EMBEDDING_GRADIENT_TABLE, builder->plan->weights[weight].gradient}));
}

void embedding_gradient(struct builder *builder, int32_t tokens, int32_t gradient)
{
    int32_t table = embedding_table(builder);
    if (weight_is_frozen(builder, table)) {
        return;
    }
    struct op op = embedding_op(builder, OP_EMBEDDING_BACKWARD, "embedding gradient", table);
    append_gradient(builder, &op, tokens, tp_gather(builder, "embedding gradient rows", gradient), table);
}

static void append_positions(struct sublayer *sublayer, int32_t out)
{
    struct builder *builder = sublayer->builder;
    int32_t         weight  = sublayer->weights[WEIGHT_POSITIONS];
    if (weight < 0) {
        return;
    }
    struct op op       = embedding_op(builder, OP_EMBEDDING_FORWARD, "positions", weight);
    op.accumulates     = true;
    op.shape.rows.rows = builder->shard_tokens;
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({EMBEDDING_TOKENS, builder->plan->positions},
                               {EMBEDDING_TABLE, builder->plan->weights[weight].tensor}, {EMBEDDING_OUT, out}));
}

static void append_rows(struct sublayer *sublayer)
{
    struct builder *builder             = sublayer->builder;
    int64_t         microbatch          = builder->assembly.tag.microbatch;
    sublayer->values->tensor[VALUE_OUT] = embedding_rows(builder, builder->plan->tokens[microbatch]);
    append_positions(sublayer, sublayer->values->tensor[VALUE_OUT]);
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder *builder   = sublayer->builder;
    int32_t         positions = sublayer->weights[WEIGHT_POSITIONS];
    assembly_set_part(&builder->assembly, PART_EMBEDDING);
    if (positions >= 0) {
        struct op op       = embedding_op(builder, OP_EMBEDDING_BACKWARD, "position gradient", positions);
        op.shape.rows.rows = builder->shard_tokens;
        append_gradient(builder, &op, builder->plan->positions, gradient, positions);
    }
    embedding_gradient(builder, builder->plan->tokens[builder->assembly.tag.microbatch], gradient);
    return -1;
}

static const struct forward_step steps[] = {
    {.append = append_rows, .part = PART_EMBEDDING, .makes = BIT(VALUE_OUT)},
    {.append = NULL},
};

const struct layer_kind embedding_kind = {
    .name = "embedding", .declare = declare, .steps = steps, .backward = {backward}, .count = count, .begins = true};

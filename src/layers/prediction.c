// SPDX-License-Identifier: MIT
// Defines the layer kind of the first sublayer of an MTP module. It normalises two inputs: the output of the previous
// module (or of the last layer), and the embedding of the token that the previous module (or the head) predicts. It
// concatenates both and projects them to the hidden size. The projection is replicated over tp, and each rank applies
// it to its part of the residual stream: shard_tokens rows, tokens / tp with sequence parallelism.
#include "embedding.h"

#include "gswbench/linear.h"

enum { WEIGHT_EMBEDDING_NORM = WEIGHT_OWN, WEIGHT_EMBEDDING_NORM_BIAS, WEIGHT_PROJECTION };
enum {
    VALUE_ROWS = VALUE_OWN,    // embedding rows [shard_tokens, hidden]
    VALUE_ROWS_STATISTICS,     // mean and 1 / deviation of the rows' norm [shard_tokens, 2]
    VALUE_ROWS_N,              // normalised embedding rows [shard_tokens, hidden]
    VALUE_PAIR,                // VALUE_ROWS_N, then VALUE_N (the other input, normalised) [shard_tokens, 2 hidden]
};

static const struct exported exported_projection = {"model.layers.%d.eh_proj.weight", 40};

static const struct norm_names norm =
    NORM_NAMES(PART_MTP_NORM, "prediction norm", "prediction norm", "layers.%d.hnorm", 41);

static const struct norm_names embedding_norm =
    NORM_NAMES(PART_MTP_EMBEDDING, "embedding norm", "embedding norm", "layers.%d.enorm", 43);

int64_t prediction_depth(const struct builder *builder)
{
    int64_t layer = builder->assembly.tag.layer;
    return layer < 0 ? 0 : layer + 1 - builder->plan->model.layers;
}

int32_t prediction_targets(const struct builder *builder, int64_t depth)
{
    return builder->plan->targets[depth * builder->plan->train.accumulation + builder->assembly.tag.microbatch];
}

static struct layer_count count(const struct model_config *model)
{
    int64_t projection = 2 * model->hidden * model->hidden;
    int64_t parameters = projection + (model_norm_has_bias(model) ? 2 : 1) * model->hidden;
    return (struct layer_count){.parameters = parameters, .active = parameters, .multiplied = projection, .linears = 1};
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    int64_t hidden = declarations->builder->plan->model.hidden;
    declare_norm(declarations, &embedding_norm, &weights[WEIGHT_EMBEDDING_NORM]);
    struct declaration *projection =
        declare_linear(declarations, &weights[WEIGHT_PROJECTION], "prediction weight", LINEAR_KIND_PROJECTION, 0);
    projection->is_replicated = true;
    declare_rows(declarations, projection, &exported_projection, hidden, 2 * hidden);
}

// Returns the input tokens of an MTP module: the targets of the MTP module (or head) before it.
static int32_t tokens_of(const struct builder *builder)
{
    return prediction_targets(builder, prediction_depth(builder) - 1);
}

static void append_rows(struct sublayer *sublayer)
{
    struct builder *builder              = sublayer->builder;
    sublayer->values->tensor[VALUE_ROWS] = embedding_rows(builder, tokens_of(builder));
}

static struct norm_values norm_of_rows(const struct sublayer *sublayer)
{
    const int32_t *values = sublayer->values->tensor;
    return (struct norm_values){.x          = values[VALUE_ROWS],
                                .branch     = -1,
                                .weight     = sublayer->weights[WEIGHT_EMBEDDING_NORM],
                                .bias       = sublayer->weights[WEIGHT_EMBEDDING_NORM_BIAS],
                                .sum        = values[VALUE_ROWS],
                                .out        = values[VALUE_ROWS_N],
                                .statistics = values[VALUE_ROWS_STATISTICS]};
}

static void append_norm_of_rows(struct sublayer *sublayer)
{
    struct norm_values rows = norm_of_rows(sublayer);
    norm_forward(sublayer->builder, embedding_norm.forward, &rows);
    sublayer->values->tensor[VALUE_ROWS_N]          = rows.out;
    sublayer->values->tensor[VALUE_ROWS_STATISTICS] = rows.statistics;
}

static void append_pair(struct sublayer *sublayer)
{
    int32_t *values = sublayer->values->tensor;
    values[VALUE_PAIR] =
        columns_join(sublayer->builder, "prediction join", "prediction input", values[VALUE_ROWS_N], values[VALUE_N]);
}

static void append_projection(struct sublayer *sublayer)
{
    int32_t *values   = sublayer->values->tensor;
    values[VALUE_OUT] = linear_forward(sublayer->builder, "prediction projection", values[VALUE_PAIR],
                                       sublayer->weights[WEIGHT_PROJECTION]);
}

// Splits the gradient of VALUE_PAIR into the gradients of its two halves; the embedding's half is the first.
static void split(struct builder *builder, int32_t pair, int32_t halves[2])
{
    const int64_t *shape = DIMS(builder->shard_tokens, builder->plan->model.hidden);
    halves[0]            = assembly_activation(&builder->assembly, "embedding norm gradient", shape);
    halves[1]            = assembly_activation(&builder->assembly, "prediction norm gradient", shape);
    columns_split(builder, "prediction split", pair, halves[0], halves[1]);
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder    *builder = sublayer->builder;
    int32_t            weight  = sublayer->weights[WEIGHT_PROJECTION];
    struct norm_values rows    = norm_of_rows(sublayer);
    int32_t            halves[2];

    assembly_set_part(&builder->assembly, PART_MTP_PROJECTION);
    split(builder, linear_data_gradient(builder, "prediction data gradient", gradient, weight), halves);
    linear_weight_gradient(builder, "prediction weight gradient", gradient, sublayer->values->tensor[VALUE_PAIR],
                           weight);
    if (weight_is_frozen(builder, weight)) {
        return halves[1];
    }
    assembly_set_part(&builder->assembly, PART_MTP_EMBEDDING);
    int32_t of_rows = norm_backward(builder, embedding_norm.backward, &rows, halves[0], -1);
    embedding_gradient(builder, tokens_of(builder), of_rows);
    return halves[1];
}

enum { NORM_OF_ROWS = BIT(VALUE_ROWS_N) | BIT(VALUE_ROWS_STATISTICS) };

// clang-format off
static const struct forward_step steps[] = {
    // append,             part,                reads,                       makes,            saved_as,                modules
    { append_rows,         PART_MTP_EMBEDDING,  0,                           BIT(VALUE_ROWS),  1u << OUTPUT_NORM,       0 },
    { append_norm_of_rows, PART_MTP_EMBEDDING,  BIT(VALUE_ROWS),             NORM_OF_ROWS,     1u << OUTPUT_NORM,       0 },
    { append_pair,         PART_MTP_PROJECTION, BIT(VALUE_N) | NORM_OF_ROWS, BIT(VALUE_PAIR),  1u << OUTPUT_NORM,       0 },
    { append_projection,   PART_MTP_PROJECTION, BIT(VALUE_PAIR),             BIT(VALUE_OUT),   1u << OUTPUT_PROJECTION, 0 },
    { .append = NULL },
};
// clang-format on

const struct layer_kind prediction_kind = {
    .name     = "prediction",
    .norm     = &norm,
    .declare  = declare,
    .steps    = steps,
    .needed   = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_ROWS) | BIT(VALUE_ROWS_STATISTICS) | BIT(VALUE_PAIR),
    .backward = {backward},
    .count    = count,
    .begins   = true,
};

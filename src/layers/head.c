// SPDX-License-Identifier: MIT
// Defines the layer kinds of the head and of an MTP module's head: logits, loss, and their gradients. The loss
// overwrites the logits with their gradient, so only one tensor [tokens, vocabulary] exists per microbatch.
#include "embedding.h"

#include "gswbench/linear.h"

enum {
    VALUE_IN = VALUE_OWN,    // [tokens, hidden], normalised
    VALUE_LOGITS,            // [tokens, vocabulary]; the loss overwrites them with their gradient
};

static const struct exported exported = {"lm_head.weight", 3};

// Counts the parameters and FLOPs of the head. If the head is tied, its table counts as parameters of the embedding,
// but the GEMM with the table counts here.
static struct layer_count count(const struct model_config *model)
{
    int64_t table = model->vocab * model->hidden, own = model->tied ? 0 : table;
    return (struct layer_count){.parameters = own, .active = own, .multiplied = table};
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    const struct builder *builder = declarations->builder;
    if (builder->plan->model.tied) {
        weights[WEIGHT_TABLE] = embedding_table(builder);
    } else {
        declare_table(declarations, declare_matrix(declarations, &weights[WEIGHT_TABLE], "head weight"), &exported);
    }
}

// Counts the parameters and FLOPs of an MTP module's head, which uses the table of the model's head.
static struct layer_count count_prediction(const struct model_config *model)
{
    return (struct layer_count){.multiplied = model->vocab * model->hidden};
}

// Returns the index in plan->weights of the output layer's table, which is the embedding's if tied.
static int32_t head_table(const struct builder *builder)
{
    return builder->blocks[block_head(&builder->plan->model)].weights[0][WEIGHT_TABLE];
}

static void declare_prediction(struct declarations *declarations, int32_t *weights)
{
    weights[WEIGHT_TABLE] = head_table(declarations->builder);
}

// Returns the shape of ops on the logits: this rank's shard of the vocabulary.
static struct rows_shape logit_shape(const struct builder *builder)
{
    const struct plan        *plan = builder->plan;
    const struct weight      *head = &plan->weights[head_table(builder)];
    const struct weight_part *part = &head->part[0];
    return (struct rows_shape){.rows          = builder->tokens,
                               .columns       = head->rows,
                               .valid_columns = part->local_rows,
                               .first         = part->first_row,
                               .total         = part->rows,
                               .parts         = plan->mesh.size[AXIS_TP],
                               .multiplier    = (float)plan->model.logit_scale};
}

static int32_t gather_over_tensor(struct builder *builder, const char *role, int32_t own, int32_t all, int32_t hold)
{
    collect(builder, &(struct communication){OP_ALL_GATHER, role, .makes = MAKES_INPUT, .axes = 1u << AXIS_TP,
                                             .stream = STREAM_TENSOR, .in = own, .out = all, .hold = hold});
    return all;
}

// All-gathers three statistics of each token over tp, since each rank has a shard of the vocabulary: largest logit, sum
// of exponentials, and the target's logit. Returns them as [tp, tokens, 3], or -1 if tp = 1.
static int32_t gather_statistics(struct builder *builder, int32_t targets, int32_t logits)
{
    struct plan *plan  = builder->plan;
    int64_t      parts = plan->mesh.size[AXIS_TP];
    if (parts == 1) {
        return -1;
    }
    int32_t   own = assembly_tensor(&builder->assembly, "logit statistics", STORAGE_ACTIVATION, FORMAT_F32,
                                    DIMS(builder->tokens, 3));
    int32_t   all = assembly_tensor(&builder->assembly, "all logit statistics", STORAGE_ACTIVATION, FORMAT_F32,
                                    DIMS(parts, builder->tokens, 3));
    struct op op  = assembly_op(&builder->assembly, OP_LOGIT_STATISTICS, "logit statistics");
    op.shape.rows = logit_shape(builder);
    assembly_append_with(
        &builder->assembly, &op,
        SLOTS({LOGIT_STATISTICS_LOGITS, logits}, {LOGIT_STATISTICS_TARGETS, targets}, {LOGIT_STATISTICS_OUT, own}));
    return gather_over_tensor(builder, "logit statistics gather", own, all, -1);
}

static void append_loss(struct builder *builder, int32_t logits)
{
    struct plan               *plan       = builder->plan;
    const struct train_config *train      = &plan->train;
    double                     tokens     = (double)train->global_batch * (double)train->sequence;
    int64_t                    depth      = prediction_depth(builder);
    int32_t                    targets    = prediction_targets(builder, depth);
    int32_t                    loss       = depth > 0 ? plan->prediction_loss : plan->loss;
    double                     share      = depth > 0 ? 1.0 / (double)plan->model.predicted_tokens : 1.0;
    double                     weight     = depth > 0 ? train->prediction_weight : 1.0;
    int32_t                    statistics = gather_statistics(builder, targets, logits);
    int32_t                    losses =
        assembly_tensor(&builder->assembly, "token losses", STORAGE_ACTIVATION, FORMAT_F32, DIMS(builder->tokens));

    struct op entropy        = assembly_op(&builder->assembly, OP_CROSS_ENTROPY, "cross entropy");
    entropy.shape.rows       = logit_shape(builder);
    entropy.shape.rows.scale = (float)(weight * share / tokens);
    assembly_append_with(&builder->assembly, &entropy,
                         SLOTS({CROSS_ENTROPY_LOGITS, logits}, {CROSS_ENTROPY_TARGETS, targets},
                               {CROSS_ENTROPY_LOSS, losses}, {CROSS_ENTROPY_STATISTICS, statistics}));

    struct op sum   = assembly_op(&builder->assembly, OP_LOSS_SUM, "loss");
    sum.accumulates = plan->tensors[loss].first_op >= 0;
    // If tp ranks have the same loss, one of them counts it. The others add 0 * loss, so that a NaN still reaches the
    // sum.
    sum.shape.rows = (struct rows_shape){
        .rows = builder->tokens, .columns = 1, .scale = tp_counts_loss(plan) ? (float)(share / tokens) : 0.0F};
    assembly_append_with(&builder->assembly, &sum, SLOTS({LOSS_SUM_IN, losses}, {LOSS_SUM_OUT, loss}));
}

static void append_loss_of_rows(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t        *values  = sublayer->values->tensor;
    values[VALUE_IN]        = tp_gather(builder, "head input", values[VALUE_N]);
    values[VALUE_LOGITS]    = linear_forward(builder, "head", values[VALUE_IN], sublayer->weights[WEIGHT_TABLE]);
    assembly_set_part(&builder->assembly, PART_LOSS);

    builder->plan->tensors[values[VALUE_LOGITS]].holds = TENSOR_LOGITS;
    append_loss(builder, values[VALUE_LOGITS]);
}

// Clears the gradient of learned positions on the last stage, if that stage has a copy of the embedding's FSDP unit.
// The unit contains the position table, but the head does not use it.
static void clear_positions(struct builder *builder, int32_t table)
{
    struct plan *plan      = builder->plan;
    int32_t      positions = builder->blocks[0].weights[0][WEIGHT_POSITIONS];
    if (plan->units[plan->weights[table].unit].is_copy && positions >= 0 && !weight_is_frozen(builder, positions) &&
        !gradient_accumulates(builder, positions)) {
        assembly_clear(&builder->assembly, "position gradient", plan->weights[positions].gradient);
    }
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         table   = sublayer->weights[WEIGHT_TABLE];

    assembly_set_part(&builder->assembly, PART_HEAD);
    clear_positions(builder, table);
    int32_t dn       = linear_data_gradient(builder, "head data gradient", values[VALUE_LOGITS], table);
    dn               = tp_reduce(builder, "head input gradient", dn);
    bool is_deferred = sublayer->kind == &head_kind && builder->deferred_count < builder->deferral &&
                       !weight_is_frozen(builder, table);
    if (is_deferred) {
        builder->deferred[builder->deferred_count++] = (struct head_inputs){values[VALUE_N], values[VALUE_LOGITS]};
    } else {
        linear_weight_gradient(builder, "head weight gradient", values[VALUE_LOGITS], values[VALUE_IN], table);
    }
    if (gradient >= 0) {    // from the MTP modules, which also read the output of the final norm
        assembly_cast(&builder->assembly, "prediction gradient sum", gradient, dn, true);
    }
    return dn;
}

// All-gathers the head's input over tp again for a deferred weight gradient (deferred_head_gradients). The gather
// starts after the compute ops appended so far, so it overlaps with the GEMM of the previous microbatch.
static int32_t gather_again(struct builder *builder, int64_t microbatch)
{
    int32_t rows                     = builder->deferred[microbatch].x;
    builder->assembly.tag.microbatch = (int32_t)microbatch;
    if (builder->shard_tokens == builder->tokens) {
        return rows;
    }
    int32_t all =
        assembly_activation(&builder->assembly, "head input", DIMS(builder->tokens, builder->plan->model.hidden));
    return gather_over_tensor(builder, "head input", rows, all, builder->assembly.last_compute);
}

void head_append_deferred(struct builder *builder)
{
    assembly_set_part(&builder->assembly, PART_HEAD);
    int32_t in = gather_again(builder, 0);
    for (int64_t i = 0; i < builder->deferred_count; i++) {
        int32_t next                     = i + 1 < builder->deferred_count ? gather_again(builder, i + 1) : -1;
        builder->assembly.tag.microbatch = (int32_t)i;
        linear_weight_gradient(builder, "head weight gradient", builder->deferred[i].gradient, in, head_table(builder));
        in = next;
    }
}

static const struct norm_names norm = NORM_NAMES(PART_FINAL_NORM, "final norm", "final norm", "norm", 1);

static const struct forward_step steps[] = {
    {append_loss_of_rows, PART_HEAD, .reads = BIT(VALUE_N), .makes = BIT(VALUE_IN) | BIT(VALUE_LOGITS)},
    {.append = NULL},
};

enum { NEEDED = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_N) | BIT(VALUE_IN) | BIT(VALUE_LOGITS) };

const struct layer_kind head_kind = {
    .name     = "head",
    .norm     = &norm,
    .declare  = declare,
    .steps    = steps,
    .needed   = NEEDED,
    .backward = {backward},
    .count    = count,
    .ends     = true,
};

static const struct norm_names prediction_norm =
    NORM_NAMES(PART_FINAL_NORM, "final norm", "final norm", "layers.%d.shared_head.norm", 45);

const struct layer_kind prediction_head_kind = {
    .name     = "prediction_head",
    .norm     = &prediction_norm,
    .declare  = declare_prediction,
    .steps    = steps,
    .needed   = NEEDED,
    .backward = {backward},
    .count    = count_prediction,
    .ends     = true,
};

// SPDX-License-Identifier: MIT
// The head: final norm, logits, loss, and their gradients in one go. The loss kernel turns the logits into their
// gradient in place, so that only one [T, vocabulary] tensor exists.
#include "internal.h"

// The part of the vocabulary that is here.
static struct rows_shape logit_shape(const struct builder *builder)
{
    const struct plan        *plan = builder->plan;
    const struct weight      *head = &plan->weights[builder->weights.head];
    const struct weight_part *part = &head->part[0];
    return (struct rows_shape){.rows          = builder->tokens,
                               .columns       = head->rows,
                               .valid_columns = part->local_rows,
                               .first         = part->first_row,
                               .total         = part->rows,
                               .parts         = plan->mesh.size[AXIS_TP]};
}

static int32_t gather_over_tensor(struct builder *builder, const char *role, int32_t own, int32_t all, int32_t hold)
{
    builder_transfer(builder, &(struct transfer){.kind = OP_ALL_GATHER,
                                                 .role = role,
                                                 .axes = 1u << AXIS_TP,
                                                 .lane = LANE_TENSOR,
                                                 .in   = own,
                                                 .out  = all,
                                                 .hold = hold});
    return all;
}

// What every rank of tp has to know of the others' logits: [tp, T, 3].
static int32_t gather_statistics(struct builder *builder, int64_t microbatch, int32_t logits)
{
    struct plan *plan  = builder->plan;
    int64_t      parts = plan->mesh.size[AXIS_TP];
    if (parts == 1) {
        return -1;
    }
    int32_t own = builder_tensor(builder, "logit statistics", STORAGE_ACTIVATION, DTYPE_F32, DIMS(builder->tokens, 3));
    int32_t all =
        builder_tensor(builder, "all logit statistics", STORAGE_ACTIVATION, DTYPE_F32, DIMS(parts, builder->tokens, 3));
    struct op op = builder_op(builder, OP_LOGIT_STATISTICS, "logit statistics");
    builder_operand(&op, LOGIT_STATISTICS_LOGITS, ACCESS_READ, logits);
    builder_operand(&op, LOGIT_STATISTICS_TARGETS, ACCESS_READ, plan->targets[microbatch]);
    builder_operand(&op, LOGIT_STATISTICS_OUT, ACCESS_WRITE, own);
    op.shape.rows = logit_shape(builder);
    builder_append(builder, &op);
    return gather_over_tensor(builder, "logit statistics gather", own, all, -1);
}

static void append_loss(struct builder *builder, int64_t microbatch, int32_t logits)
{
    struct plan               *plan       = builder->plan;
    const struct train_config *train      = &plan->train;
    double                     tokens     = (double)train->global_batch * (double)train->sequence;
    int32_t                    statistics = gather_statistics(builder, microbatch, logits);
    int32_t losses = builder_tensor(builder, "token losses", STORAGE_ACTIVATION, DTYPE_F32, DIMS(builder->tokens));

    struct op entropy = builder_op(builder, OP_CROSS_ENTROPY, "cross entropy");
    builder_operand(&entropy, CROSS_ENTROPY_LOGITS, ACCESS_UPDATE, logits);
    builder_operand(&entropy, CROSS_ENTROPY_TARGETS, ACCESS_READ, plan->targets[microbatch]);
    builder_operand(&entropy, CROSS_ENTROPY_LOSS, ACCESS_WRITE, losses);
    if (statistics >= 0) {
        builder_operand(&entropy, CROSS_ENTROPY_STATISTICS, ACCESS_READ, statistics);
    }
    entropy.shape.rows       = logit_shape(builder);
    entropy.shape.rows.scale = (float)(1.0 / tokens);
    builder_append(builder, &entropy);

    struct op sum   = builder_op(builder, OP_LOSS_SUM, "loss");
    sum.accumulates = plan->tensors[plan->loss].first_op >= 0;
    builder_operand(&sum, LOSS_SUM_IN, ACCESS_READ, losses);
    builder_operand(&sum, LOSS_SUM_OUT, sum.accumulates ? ACCESS_UPDATE : ACCESS_WRITE, plan->loss);
    sum.shape.rows = (struct rows_shape){.rows = builder->tokens, .columns = 1, .scale = (float)(1.0 / tokens)};
    builder_append(builder, &sum);
}

int32_t head_forward_backward(struct builder *builder, int64_t microbatch, int32_t x, int32_t branch)
{
    struct norm_values norm = {
        .x = x, .branch = branch, .weight = builder->weights.final_norm, .bias = builder->weights.final_norm_bias};
    int32_t head = builder->weights.head;

    norm_forward(builder, "final norm", &norm);
    int32_t in     = tensor_gather(builder, "head input", norm.out);
    int32_t logits = linear_forward(builder, "head", in, head);
    append_loss(builder, microbatch, logits);    // from here on, logits hold their gradient
    builder->tag.phase = PHASE_BACKWARD;
    int32_t d_norm     = linear_data_gradient(builder, "head data gradient", logits, head);
    d_norm             = tensor_reduce(builder, "head input gradient", d_norm);
    if (builder->deferred_count < builder->deferral) {
        builder->deferred[builder->deferred_count++] = (struct head_inputs){norm.out, logits};
    } else {
        linear_weight_gradient(builder, "head weight gradient", logits, in, head);
    }
    return norm_backward(builder, "final norm gradient", &norm, d_norm, -1);
}

// A deferred microbatch's rows of all ranks, gathered a second time, but not before what precedes it: so one product
// ahead of their use.
static int32_t gather_again(struct builder *builder, int64_t microbatch)
{
    int32_t rows            = builder->deferred[microbatch].x;
    builder->tag.microbatch = (int32_t)microbatch;
    if (builder->shard_tokens == builder->tokens) {
        return rows;
    }
    int32_t all = builder_activation(builder, "head input", DIMS(builder->tokens, builder->plan->model.hidden));
    return gather_over_tensor(builder, "head input", rows, all, builder->last_compute);
}

void head_append_deferred(struct builder *builder)
{
    int32_t in = gather_again(builder, 0);
    for (int64_t i = 0; i < builder->deferred_count; i++) {
        int32_t next            = i + 1 < builder->deferred_count ? gather_again(builder, i + 1) : -1;
        builder->tag.microbatch = (int32_t)i;
        linear_weight_gradient(builder, "head weight gradient", builder->deferred[i].gradient, in,
                               builder->weights.head);
        in = next;
    }
}

// SPDX-License-Identifier: MIT
// The head: final norm, logits, loss, and their gradients in one go. The loss kernel turns the logits into their
// gradient in place, so that only one [T, vocabulary] tensor exists.
#include "internal.h"

static int32_t append_loss(struct builder *builder, int64_t microbatch, int32_t logits)
{
    struct plan               *plan   = builder->plan;
    const struct train_config *train  = &plan->train;
    double                     tokens = (double)train->global_batch * (double)train->sequence;
    int32_t losses = builder_tensor(builder, "token losses", STORAGE_ACTIVATION, DTYPE_F32, DIMS(builder->tokens));

    struct op entropy = builder_op(builder, OP_CROSS_ENTROPY, "cross entropy");
    builder_operand(&entropy, CROSS_ENTROPY_LOGITS, ACCESS_UPDATE, logits);
    builder_operand(&entropy, CROSS_ENTROPY_TARGETS, ACCESS_READ, plan->targets[microbatch]);
    builder_operand(&entropy, CROSS_ENTROPY_LOSS, ACCESS_WRITE, losses);
    entropy.shape.rows = (struct rows_shape){.rows          = builder->tokens,
                                             .columns       = plan->tensors[logits].dim[1],
                                             .valid_columns = plan->model.vocab,
                                             .scale         = (float)(1.0 / tokens)};
    builder_append(builder, &entropy);

    struct op sum   = builder_op(builder, OP_LOSS_SUM, "loss");
    sum.accumulates = plan->tensors[plan->loss].first_op >= 0;
    builder_operand(&sum, LOSS_SUM_IN, ACCESS_READ, losses);
    builder_operand(&sum, LOSS_SUM_OUT, sum.accumulates ? ACCESS_UPDATE : ACCESS_WRITE, plan->loss);
    sum.shape.rows = (struct rows_shape){.rows = builder->tokens, .columns = 1, .scale = (float)(1.0 / tokens)};
    builder_append(builder, &sum);
    return logits;
}

int32_t head_forward_backward(struct builder *builder, int64_t microbatch, int32_t x, int32_t branch)
{
    struct norm_values norm = {
        .x = x, .branch = branch, .weight = builder->weights.final_norm, .bias = builder->weights.final_norm_bias};
    int32_t head = builder->weights.head;

    norm_forward(builder, "final norm", &norm);
    int32_t logits     = linear_forward(builder, "head", norm.out, head);
    int32_t d_logits   = append_loss(builder, microbatch, logits);
    builder->tag.phase = PHASE_BACKWARD;
    int32_t d_norm     = linear_data_gradient(builder, "head data gradient", d_logits, head);
    linear_weight_gradient(builder, "head weight gradient", d_logits, norm.out, head);
    return norm_backward(builder, "final norm gradient", &norm, d_norm, -1);
}

// SPDX-License-Identifier: MIT
// Launches the kernels on flat arrays, column sums, cross entropy and loss sums.
#include "internal.h"
#include "kernels/cross_entropy.h"
#include "kernels/elements.h"

void device_cast(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(cast, .in = DATA(CAST_IN), .out = DATA(CAST_OUT), .elements = op->shape.elements.elements,
                  .accumulates = op->accumulates, .from = buffers[CAST_IN].format, .to = buffers[CAST_OUT].format);
}

int64_t device_square_sum_scratch(const struct op *op, const struct kernel_target *target)
{
    return square_sum_scratch_bytes(op->shape.elements.elements, target);
}

void device_square_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct device *device = device_of(backend);
    DEVICE_LAUNCH(square_sum, .in = DATA(SQUARE_SUM_IN), .out = DATA(SQUARE_SUM_OUT), .scratch = device->scratch,
                  .elements = op->shape.elements.elements, .type = buffers[SQUARE_SUM_IN].format,
                  .accumulates = op->accumulates);
}

void device_clip(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(clip, .squares = DATA(CLIP_PARTIALS), .norm = DATA(CLIP_NORM), .factor = DATA(CLIP_SCALE),
                  .count = op->shape.elements.elements, .limit = op->shape.elements.limit);
}

// The AdamW kernel reads the array of HYPER_COUNT hyperparameters as struct adamw_hyper, so both must have the same
// layout.
_Static_assert(sizeof(struct adamw_hyper) == HYPER_COUNT * sizeof(float), "same number of floats");
_Static_assert(offsetof(struct adamw_hyper, learning_rate) == HYPER_LEARNING_RATE * sizeof(float), "same order");
_Static_assert(offsetof(struct adamw_hyper, beta1) == HYPER_BETA1 * sizeof(float), "same order");
_Static_assert(offsetof(struct adamw_hyper, beta2) == HYPER_BETA2 * sizeof(float), "same order");
_Static_assert(offsetof(struct adamw_hyper, epsilon) == HYPER_EPSILON * sizeof(float), "same order");
_Static_assert(offsetof(struct adamw_hyper, decay) == HYPER_DECAY * sizeof(float), "same order");
_Static_assert(offsetof(struct adamw_hyper, correction1) == HYPER_CORRECTION1 * sizeof(float), "same order");
_Static_assert(offsetof(struct adamw_hyper, correction2) == HYPER_CORRECTION2 * sizeof(float), "same order");
_Static_assert(offsetof(struct adamw_hyper, key) == HYPER_KEY_LOW * sizeof(float), "same order");

void device_adamw(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(adamw, .hyper = DATA(ADAMW_HYPER), .scale = DATA(ADAMW_SCALE), .gradient = DATA(ADAMW_GRADIENT),
                  .master = DATA(ADAMW_MASTER), .first = DATA(ADAMW_FIRST), .second = DATA(ADAMW_SECOND),
                  .weight = DATA(ADAMW_WEIGHT), .magnitude = DATA(ADAMW_AMAX), .elements = op->shape.elements.elements,
                  .gradient_type = buffers[ADAMW_GRADIENT].format, .moment = buffers[ADAMW_FIRST].format,
                  .weight_type = buffers[ADAMW_WEIGHT].format);
}

void device_momentum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(momentum, .scale = DATA(MOMENTUM_SCALE), .gradient = DATA(MOMENTUM_GRADIENT),
                  .momentum = DATA(MOMENTUM_FIRST), .out = DATA(MOMENTUM_OUT), .elements = op->shape.elements.elements,
                  .decay = op->shape.elements.factor, .gradient_type = buffers[MOMENTUM_GRADIENT].format,
                  .moment = buffers[MOMENTUM_FIRST].format);
}

void device_normalize(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(normalize, .in = DATA(NORMALIZE_IN), .squares = DATA(NORMALIZE_SUM), .out = DATA(NORMALIZE_OUT),
                  .elements = op->shape.elements.elements, .type = buffers[NORMALIZE_OUT].format);
}

void device_muon(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(muon, .hyper = DATA(MUON_HYPER), .scale = DATA(MUON_SCALE), .update = DATA(MUON_UPDATE),
                  .master = DATA(MUON_MASTER), .weight = DATA(MUON_WEIGHT), .elements = op->shape.elements.elements,
                  .factor = op->shape.elements.factor, .type = buffers[MUON_UPDATE].format);
}

int64_t device_column_sum_scratch(const struct op *op, const struct kernel_target *target)
{
    return kernel_column_sum_scratch_bytes(op->shape.rows.rows, op->shape.rows.columns, target);
}

void device_column_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(column_sum, .in = DATA(COLUMN_SUM_IN), .out = DATA(COLUMN_SUM_OUT),
                  .scratch = device_of(backend)->scratch, .rows = op->shape.rows.rows,
                  .columns = op->shape.rows.columns, .accumulates = op->accumulates,
                  .in_type = buffers[COLUMN_SUM_IN].format, .out_type = buffers[COLUMN_SUM_OUT].format);
}

void device_logit_statistics(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    DEVICE_LAUNCH(logit_statistics, .logits = DATA(LOGIT_STATISTICS_LOGITS), .targets = DATA(LOGIT_STATISTICS_TARGETS),
                  .out = DATA(LOGIT_STATISTICS_OUT), .rows = shape->rows, .columns = shape->columns,
                  .valid = shape->valid_columns, .first = shape->first, .multiplier = shape->multiplier,
                  .type = buffers[LOGIT_STATISTICS_LOGITS].format);
}

void device_cross_entropy(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    DEVICE_LAUNCH(cross_entropy, .logits = DATA(CROSS_ENTROPY_LOGITS), .targets = DATA(CROSS_ENTROPY_TARGETS),
                  .losses = DATA(CROSS_ENTROPY_LOSS), .statistics = DATA(CROSS_ENTROPY_STATISTICS), .rows = shape->rows,
                  .columns = shape->columns, .valid = shape->valid_columns, .first = shape->first,
                  .parts = shape->parts, .scale = shape->scale, .multiplier = shape->multiplier,
                  .type = buffers[CROSS_ENTROPY_LOGITS].format);
}

void device_loss_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(scaled_sum, .in = DATA(LOSS_SUM_IN), .out = DATA(LOSS_SUM_OUT), .elements = op->shape.rows.rows,
                  .factor = op->shape.rows.scale, .accumulates = op->accumulates);
}

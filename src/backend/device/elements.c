// SPDX-License-Identifier: MIT
// Launches the kernels on flat arrays, column sums, cross entropy and loss sums.
#include "internal.h"
#include "kernels/cross_entropy.h"
#include "kernels/elements.h"

void device_cast(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(cast, .in = buffers[CAST_IN].data, .out = buffers[CAST_OUT].data,
                  .elements = op->shape.elements.elements, .accumulates = op->accumulates,
                  .from = buffers[CAST_IN].format, .to = buffers[CAST_OUT].format);
}

int64_t device_square_sum_scratch(const struct op *op, const struct kernel_target *target)
{
    return square_sum_scratch_bytes(op->shape.elements.elements, target);
}

void device_square_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct device *device = device_of(backend);
    DEVICE_LAUNCH(square_sum, .in = buffers[SQUARE_SUM_IN].data, .out = buffers[SQUARE_SUM_OUT].data,
                  .scratch = device->scratch, .elements = op->shape.elements.elements,
                  .type = buffers[SQUARE_SUM_IN].format, .accumulates = op->accumulates);
}

void device_clip(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(clip, .squares = buffers[CLIP_PARTIALS].data, .norm = buffers[CLIP_NORM].data,
                  .factor = buffers[CLIP_SCALE].data, .count = op->shape.elements.elements,
                  .limit = op->shape.elements.limit);
}

// The device reads the hyperparameters as a struct.
_Static_assert(sizeof(struct adamw_hyper) == HYPER_COUNT * sizeof(float), "as many as there are");
_Static_assert(offsetof(struct adamw_hyper, learning_rate) == HYPER_LEARNING_RATE * sizeof(float), "their order");
_Static_assert(offsetof(struct adamw_hyper, beta1) == HYPER_BETA1 * sizeof(float), "their order");
_Static_assert(offsetof(struct adamw_hyper, beta2) == HYPER_BETA2 * sizeof(float), "their order");
_Static_assert(offsetof(struct adamw_hyper, epsilon) == HYPER_EPSILON * sizeof(float), "their order");
_Static_assert(offsetof(struct adamw_hyper, decay) == HYPER_DECAY * sizeof(float), "their order");
_Static_assert(offsetof(struct adamw_hyper, correction1) == HYPER_CORRECTION1 * sizeof(float), "their order");
_Static_assert(offsetof(struct adamw_hyper, correction2) == HYPER_CORRECTION2 * sizeof(float), "their order");
_Static_assert(offsetof(struct adamw_hyper, key) == HYPER_KEY_LOW * sizeof(float), "their order");

void device_adamw(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(adamw, .hyper = buffers[ADAMW_HYPER].data, .scale = buffers[ADAMW_SCALE].data,
                  .gradient = buffers[ADAMW_GRADIENT].data, .master = buffers[ADAMW_MASTER].data,
                  .first = buffers[ADAMW_FIRST].data, .second = buffers[ADAMW_SECOND].data,
                  .weight = buffers[ADAMW_WEIGHT].data, .magnitude = buffers[ADAMW_AMAX].data,
                  .elements = op->shape.elements.elements, .gradient_type = buffers[ADAMW_GRADIENT].format,
                  .moment = buffers[ADAMW_FIRST].format, .weight_type = buffers[ADAMW_WEIGHT].format);
}

void device_momentum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(momentum, .scale = buffers[MOMENTUM_SCALE].data, .gradient = buffers[MOMENTUM_GRADIENT].data,
                  .momentum = buffers[MOMENTUM_FIRST].data, .out = buffers[MOMENTUM_OUT].data,
                  .elements = op->shape.elements.elements, .decay = op->shape.elements.factor,
                  .gradient_type = buffers[MOMENTUM_GRADIENT].format, .moment = buffers[MOMENTUM_FIRST].format);
}

void device_normalize(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(normalize, .in = buffers[NORMALIZE_IN].data, .squares = buffers[NORMALIZE_SUM].data,
                  .out = buffers[NORMALIZE_OUT].data, .elements = op->shape.elements.elements,
                  .type = buffers[NORMALIZE_OUT].format);
}

void device_muon(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(muon, .hyper = buffers[MUON_HYPER].data, .scale = buffers[MUON_SCALE].data,
                  .update = buffers[MUON_UPDATE].data, .master = buffers[MUON_MASTER].data,
                  .weight = buffers[MUON_WEIGHT].data, .elements = op->shape.elements.elements,
                  .factor = op->shape.elements.factor, .type = buffers[MUON_UPDATE].format);
}

int64_t device_column_sum_scratch(const struct op *op, const struct kernel_target *target)
{
    return kernel_column_sum_scratch_bytes(op->shape.rows.rows, op->shape.rows.columns, target);
}

void device_column_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(column_sum, .in = buffers[COLUMN_SUM_IN].data, .out = buffers[COLUMN_SUM_OUT].data,
                  .scratch = device_of(backend)->scratch, .rows = op->shape.rows.rows,
                  .columns = op->shape.rows.columns, .accumulates = op->accumulates,
                  .in_type = buffers[COLUMN_SUM_IN].format, .out_type = buffers[COLUMN_SUM_OUT].format);
}

void device_logit_statistics(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    DEVICE_LAUNCH(logit_statistics, .logits = buffers[LOGIT_STATISTICS_LOGITS].data,
                  .targets = buffers[LOGIT_STATISTICS_TARGETS].data, .out = buffers[LOGIT_STATISTICS_OUT].data,
                  .rows = shape->rows, .columns = shape->columns, .valid = shape->valid_columns, .first = shape->first,
                  .multiplier = shape->multiplier, .type = buffers[LOGIT_STATISTICS_LOGITS].format);
}

void device_cross_entropy(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    DEVICE_LAUNCH(cross_entropy, .logits = buffers[CROSS_ENTROPY_LOGITS].data,
                  .targets = buffers[CROSS_ENTROPY_TARGETS].data, .losses = buffers[CROSS_ENTROPY_LOSS].data,
                  .statistics = buffers[CROSS_ENTROPY_STATISTICS].data, .rows = shape->rows, .columns = shape->columns,
                  .valid = shape->valid_columns, .first = shape->first, .parts = shape->parts, .scale = shape->scale,
                  .multiplier = shape->multiplier, .type = buffers[CROSS_ENTROPY_LOGITS].format);
}

void device_loss_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(scaled_sum, .in = buffers[LOSS_SUM_IN].data, .out = buffers[LOSS_SUM_OUT].data,
                  .elements = op->shape.rows.rows, .factor = op->shape.rows.scale, .accumulates = op->accumulates);
}

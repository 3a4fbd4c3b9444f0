// SPDX-License-Identifier: MIT
// Launches the kernels on flat arrays.
#include "internal.h"
#include "kernels/adamw.h"
#include "kernels/elements.h"

void device_cast(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    DEVICE_CHECK(kernel_cast(&(struct cast_args){.in          = buffers[CAST_IN].data,
                                                 .out         = buffers[CAST_OUT].data,
                                                 .elements    = op->shape.elements.elements,
                                                 .accumulates = op->accumulates,
                                                 .from        = buffers[CAST_IN].format,
                                                 .to          = buffers[CAST_OUT].format},
                             &target));
}

int64_t device_square_sum_scratch(const struct op *op, const struct kernel_target *target)
{
    return square_sum_scratch_bytes(op->shape.elements.elements, target);
}

void device_square_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct device *device = device_of(backend);
    struct kernel_target target = device_target(backend, op);
    DEVICE_CHECK(kernel_square_sum(&(struct square_sum_args){.in          = buffers[SQUARE_SUM_IN].data,
                                                             .out         = buffers[SQUARE_SUM_OUT].data,
                                                             .scratch     = device->scratch,
                                                             .elements    = op->shape.elements.elements,
                                                             .type        = buffers[SQUARE_SUM_IN].format,
                                                             .accumulates = op->accumulates},
                                   &target));
}

void device_clip(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    DEVICE_CHECK(kernel_clip(&(struct clip_args){.squares = buffers[CLIP_PARTIALS].data,
                                                 .norm    = buffers[CLIP_NORM].data,
                                                 .factor  = buffers[CLIP_SCALE].data,
                                                 .count   = op->shape.elements.elements,
                                                 .limit   = op->shape.elements.limit},
                             &target));
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

void device_adamw(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    DEVICE_CHECK(kernel_adamw(&(struct adamw_args){.hyper         = buffers[ADAMW_HYPER].data,
                                                   .scale         = buffers[ADAMW_SCALE].data,
                                                   .gradient      = buffers[ADAMW_GRADIENT].data,
                                                   .master        = buffers[ADAMW_MASTER].data,
                                                   .first         = buffers[ADAMW_FIRST].data,
                                                   .second        = buffers[ADAMW_SECOND].data,
                                                   .weight        = buffers[ADAMW_WEIGHT].data,
                                                   .magnitude     = buffers[ADAMW_AMAX].data,
                                                   .elements      = op->shape.elements.elements,
                                                   .gradient_type = buffers[ADAMW_GRADIENT].format,
                                                   .moment        = buffers[ADAMW_FIRST].format,
                                                   .weight_type   = buffers[ADAMW_WEIGHT].format},
                              &target));
}

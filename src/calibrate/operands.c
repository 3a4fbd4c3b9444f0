// SPDX-License-Identifier: MIT
// Values of operands: normal numbers, but where an op wants indices, positive numbers or an optimizer's scalars.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/fp8.h"
#include "gswbench/random.h"
#include "internal.h"

enum { PIECE = 1 << 14 };    // values that are drawn; larger operands repeat them

// Indices are below this.
static uint32_t index_bound(const struct op *op, int slot)
{
    const struct routing_shape *routing = &op->shape.routing;
    switch (op->kind) {
    case OP_EMBEDDING_FORWARD:
    case OP_EMBEDDING_BACKWARD:
    case OP_LOGIT_STATISTICS:
    case OP_CROSS_ENTROPY:
        return (uint32_t)op->shape.rows.total;
    case OP_ROUTE_BACKWARD:
        return (uint32_t)routing->experts;
    case OP_DISPATCH:
        return (uint32_t)(routing->rows * routing->top_k);
    case OP_COMBINE:
        return (uint32_t)(routing->experts * routing->capacity);
    case OP_COMBINE_BACKWARD:
        return (uint32_t)(slot == COMBINE_GRADIENT_SLOTS ? routing->experts * routing->capacity
                                                         : routing->rows * routing->top_k);
    default:
        return 1;
    }
}

// Deviations, sums of exponentials, second moments and factors.
static bool is_positive(const struct op *op, int slot)
{
    switch (op->kind) {
    case OP_GEMM:
        return slot == GEMM_FACTOR_A || slot == GEMM_FACTOR_B;
    case OP_NORM_BACKWARD:
        return slot == NORM_GRADIENT_STATISTICS;
    case OP_ATTENTION_BACKWARD:
        return slot == ATTENTION_GRADIENT_STATISTICS;
    case OP_CROSS_ENTROPY:
        return slot == CROSS_ENTROPY_STATISTICS;
    case OP_ADAMW:
        return slot == ADAMW_SCALE || slot == ADAMW_SECOND;
    default:
        return false;
    }
}

static float draw_value(const struct op *op, int slot, int64_t i)
{
    static const float hyper[HYPER_COUNT] = {
        [HYPER_LEARNING_RATE] = 1e-4F, [HYPER_BETA1] = 0.9F,        [HYPER_BETA2] = 0.95F,      [HYPER_EPSILON] = 1e-8F,
        [HYPER_DECAY] = 0.1F,          [HYPER_CORRECTION1] = 0.65F, [HYPER_CORRECTION2] = 0.4F,
    };
    if (op->kind == OP_ADAMW && slot == ADAMW_HYPER) {
        return hyper[i];
    }
    float normal = random_normal((uint64_t)slot, (uint64_t)i);
    return is_positive(op, slot) ? 1.0F + fabsf(normal) : normal;
}

static void draw(void *values, enum dtype dtype, const struct op *op, int slot, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (dtype == DTYPE_F32) {
            ((float *)values)[i] = draw_value(op, slot, i);
        } else if (dtype == DTYPE_BF16) {
            ((bf16 *)values)[i] = bf16_from_float(draw_value(op, slot, i));
        } else if (dtype == DTYPE_I32) {
            ((int32_t *)values)[i] = (int32_t)random_below((uint64_t)slot, 0, (uint64_t)i, index_bound(op, slot));
        } else {
            ((uint8_t *)values)[i] = fp8_from_float(dtype, draw_value(op, slot, i));
        }
    }
}

void operand_fill(struct step *step, const struct plan *plan, int32_t tensor, const struct op *op, int slot)
{
    const struct tensor *shape = &plan->tensors[tensor];
    int64_t              width = dtype_bytes(shape->dtype), count = shape->elements < PIECE ? shape->elements : PIECE;
    char                *values = memory_allocate((size_t)shape->bytes);
    draw(values, shape->dtype, op, slot, count);
    for (int64_t first = count; first < shape->elements; first += count) {
        int64_t left = shape->elements - first;
        memcpy(values + first * width, values, (size_t)((left < count ? left : count) * width));
    }
    step_write(step, tensor, values);
    free(values);
}

// SPDX-License-Identifier: MIT
// A table of ops in awkward sizes with operands to run them on, for comparing a backend's results with the host's.
#ifndef GSWBENCH_TESTS_OP_CASES_H
#define GSWBENCH_TESTS_OP_CASES_H

#include "gswbench/model.h"
#include "host.h"

struct op_case {
    const char *name;
    uint8_t     kind;
    bool        accumulates;
    enum dtype  dtype[OP_OPERANDS];
    unsigned    absent, written, updated;    // slots, a bit each; the others are read
    union {
        struct rows_shape      rows;
        struct attention_shape attention;
        struct routing_shape   routing;
        struct elements_shape  elements;
    } shape;
};

// clang-format off
#define F DTYPE_F32
#define B DTYPE_BF16
#define I DTYPE_I32
#define SLOT(slot) (1u << (slot))

#define EMBEDDING(rows_, columns_, vocabulary, first_, total_) \
    .shape.rows = {.rows = rows_, .columns = columns_, .valid_columns = vocabulary, .first = first_, .total = total_}
#define NORM(rows_, columns_, variant_) .shape.rows = {.rows = rows_, .columns = columns_, .epsilon = 1e-5f, .variant = variant_}
#define ROPE(batch_, sequence_, heads_, kv_heads_, head_dim_, rotary_) \
    .shape.attention = {.batch = batch_, .sequence = sequence_, .heads = heads_, .kv_heads = kv_heads_, .head_dim = head_dim_, .rotary = rotary_}
#define LOSS(rows_, columns_, valid, first_, total_, parts_) \
    .shape.rows = {.rows = rows_, .columns = columns_, .valid_columns = valid, .first = first_, .total = total_, .parts = parts_, .scale = 0.125f}
#define ROUTE(rows_, columns_, first_, total_, sequences_, run, experts_, top_k_, owners_, capacity_, taken_) \
    .shape.routing = {.rows = rows_, .columns = columns_, .first = first_, .total = total_, .sequences = sequences_, .sequence_rows = run, \
                      .experts = experts_, .top_k = top_k_, .owners = owners_, .capacity = capacity_, .taken = taken_, .auxiliary = 0.02f}
#define ELEMENTS(count) .shape.elements = {.elements = count, .limit = 1.0f}
#define NORM_OUTPUTS (SLOT(NORM_SUM) | SLOT(NORM_OUT) | SLOT(NORM_STATISTICS))
#define NORM_PLAIN (SLOT(NORM_BRANCH) | SLOT(NORM_SUM))
#define NORM_GRADIENTS (SLOT(NORM_GRADIENT_WEIGHT) | SLOT(NORM_GRADIENT_BIAS))
#define ROUTE_OUTPUTS (SLOT(ROUTE_CHOICES) | SLOT(ROUTE_SLOTS) | SLOT(ROUTE_GATES) | SLOT(ROUTE_SOURCES) | SLOT(ROUTE_COUNTS))
#define ADAMW_STATE (SLOT(ADAMW_MASTER) | SLOT(ADAMW_FIRST) | SLOT(ADAMW_SECOND))

static const struct op_case op_cases[] = {
    {"embedding", OP_EMBEDDING_FORWARD, false, {I, B, B}, 0, SLOT(EMBEDDING_OUT), 0, EMBEDDING(37, 64, 50, 0, 50)},
    {"embedding, a part", OP_EMBEDDING_FORWARD, false, {I, F, F}, 0, SLOT(EMBEDDING_OUT), 0, EMBEDDING(37, 13, 20, 10, 50)},
    {"embedding gradient", OP_EMBEDDING_BACKWARD, false, {I, B, F}, 0, SLOT(EMBEDDING_GRADIENT_TABLE), 0, EMBEDDING(300, 72, 20, 0, 20)},
    {"embedding gradient, a part", OP_EMBEDDING_BACKWARD, true, {I, B, B}, 0, 0, SLOT(EMBEDDING_GRADIENT_TABLE), EMBEDDING(100, 19, 20, 15, 50)},
    {"embedding gradient, one token", OP_EMBEDDING_BACKWARD, false, {I, F, F}, 0, SLOT(EMBEDDING_GRADIENT_TABLE), 0, EMBEDDING(65, 8, 1, 0, 1)},
    {"rms norm", OP_NORM_FORWARD, false, {B, B, B, B, B, B, F}, SLOT(NORM_BIAS), NORM_OUTPUTS, 0, NORM(70, 1024, NORM_RMS)},
    {"rms norm, odd", OP_NORM_FORWARD, false, {B, B, B, B, B, B, F}, SLOT(NORM_BIAS) | NORM_PLAIN, NORM_OUTPUTS & ~SLOT(NORM_SUM), 0, NORM(5, 4107, NORM_RMS)},
    {"layer norm", OP_NORM_FORWARD, false, {F, F, F, F, F, F, F}, 0, NORM_OUTPUTS, 0, NORM(9, 18432, NORM_LAYER)},
    {"layer norm 1p, odd", OP_NORM_FORWARD, false, {B, B, B, B, B, B, F}, 0, NORM_OUTPUTS, 0, NORM(33, 131, NORM_LAYER_1P)},
    {"rms norm gradient", OP_NORM_BACKWARD, true, {B, B, B, F, B, B, F}, SLOT(NORM_GRADIENT_BIAS), SLOT(NORM_GRADIENT_IN), SLOT(NORM_GRADIENT_WEIGHT), NORM(100, 2048, NORM_RMS)},
    {"rms norm gradient, odd", OP_NORM_BACKWARD, false, {F, F, F, F, F, F, F}, SLOT(NORM_GRADIENT_BIAS) | SLOT(NORM_GRADIENT_RESIDUAL), SLOT(NORM_GRADIENT_IN) | SLOT(NORM_GRADIENT_WEIGHT), 0, NORM(11, 301, NORM_RMS)},
    {"layer norm gradient", OP_NORM_BACKWARD, false, {B, B, B, F, B, B, B, B}, 0, SLOT(NORM_GRADIENT_IN) | NORM_GRADIENTS, 0, NORM(40, 96, NORM_LAYER)},
    {"layer norm 1p gradient, wide", OP_NORM_BACKWARD, true, {B, B, B, F, B, B, F, F}, SLOT(NORM_GRADIENT_RESIDUAL), SLOT(NORM_GRADIENT_IN), NORM_GRADIENTS, NORM(7, 18432, NORM_LAYER_1P)},
    {"layer norm 1p gradient, odd", OP_NORM_BACKWARD, false, {B, B, B, F, B, B, F, F}, 0, SLOT(NORM_GRADIENT_IN) | NORM_GRADIENTS, 0, NORM(50, 77, NORM_LAYER_1P)},
    {"rope", OP_ROPE_FORWARD, false, {F, B, B, B}, 0, SLOT(ROPE_QUERY) | SLOT(ROPE_KEY_VALUE), 0, ROPE(2, 9, 8, 2, 128, 128)},
    {"rope, half", OP_ROPE_FORWARD, false, {F, B, B, B}, 0, SLOT(ROPE_QUERY) | SLOT(ROPE_KEY_VALUE), 0, ROPE(1, 5, 6, 2, 192, 96)},
    {"rope, odd", OP_ROPE_FORWARD, false, {F, F, F, F}, 0, SLOT(ROPE_QUERY) | SLOT(ROPE_KEY_VALUE), 0, ROPE(2, 7, 3, 1, 22, 10)},
    {"rope gradient", OP_ROPE_BACKWARD, false, {F, B, B, B}, 0, SLOT(ROPE_PACKED), 0, ROPE(2, 9, 8, 2, 128, 128)},
    {"rope gradient, odd", OP_ROPE_BACKWARD, false, {F, B, B, B}, 0, SLOT(ROPE_PACKED), 0, ROPE(1, 7, 4, 4, 24, 12)},
    {"rope gradient, none rotates", OP_ROPE_BACKWARD, false, {F, B, B, B}, 0, SLOT(ROPE_PACKED), 0, ROPE(1, 7, 2, 1, 40, 0)},
    {"attention merge", OP_ATTENTION_MERGE, false, {F, F, F, F}, 0, 0, SLOT(ATTENTION_MERGE_OUT) | SLOT(ATTENTION_MERGE_STATISTICS), ROPE(2, 9, 3, 1, 128, 0)},
    {"attention merge, odd", OP_ATTENTION_MERGE, false, {F, F, F, F}, 0, 0, SLOT(ATTENTION_MERGE_OUT) | SLOT(ATTENTION_MERGE_STATISTICS), ROPE(1, 5, 3, 1, 21, 0)},
    {"swiglu", OP_ACTIVATION_FORWARD, false, {B, B}, 0, SLOT(ACTIVATION_OUT), 0, NORM(20, 2304, ACTIVATION_SWIGLU)},
    {"geglu, odd", OP_ACTIVATION_FORWARD, false, {F, F}, 0, SLOT(ACTIVATION_OUT), 0, NORM(7, 51, ACTIVATION_GEGLU)},
    {"gelu", OP_ACTIVATION_FORWARD, false, {F, F}, 0, SLOT(ACTIVATION_OUT), 0, NORM(7, 56, ACTIVATION_GELU)},
    {"squared relu, odd", OP_ACTIVATION_FORWARD, false, {B, B}, 0, SLOT(ACTIVATION_OUT), 0, NORM(9, 29, ACTIVATION_RELU2)},
    {"swiglu gradient", OP_ACTIVATION_BACKWARD, false, {B, B, B}, 0, SLOT(ACTIVATION_GRADIENT_IN), 0, NORM(20, 2304, ACTIVATION_SWIGLU)},
    {"geglu gradient", OP_ACTIVATION_BACKWARD, false, {F, F, F}, 0, SLOT(ACTIVATION_GRADIENT_IN), 0, NORM(7, 48, ACTIVATION_GEGLU)},
    {"gelu gradient, odd", OP_ACTIVATION_BACKWARD, false, {B, B, B}, 0, SLOT(ACTIVATION_GRADIENT_IN), 0, NORM(7, 51, ACTIVATION_GELU)},
    {"squared relu gradient", OP_ACTIVATION_BACKWARD, false, {F, F, F}, 0, SLOT(ACTIVATION_GRADIENT_IN), 0, NORM(7, 40, ACTIVATION_RELU2)},
    {"route", OP_ROUTE_FORWARD, false, {F, I, I, F, I, F, F}, 0, ROUTE_OUTPUTS | SLOT(ROUTE_STATISTICS), 0, ROUTE(64, 0, 0, 64, 1, 64, 8, 2, 1, 20, 20)},
    {"route, a part of two sequences", OP_ROUTE_FORWARD, true, {F, I, I, F, I, F, F}, 0, ROUTE_OUTPUTS, SLOT(ROUTE_STATISTICS), ROUTE(60, 0, 60, 120, 2, 15, 6, 2, 3, 40, 9)},
    {"route, many experts", OP_ROUTE_FORWARD, false, {F, I, I, F, I, F, F}, SLOT(ROUTE_STATISTICS), ROUTE_OUTPUTS, 0, ROUTE(300, 0, 0, 300, 1, 300, 36, 6, 4, 45, 45)},
    {"route, many tokens", OP_ROUTE_FORWARD, false, {F, I, I, F, I, F, F}, SLOT(ROUTE_STATISTICS), ROUTE_OUTPUTS, 0, ROUTE(1200, 0, 0, 1200, 1, 1200, 2, 1, 1, 520, 520)},
    {"route gradient", OP_ROUTE_BACKWARD, false, {F, I, F, F, F, B}, 0, SLOT(ROUTE_GRADIENT_LOGITS), 0, ROUTE(60, 0, 60, 120, 2, 15, 6, 2, 3, 40, 9)},
    {"route gradient, many experts", OP_ROUTE_BACKWARD, false, {F, I, F, F, F, F}, 0, SLOT(ROUTE_GRADIENT_LOGITS), 0, ROUTE(20, 0, 0, 20, 1, 20, 72, 6, 8, 110, 110)},
    {"dispatch", OP_DISPATCH, false, {B, I, B}, 0, SLOT(DISPATCH_OUT), 0, ROUTE(30, 64, 0, 30, 1, 30, 8, 2, 1, 9, 9)},
    {"dispatch, odd", OP_DISPATCH, false, {F, I, F}, 0, SLOT(DISPATCH_OUT), 0, ROUTE(30, 21, 0, 30, 1, 30, 8, 2, 1, 9, 9)},
    {"combine", OP_COMBINE, false, {B, I, F, B}, 0, SLOT(COMBINE_OUT), 0, ROUTE(30, 64, 0, 30, 1, 30, 8, 2, 1, 9, 9)},
    {"combine without gates, odd", OP_COMBINE, true, {B, I, F, B}, SLOT(COMBINE_GATES), 0, SLOT(COMBINE_OUT), ROUTE(30, 21, 0, 30, 1, 30, 8, 6, 1, 20, 20)},
    {"combine gradient", OP_COMBINE_BACKWARD, false, {B, B, I, I, F, B, F}, 0, SLOT(COMBINE_GRADIENT_IN) | SLOT(COMBINE_GRADIENT_GATES), 0, ROUTE(30, 2112, 0, 30, 1, 30, 8, 2, 1, 9, 9)},
    {"combine gradient, odd", OP_COMBINE_BACKWARD, false, {F, F, I, I, F, F, F}, 0, SLOT(COMBINE_GRADIENT_IN) | SLOT(COMBINE_GRADIENT_GATES), 0, ROUTE(30, 21, 0, 30, 1, 30, 8, 2, 1, 9, 9)},
    {"logit statistics", OP_LOGIT_STATISTICS, false, {B, I, F}, 0, SLOT(LOGIT_STATISTICS_OUT), 0, LOSS(6, 1024, 1003, 500, 4000, 2)},
    {"logit statistics of padding", OP_LOGIT_STATISTICS, false, {B, I, F}, 0, SLOT(LOGIT_STATISTICS_OUT), 0, LOSS(3, 64, 0, 500, 500, 2)},
    {"cross entropy", OP_CROSS_ENTROPY, false, {B, I, F, F}, SLOT(CROSS_ENTROPY_STATISTICS), SLOT(CROSS_ENTROPY_LOSS), SLOT(CROSS_ENTROPY_LOGITS), LOSS(2, 128256, 128256, 0, 128256, 1)},
    {"cross entropy, odd", OP_CROSS_ENTROPY, false, {F, I, F, F}, SLOT(CROSS_ENTROPY_STATISTICS), SLOT(CROSS_ENTROPY_LOSS), SLOT(CROSS_ENTROPY_LOGITS), LOSS(5, 517, 501, 0, 501, 1)},
    {"cross entropy, a part", OP_CROSS_ENTROPY, false, {B, I, F, F}, 0, SLOT(CROSS_ENTROPY_LOSS), SLOT(CROSS_ENTROPY_LOGITS), LOSS(9, 504, 501, 250, 1000, 3)},
    {"loss sum", OP_LOSS_SUM, false, {F, F}, 0, SLOT(LOSS_SUM_OUT), 0, LOSS(1000, 1, 1, 0, 1, 1)},
    {"loss sum, added", OP_LOSS_SUM, true, {F, F}, 0, 0, SLOT(LOSS_SUM_OUT), LOSS(3, 1, 1, 0, 1, 1)},
    {"cast", OP_CAST, false, {F, B}, 0, SLOT(CAST_OUT), 0, ELEMENTS(70003)},
    {"cast, added", OP_CAST, true, {B, F}, 0, 0, SLOT(CAST_OUT), ELEMENTS(1001)},
    {"cast, added and rounded", OP_CAST, true, {F, B}, 0, 0, SLOT(CAST_OUT), ELEMENTS(5)},
    {"copy", OP_CAST, false, {B, B}, 0, SLOT(CAST_OUT), 0, ELEMENTS(1000)},
    {"clear", OP_CLEAR, false, {B}, 0, SLOT(CLEAR_OUT), 0, ELEMENTS(1001)},
    {"square sum", OP_SQUARE_SUM, false, {F, F}, 0, SLOT(SQUARE_SUM_OUT), 0, ELEMENTS(100007)},
    {"square sum of few", OP_SQUARE_SUM, false, {B, F}, 0, SLOT(SQUARE_SUM_OUT), 0, ELEMENTS(3)},
    {"clip", OP_CLIP, false, {F, F, F}, 0, SLOT(CLIP_NORM) | SLOT(CLIP_SCALE), 0, ELEMENTS(83)},
    {"adamw", OP_ADAMW, false, {F, F, F, F, F, F, B}, 0, SLOT(ADAMW_WEIGHT), ADAMW_STATE, ELEMENTS(50001)},
    {"adamw in bf16", OP_ADAMW, false, {F, F, B, F, B, B, B}, SLOT(ADAMW_MASTER), 0, SLOT(ADAMW_FIRST) | SLOT(ADAMW_SECOND) | SLOT(ADAMW_WEIGHT), ELEMENTS(1003)},
    {"adamw in fp32", OP_ADAMW, false, {F, F, F, F, F, F, F}, SLOT(ADAMW_MASTER), 0, SLOT(ADAMW_FIRST) | SLOT(ADAMW_SECOND) | SLOT(ADAMW_WEIGHT), ELEMENTS(77)},
};
// clang-format on
enum { OP_CASES = sizeof(op_cases) / sizeof(*op_cases) };

static inline struct op op_case_op(const struct op_case *one)
{
    struct op op = {.kind = one->kind, .lane = LANE_COMPUTE, .accumulates = one->accumulates};
    memcpy(&op.shape, &one->shape, sizeof(one->shape));
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        op.operand[slot] = one->absent & SLOT(slot) ? -1 : slot;
    }
    return op;
}

// Numbers from 0 up to bound; of a router's choices, none twice in a row of top_k.
static inline void fill_indices(const struct op_case *one, int slot, const struct buffer *buffer)
{
    const struct routing_shape *shape   = &one->shape.routing;
    int64_t                     choices = shape->rows * shape->top_k;
    for (int64_t i = 0; i < buffer->elements; i++) {
        uint32_t draw = random_below(random_key(7, (uint64_t)slot), one->kind, (uint64_t)i, 1u << 30);
        int64_t  value;
        if (one->kind == OP_ROUTE_BACKWARD) {
            value = (i / shape->top_k * 5 + i % shape->top_k) % shape->experts;
        } else if (one->kind == OP_DISPATCH || (one->kind == OP_COMBINE_BACKWARD && slot == COMBINE_GRADIENT_SOURCES)) {
            value = i % 7 == 3 || i / 7 * 6 + i % 7 >= choices
                        ? -1
                        : i / 7 * 6 + i % 7 - (i % 7 > 3);    // every choice once
        } else if (one->kind == OP_COMBINE) {
            value = i % 5 == 1 ? -1 : draw % (shape->experts * shape->capacity);
        } else {
            value = draw % one->shape.rows.total;
        }
        set(buffer, i, (double)value);
    }
}

// Whether the operand has to be positive: variances, sums of exponentials, squares, gates, probabilities.
static inline bool is_positive(const struct op_case *one, int slot)
{
    return (one->kind == OP_ADAMW && slot == ADAMW_SECOND) || one->kind == OP_CLIP ||
           (one->kind == OP_CROSS_ENTROPY && slot == CROSS_ENTROPY_STATISTICS) ||
           (one->kind == OP_ROUTE_BACKWARD && slot == ROUTE_GRADIENT_COUNTS);
}

static inline int slots_of(uint8_t kind)
{
    static const uint8_t slots[OP_COUNT] = {[OP_EMBEDDING_FORWARD]   = 3,
                                            [OP_EMBEDDING_BACKWARD]  = 3,
                                            [OP_NORM_FORWARD]        = 7,
                                            [OP_NORM_BACKWARD]       = 8,
                                            [OP_ROPE_FORWARD]        = 4,
                                            [OP_ROPE_BACKWARD]       = 4,
                                            [OP_ATTENTION_MERGE]     = 4,
                                            [OP_ROUTE_FORWARD]       = 7,
                                            [OP_ACTIVATION_FORWARD]  = 2,
                                            [OP_ACTIVATION_BACKWARD] = 3,
                                            [OP_ROUTE_BACKWARD]      = 6,
                                            [OP_DISPATCH]            = 3,
                                            [OP_COMBINE]             = 4,
                                            [OP_COMBINE_BACKWARD]    = 7,
                                            [OP_LOGIT_STATISTICS]    = 3,
                                            [OP_CROSS_ENTROPY]       = 4,
                                            [OP_LOSS_SUM]            = 2,
                                            [OP_CAST]                = 2,
                                            [OP_CLEAR]               = 1,
                                            [OP_SQUARE_SUM]          = 2,
                                            [OP_CLIP]                = 3,
                                            [OP_ADAMW]               = 7};
    return slots[kind];
}

// Which number the element is. A router meets equal rows, and equal logits in a row.
static inline uint64_t draw_of(const struct op_case *one, int slot, int64_t i)
{
    if (one->kind != OP_ROUTE_FORWARD || slot != ROUTE_LOGITS) {
        return (uint64_t)i;
    }
    int64_t experts = one->shape.routing.experts, expert = i % experts;
    return (uint64_t)(i / experts % 7 * experts + (expert == 3 ? 1 : expert));
}

// Random operands; NaN, and behind the last element always, where the op only writes; nothing where it has none.
static inline void op_case_fill(const struct op_case *one, struct buffer buffers[OP_OPERANDS])
{
    static const double hyper[HYPER_COUNT] = {1e-2, 0.9, 0.95, 1e-8, 0.1, 0.271, 0.1426};
    struct op           op                 = op_case_op(one);
    memset(buffers, 0, sizeof(*buffers) * OP_OPERANDS);
    for (int slot = 0; slot < slots_of(one->kind); slot++) {
        if (one->absent & SLOT(slot)) {
            continue;
        }
        struct buffer *buffer = &buffers[slot];
        *buffer               = make_output(one->dtype[slot], op_operand_elements(&op, slot));
        if (buffer->dtype == DTYPE_I32) {
            fill_indices(one, slot, buffer);
        }
        for (int64_t i = 0; i < buffer->elements && buffer->dtype != DTYPE_I32 && !(one->written & SLOT(slot)); i++) {
            double value = (double)random_normal(random_key(one->kind, (uint64_t)slot), draw_of(one, slot, i));
            set(buffer, i, is_positive(one, slot) ? fabs(value) + 0.1 : value);
        }
    }
    for (int64_t i = 0; i < HYPER_COUNT && one->kind == OP_ADAMW; i++) {
        set(&buffers[ADAMW_HYPER], i, hyper[i]);
    }
}

#endif

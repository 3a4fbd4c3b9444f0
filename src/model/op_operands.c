// SPDX-License-Identifier: MIT
// How large each operand of an op is by its shape, and how it is used: what op.h says slot by slot, as functions.
#include <ctype.h>
#include <string.h>

#include "gswbench/model.h"
#include "gswbench/op.h"

// A letter a slot: r reads, w writes, u updates; a, q: updates when the op accumulates or adds_query, else writes; m:
// writes what a master copy became, if at all, or updates where there is none; f: writes, unless the scale is given or
// there is one for each part; o: writes, unless what is fused to it does. -: always empty; a capital: may be.
static const char *const accesses[OP_COUNT] = {
    [OP_EMBEDDING_FORWARD]   = "rrw",
    [OP_EMBEDDING_BACKWARD]  = "rra",
    [OP_NORM_FORWARD]        = "rRrRWow",
    [OP_NORM_BACKWARD]       = "rrrrRwaA",
    [OP_GEMM]                = "rraRR",
    [OP_ROPE_FORWARD]        = "rrww",
    [OP_ROPE_BACKWARD]       = "rwrr",
    [OP_ATTENTION_FORWARD]   = "rrww",
    [OP_ATTENTION_BACKWARD]  = "rrrrrqa",
    [OP_ATTENTION_MERGE]     = "uurr",
    [OP_ACTIVATION_FORWARD]  = "ro",
    [OP_ACTIVATION_BACKWARD] = "rro",
    [OP_ROUTE_FORWARD]       = "rwwwwwA",
    [OP_ROUTE_BACKWARD]      = "rrrrrw",
    [OP_DISPATCH]            = "rrw",
    [OP_COMBINE]             = "rrRa",
    [OP_COMBINE_BACKWARD]    = "rrrrrww",
    [OP_LOGIT_STATISTICS]    = "rrw",
    [OP_CROSS_ENTROPY]       = "urwR",
    [OP_LOSS_SUM]            = "ra",
    [OP_CAST]                = "ra",
    [OP_QUANTIZE]            = "rWWfWRU",
    [OP_TRANSPOSE]           = "rw",
    [OP_MAGNITUDE]           = "ru",
    [OP_RESCALE]             = "uUuw",
    [OP_CLEAR]               = "w",
    [OP_SQUARE_SUM]          = "rw",
    [OP_CLIP]                = "rww",
    [OP_ADAMW]               = "rrrUuum",
    [OP_ALL_REDUCE]          = "-u",
    [OP_ALL_REDUCE_MAXIMUM]  = "-u",
    [OP_ALL_GATHER]          = "rw",
    [OP_REDUCE_SCATTER]      = "rw",
    [OP_ALL_TO_ALL]          = "rw",
    [OP_ROTATE]              = "rw",
    [OP_SEND]                = "r",
    [OP_RECEIVE]             = "-w",
    [OP_BROADCAST]           = "-u",
};

static char access_letter(const struct op *op, int slot)
{
    const char *letters = accesses[op->kind];
    return (size_t)slot < strlen(letters) ? letters[slot] : '-';
}

int op_fused_output(enum op_kind kind)
{
    const char *letters = accesses[kind], *output = strchr(letters, 'o');
    return output == NULL ? -1 : (int)(output - letters);
}

bool op_is_fused(const struct op *op)
{
    return op->operand_count > OP_FUSED + QUANTIZE_OUT && op_fused_output((enum op_kind)op->kind) >= 0;
}

struct op op_quantize_of(const struct op *op)
{
    struct op quantize = *op;
    if (op->kind == OP_QUANTIZE) {
        return quantize;
    }
    int     output          = op_fused_output((enum op_kind)op->kind);
    int64_t rows            = op->shape.rows.rows;
    int64_t columns         = rows > 0 ? op_operand_elements(op, output) / rows : 0;
    quantize.kind           = OP_QUANTIZE;
    quantize.operand_count  = (uint8_t)(op->operand_count - OP_FUSED);
    quantize.shape.quantize = (struct quantize_shape){rows, columns, (int32_t)op->fused_scaling};
    for (int slot = QUANTIZE_IN; slot <= QUANTIZE_AMAX; slot++) {
        quantize.operand[slot] = op->operand[slot == QUANTIZE_IN ? output : OP_FUSED + slot];
        quantize.access[slot]  = slot == QUANTIZE_IN ? ACCESS_READ : op->access[OP_FUSED + slot];
    }
    return quantize;
}

// Whether the slot is one of a fused OP_QUANTIZE.
static bool is_behind(const struct op *op, int slot)
{
    return slot > OP_FUSED && op_fused_output((enum op_kind)op->kind) >= 0;
}

enum access op_operand_access(const struct op *op, int slot)
{
    if (is_behind(op, slot)) {
        struct op quantize = op_quantize_of(op);
        return op_operand_access(&quantize, slot - OP_FUSED);
    }
    switch (tolower(access_letter(op, slot))) {
    case 'r':
        return ACCESS_READ;
    case 'w':
    case 'f':
    case 'o':
        return ACCESS_WRITE;
    case 'u':
        return ACCESS_UPDATE;
    case 'a':
        return op->accumulates ? ACCESS_UPDATE : ACCESS_WRITE;
    case 'q':
        return op->shape.attention.adds_query ? ACCESS_UPDATE : ACCESS_WRITE;
    case 'm':
        return op->operand[ADAMW_MASTER] < 0 ? ACCESS_UPDATE : ACCESS_WRITE;
    default:
        return 0;
    }
}

bool op_operand_is_optional(const struct op *op, int slot)
{
    if (is_behind(op, slot) && op_is_fused(op)) {
        struct op quantize = op_quantize_of(op);
        return op_operand_is_optional(&quantize, slot - OP_FUSED);
    }
    char letter = access_letter(op, slot);
    switch (letter) {
    case '-':
        return true;
    case 'o':
        return op_is_fused(op);
    case 'f':
        return op->operand[QUANTIZE_SCALE] >= 0 || op->shape.quantize.scaling != FP8_SCALING_WHOLE;
    case 'm':
        return op->operand[ADAMW_MASTER] >= 0;
    default:
        return isupper(letter);
    }
}

static int64_t gemm_elements(const struct gemm_shape *shape, int slot)
{
    int64_t       m = shape->m, n = shape->n, k = shape->k;
    const int64_t elements[] = {[GEMM_A]        = m * k,
                                [GEMM_B]        = k * n,
                                [GEMM_C]        = m * n,
                                [GEMM_FACTOR_A] = fp8_factors((enum fp8_scaling)shape->scaling_a, m, k),
                                [GEMM_FACTOR_B] = fp8_factors((enum fp8_scaling)shape->scaling_b, n, k)};
    return elements[slot];
}

static int64_t norm_elements(const struct op *op, int slot)
{
    const struct rows_shape *shape      = &op->shape.rows;
    bool                     is_forward = op->kind == OP_NORM_FORWARD;
    if (slot == (is_forward ? (int)NORM_STATISTICS : (int)NORM_GRADIENT_STATISTICS)) {
        return shape->rows * 2;
    }
    bool is_weight =
        is_forward ? slot == NORM_WEIGHT || slot == NORM_BIAS
                   : slot == NORM_GRADIENT_WEIGHT_IN || slot == NORM_GRADIENT_WEIGHT || slot == NORM_GRADIENT_BIAS;
    return is_weight ? shape->columns : shape->rows * shape->columns;
}

static int64_t embedding_elements(const struct op *op, int slot)
{
    const struct rows_shape *shape = &op->shape.rows;
    if (slot == (int)EMBEDDING_TOKENS) {    // the first slot of both directions
        return shape->rows;
    }
    int table = op->kind == OP_EMBEDDING_FORWARD ? (int)EMBEDDING_TABLE : (int)EMBEDDING_GRADIENT_TABLE;
    return (slot == table ? shape->valid_columns : shape->rows) * shape->columns;
}

static int64_t rope_elements(const struct attention_shape *shape, int slot)
{
    int64_t head    = shape->batch * shape->sequence * shape->head_dim;
    int64_t pairs   = shape->rotary > 1 ? shape->rotary / 2 : 1;
    int64_t keys    = 2 * shape->kv_heads * head;
    int64_t sizes[] = {[ROPE_TABLE]     = shape->sequence * pairs * 2,
                       [ROPE_PACKED]    = shape->heads * head + keys,
                       [ROPE_QUERY]     = shape->heads * head,
                       [ROPE_KEY_VALUE] = keys};
    return sizes[slot];
}

static int64_t attention_elements(const struct op *op, int slot)
{
    const struct attention_shape *shape = &op->shape.attention;
    bool    is_forward = op->kind == OP_ATTENTION_FORWARD, is_merge = op->kind == OP_ATTENTION_MERGE;
    int64_t statistics = shape->batch * shape->heads * shape->sequence;
    int64_t keys       = shape->batch * (shape->earlier + shape->sequence) * 2 * shape->kv_heads * shape->head_dim;
    if (is_merge) {
        bool is_part = slot == ATTENTION_MERGE_OUT || slot == ATTENTION_MERGE_PART;
        return is_part ? statistics * shape->head_dim : statistics;
    }
    if (slot == (is_forward ? (int)ATTENTION_STATISTICS : (int)ATTENTION_GRADIENT_STATISTICS)) {
        return statistics;
    }
    bool is_keys = is_forward ? slot == ATTENTION_KEY_VALUE
                              : slot == ATTENTION_GRADIENT_KEY_VALUE_IN || slot == ATTENTION_GRADIENT_KEY_VALUE;
    return is_keys ? keys : statistics * shape->head_dim;
}

static int64_t activation_elements(const struct op *op, int slot)
{
    const struct rows_shape *shape    = &op->shape.rows;
    bool                     is_gated = shape->variant == ACTIVATION_SWIGLU || shape->variant == ACTIVATION_GEGLU;
    bool is_out = slot == (op->kind == OP_ACTIVATION_FORWARD ? (int)ACTIVATION_OUT : (int)ACTIVATION_GRADIENT_OUT);
    return shape->rows * shape->columns * (is_gated && !is_out ? 2 : 1);
}

static int64_t loss_elements(const struct op *op, int slot)
{
    const struct rows_shape *shape = &op->shape.rows;
    if (op->kind == OP_LOSS_SUM) {
        return slot == LOSS_SUM_IN ? shape->rows : 1;
    }
    if (slot == (int)CROSS_ENTROPY_LOGITS) {    // the first slot of the statistics too
        return shape->rows * shape->columns;
    }
    if (op->kind == OP_LOGIT_STATISTICS) {
        return slot == LOGIT_STATISTICS_TARGETS ? shape->rows : shape->rows * 3;
    }
    return slot == CROSS_ENTROPY_STATISTICS ? shape->parts * shape->rows * 3 : shape->rows;
}

static int64_t routing_elements(const struct op *op, int slot)
{
    const struct routing_shape *shape   = &op->shape.routing;
    int64_t                     choices = shape->rows * shape->top_k, stream = shape->rows * shape->columns;
    int64_t                     slots = shape->experts * shape->capacity, buffer = slots * shape->columns;
    int64_t                     logits = shape->total * shape->experts, counts = shape->sequences * shape->experts;
    int64_t                     sizes[][OP_OPERANDS] = {
                            [OP_ROUTE_FORWARD - OP_ROUTE_FORWARD] = {logits, choices, choices, choices, slots, counts, shape->experts + 2},
                            [OP_ROUTE_BACKWARD -
            OP_ROUTE_FORWARD] = {logits, choices, choices, counts, choices, shape->rows * shape->experts},
                            [OP_DISPATCH - OP_ROUTE_FORWARD] = {stream, slots, buffer},
                            [OP_COMBINE - OP_ROUTE_FORWARD]  = {buffer, choices, choices, stream},
                            [OP_COMBINE_BACKWARD - OP_ROUTE_FORWARD] = {stream, buffer, choices, slots, choices, buffer, choices},
    };
    return sizes[op->kind - OP_ROUTE_FORWARD][slot];
}

static int64_t quantize_elements(const struct quantize_shape *shape, int slot)
{
    enum fp8_scaling scaling = (enum fp8_scaling)shape->scaling;
    switch (slot) {
    case QUANTIZE_FACTOR:
        return fp8_factors(scaling, shape->rows, shape->columns);
    case QUANTIZE_TRANSPOSED_FACTOR:
        return fp8_factors(scaling, shape->columns, shape->rows);
    default:
        return slot <= QUANTIZE_TRANSPOSED ? shape->rows * shape->columns : 1;
    }
}

static int64_t rescale_elements(const struct rescale_shape *shape, int slot)
{
    return shape->slots * (slot == RESCALE_HISTORY ? shape->history : 1);
}

static int64_t array_elements(const struct op *op, int slot)
{
    int64_t elements = op->shape.elements.elements;
    switch (op->kind) {
    case OP_MAGNITUDE:
        return slot == MAGNITUDE_IN ? elements : 1;
    case OP_SQUARE_SUM:
        return slot == SQUARE_SUM_IN ? elements : 1;
    case OP_CLIP:
        return slot == CLIP_PARTIALS ? elements : 1;
    case OP_ADAMW:
        return slot == ADAMW_HYPER ? HYPER_COUNT : slot == ADAMW_SCALE ? 1 : elements;
    default:
        return elements;
    }
}

int64_t op_operand_elements(const struct op *op, int slot)
{
    if (is_behind(op, slot)) {
        struct op quantize = op_quantize_of(op);
        return quantize_elements(&quantize.shape.quantize, slot - OP_FUSED);
    }
    switch ((enum op_kind)op->kind) {
    case OP_GEMM:
        return gemm_elements(&op->shape.gemm, slot);
    case OP_NORM_FORWARD:
    case OP_NORM_BACKWARD:
        return norm_elements(op, slot);
    case OP_EMBEDDING_FORWARD:
    case OP_EMBEDDING_BACKWARD:
        return embedding_elements(op, slot);
    case OP_ROPE_FORWARD:
    case OP_ROPE_BACKWARD:
        return rope_elements(&op->shape.attention, slot);
    case OP_ATTENTION_FORWARD:
    case OP_ATTENTION_BACKWARD:
    case OP_ATTENTION_MERGE:
        return attention_elements(op, slot);
    case OP_ACTIVATION_FORWARD:
    case OP_ACTIVATION_BACKWARD:
        return activation_elements(op, slot);
    case OP_ROUTE_FORWARD:
    case OP_ROUTE_BACKWARD:
    case OP_DISPATCH:
    case OP_COMBINE:
    case OP_COMBINE_BACKWARD:
        return routing_elements(op, slot);
    case OP_LOGIT_STATISTICS:
    case OP_CROSS_ENTROPY:
    case OP_LOSS_SUM:
        return loss_elements(op, slot);
    case OP_QUANTIZE:
        return quantize_elements(&op->shape.quantize, slot);
    case OP_TRANSPOSE:
        return op->shape.rows.rows * op->shape.rows.columns;
    case OP_RESCALE:
        return rescale_elements(&op->shape.rescale, slot);
    case OP_CAST:
    case OP_MAGNITUDE:
    case OP_CLEAR:
    case OP_SQUARE_SUM:
    case OP_CLIP:
    case OP_ADAMW:
        return array_elements(op, slot);
    default:
        return -1;
    }
}

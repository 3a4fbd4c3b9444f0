// SPDX-License-Identifier: MIT
// Fills each operand of an op with floats, valid indices or positive values, and guards after them.
#include "op_operands.h"

#include <math.h>
#include <string.h>

#include "buffers.h"
#include "gswbench/arena.h"
#include "gswbench/random.h"

struct op complete_op(const struct op_case *test)
{
    struct op op     = test->op;
    op.tag.role      = test->name;
    op.operand_count = (uint8_t)strlen(test->operands);
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        op.operand[slot] = slot < op.operand_count && test->operands[slot] != '-' ? slot : -1;
    }
    for (int slot = 0; slot < op.operand_count; slot++) {
        op.access[slot] = (uint8_t)(op.operand[slot] < 0 ? 0 : op_operand_access(&op, slot));
    }
    return op;
}

enum format format_of(char letter)
{
    return strchr("fFzNM", letter) != NULL  ? FORMAT_F32
           : strchr("bBZm", letter) != NULL ? FORMAT_BF16
           : letter == '4'                  ? FORMAT_E4M3
           : letter == '5'                  ? FORMAT_E5M2
           : letter == '8'                  ? FORMAT_E8M0
           : letter == '2'                  ? FORMAT_E2M1
                                            : FORMAT_I32;
}

// Normal values are multiplied by two to this power.
static int exponent_of(char letter)
{
    return strchr("FB", letter) != NULL ? 127 : strchr("zZ", letter) != NULL ? -149 : 0;
}

// Returns the mean of the values.
static double mean_of(char letter)
{
    return letter == 'm' ? 6 : letter == 'M' ? 3e4 : 0;
}

void poison(const struct buffer *buffer, int64_t first, int64_t count)
{
    // All bits set are NaN in each float format. As an integer they would be -1, which means no slot, so integers get
    // 0x7f bytes.
    memset((char *)buffer->data + format_offset(buffer->format, first), buffer->format == FORMAT_I32 ? 0x7f : 0xff,
           (size_t)format_bytes(buffer->format, count));
}

// Identifies an operand of a kind of op.
#define AT(kind, slot) ((int)(kind)*OP_OPERANDS + (int)(slot))

// Returns a valid index for the operand: a token, an expert, a slot of an expert, or the source of a slot.
static int64_t draw_index(const struct op *op, int slot, int64_t i, uint64_t key)
{
    const struct routing_shape *routing = &op->shape.routing;
    uint32_t                    slots   = (uint32_t)routing_slots(routing);
    int64_t                     source  = i / 7 * 6 + i % 7 - (i % 7 > 3);
    switch (AT(op->kind, slot)) {
    case AT(OP_ROUTE_BACKWARD, ROUTE_GRADIENT_CHOICES):    // a token chooses no expert twice
        return (i / routing->top_k * 5 + i % routing->top_k) % routing->experts;
    case AT(OP_DISPATCH, DISPATCH_SOURCES):    // each choice occurs once
    case AT(OP_COMBINE_BACKWARD, COMBINE_GRADIENT_SOURCES):
        return i % 7 == 3 || source >= routing->rows * routing->top_k ? -1 : source;
    case AT(OP_COMBINE, COMBINE_SLOTS):
    case AT(OP_COMBINE_BACKWARD, COMBINE_GRADIENT_SLOTS):
        return i % 5 == 1 ? -1 : (int64_t)random_below(key, 0, (uint64_t)i, slots);
    default:
        return random_below(key, 0, (uint64_t)i, (uint32_t)op->shape.rows.total);
    }
}

// Returns whether the operand is a second moment, probability, sum of exponentials, loss or scale, which must be
// positive.
static bool is_positive(const struct op *op, int slot)
{
    if (op_is_fused(op) && slot > OP_FUSED) {
        return true;
    }
    bool is_scale = slot == GEMM_INVERSE_SCALE_A || slot == GEMM_INVERSE_SCALE_B;
    if (op->kind == OP_GEMM && is_scale && scaling_is_nv((enum scaling)op->shape.gemm.scaling_a)) {
        return true;    // these block scales are unsigned (UE4M3)
    }
    switch (AT(op->kind, slot)) {
    case AT(OP_ROUTE_BACKWARD, ROUTE_GRADIENT_COUNTS):
    case AT(OP_CROSS_ENTROPY, CROSS_ENTROPY_STATISTICS):
    case AT(OP_LOSS_SUM, LOSS_SUM_IN):
    case AT(OP_LOSS_SUM, LOSS_SUM_OUT):
    case AT(OP_CLIP, CLIP_PARTIALS):
    case AT(OP_ADAMW, ADAMW_SECOND):
    case AT(OP_ADAMW, ADAMW_AMAX):
    case AT(OP_NORMALIZE, NORMALIZE_SUM):
    case AT(OP_QUANTIZE, QUANTIZE_SCALE):
    case AT(OP_QUANTIZE, QUANTIZE_AMAX):
    case AT(OP_MAGNITUDE, MAGNITUDE_AMAX):
    case AT(OP_RESCALE, RESCALE_AMAX):
    case AT(OP_RESCALE, RESCALE_HISTORY):
    case AT(OP_RESCALE, RESCALE_SCALE):
        return true;
    default:
        return false;
    }
}

// Maps an element to the number that is drawn for it. Router logits repeat numbers, so that some rows are equal and
// some logits of a row are equal.
static uint64_t draw_of(const struct op *op, int slot, int64_t i)
{
    if (op->kind != OP_ROUTE_FORWARD || slot != ROUTE_LOGITS) {
        return (uint64_t)i;
    }
    int64_t experts = op->shape.routing.experts, expert = i % experts;
    return (uint64_t)(i / experts % 7 * experts + (expert == 3 ? 1 : expert));
}

static void fill_operand(const struct op_case *test, const struct op *op, int slot, const struct buffer *buffer,
                         uint64_t key)
{
    static const double hyper[HYPER_COUNT] = {1e-2, 0.9, 0.95, 1e-8, 0.1, 0.271, 0.1426};
    int                 exponent           = exponent_of(test->operands[slot]);
    for (int64_t i = 0; i < buffer->elements; i++) {
        double normal = (double)random_normal(key, draw_of(op, slot, i));
        set(buffer, i,
            buffer->format == FORMAT_I32                        ? (double)draw_index(op, slot, i, key)
            : test->operands[slot] == 'N'                       ? (double)NAN
            : op->kind == OP_ADAMW && slot == ADAMW_HYPER       ? hyper[i]
            : op->kind == OP_MUON && slot == MUON_HYPER         ? hyper[i]
            : op->kind == OP_QUANTIZE && slot == QUANTIZE_HYPER ? (double)(0x3579bd + i)
            : is_positive(op, slot)                             ? ldexp(fabs(normal) + 0.1, exponent)
                                    : ldexp(normal, exponent) + mean_of(test->operands[slot]));
    }
}

void run_on_host(struct backend *host, const struct op *op, const struct buffer operands[OP_OPERANDS])
{
    backend_reserve_scratch(host, host->ops->scratch_bytes(host, op));
    host->ops->run[op->kind](host, op, operands);
}

// The attention gradient needs an output that belongs to its queries and keys, so this computes the output from them.
static void fill_attention_result(struct backend *host, const struct op *op, const struct buffer *buffers)
{
    struct op forward                   = *op;
    forward.kind                        = OP_ATTENTION_FORWARD;
    struct buffer operands[OP_OPERANDS] = {[ATTENTION_QUERY]      = buffers[ATTENTION_GRADIENT_QUERY_IN],
                                           [ATTENTION_KEY_VALUE]  = buffers[ATTENTION_GRADIENT_KEY_VALUE_IN],
                                           [ATTENTION_OUT]        = buffers[ATTENTION_GRADIENT_OUT_IN],
                                           [ATTENTION_STATISTICS] = buffers[ATTENTION_GRADIENT_STATISTICS]};
    run_on_host(host, &forward, operands);
}

int64_t guarded_bytes(const struct buffer *buffer)
{
    return format_bytes(buffer->format, buffer->elements + GUARDS);
}

void make_operands(struct backend *host, const struct op_case *test, const struct op *op, uint64_t seed,
                   struct buffer buffers[OP_OPERANDS])
{
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        struct buffer *buffer = &buffers[slot];
        *buffer               = (struct buffer){.data = NULL};
        if (op->operand[slot] >= 0) {
            buffer->format   = format_of(test->operands[slot]);
            buffer->elements = op_operand_elements(op, slot);
            buffer->data     = memory_allocate((size_t)guarded_bytes(buffer));
            poison(buffer, 0, buffer->elements + GUARDS);
            if (op->access[slot] & ACCESS_READ) {
                fill_operand(test, op, slot, buffer, random_key(seed, (uint64_t)slot));
            }
        }
    }
    if (op->kind == OP_ATTENTION_BACKWARD) {
        fill_attention_result(host, op, buffers);
    }
}

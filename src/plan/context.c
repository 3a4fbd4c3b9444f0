// SPDX-License-Identifier: MIT
// Context parallelism with gathered keys and values. Of 2 cp chunks of a sequence, rank r holds the queries of chunks r
// and 2 cp - 1 - r, which balances the causal work. Gathered keys and values come in the order of ranks and are brought
// into the order of the sequence: each run of queries then sees the leading part of them.
#include "internal.h"

static int64_t ranks_of(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_CP];
}

// The chunk of the sequence that is the given half of a rank's queries.
static int64_t chunk_of(const struct builder *builder, int64_t rank, int half)
{
    return half == 0 ? rank : 2 * ranks_of(builder) - 1 - rank;
}

static int64_t own_chunk(const struct builder *builder, int half)
{
    return chunk_of(builder, mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_CP), half);
}

int32_t context_rows(struct builder *builder, const char *name, int32_t whole, int64_t first, int64_t rows)
{
    const struct tensor *tensor = &builder->plan->tensors[whole];
    int64_t              width  = tensor->elements / tensor->dim[0];
    return builder_part(builder, name, whole, first * width, DIMS(rows, width));
}

// A tensor like the keys and values of one rank, but of all.
static int32_t new_whole(struct builder *builder, const char *name)
{
    return builder_activation(
        builder, name, DIMS(builder->tokens * ranks_of(builder), 2, builder->kv_heads, builder->plan->model.head_dim));
}

// Copies chunk by chunk between the order of the ranks and that of the sequence.
static void reorder(struct builder *builder, const char *role, int32_t by_rank, int32_t by_position, bool to_position)
{
    int64_t length = builder->tokens / HALVES;
    for (int64_t rank = 0; rank < ranks_of(builder); rank++) {
        for (int half = 0; half < HALVES; half++) {
            int32_t ranked = context_rows(builder, "chunk", by_rank, (HALVES * rank + half) * length, length);
            int32_t placed =
                context_rows(builder, "chunk", by_position, chunk_of(builder, rank, half) * length, length);
            builder_cast(builder, role, to_position ? ranked : placed, to_position ? placed : ranked, false);
        }
    }
}

static int32_t transfer(struct builder *builder, enum op_kind kind, const char *role, int32_t in, int32_t out)
{
    return builder_transfer(
        builder,
        &(struct transfer){
            .kind = kind, .role = role, .axes = 1u << AXIS_CP, .lane = LANE_CONTEXT, .in = in, .out = out, .hold = -1});
}

static int32_t gather_keys(struct block *block)
{
    struct builder *builder = block->builder;
    int32_t         by_rank = new_whole(builder, "gathered kv");
    int32_t         ordered = new_whole(builder, "ordered kv");
    transfer(builder, OP_ALL_GATHER, "kv gather", block->values->tensor[VALUE_KV], by_rank);
    reorder(builder, "kv order", by_rank, ordered, true);
    return ordered;
}

// An attention op on one half of the queries and the keys up to them.
static struct op half_op(const struct builder *builder, enum op_kind kind, const char *role, int half)
{
    struct op op                = attention_op(builder, kind, role);
    op.shape.attention.sequence = builder->tokens / HALVES;
    op.shape.attention.earlier  = own_chunk(builder, half) * op.shape.attention.sequence;
    return op;
}

int32_t context_half(struct builder *builder, int32_t whole, int half)
{
    int64_t length = builder->tokens / HALVES;
    return context_rows(builder, "half", whole, half * length, length);
}

static int32_t leading(struct builder *builder, int32_t whole, const struct op *op)
{
    return context_rows(builder, "leading kv", whole, 0, op->shape.attention.earlier + op->shape.attention.sequence);
}

void context_attention(struct block *block)
{
    struct builder *builder = block->builder;
    if (builder->is_ring) {
        ring_attention(block);
        return;
    }
    int32_t keys = gather_keys(block);
    int32_t out =
        builder_activation(builder, "attention", DIMS(builder->tokens, builder->heads, builder->plan->model.head_dim));
    for (int half = 0; half < HALVES; half++) {
        struct op op  = half_op(builder, OP_ATTENTION_FORWARD, "attention", half);
        int32_t   lse = builder_tensor(builder, "attention statistics", STORAGE_ACTIVATION, DTYPE_F32,
                                       DIMS(1, builder->heads, op.shape.attention.sequence));
        builder_operand(&op, ATTENTION_QUERY, ACCESS_READ, context_half(builder, block->values->tensor[VALUE_Q], half));
        builder_operand(&op, ATTENTION_KEY_VALUE, ACCESS_READ, leading(builder, keys, &op));
        builder_operand(&op, ATTENTION_OUT, ACCESS_WRITE, context_half(builder, out, half));
        builder_operand(&op, ATTENTION_STATISTICS, ACCESS_WRITE, lse);
        builder_append(builder, &op);
        block->values->tensor[half == 0 ? VALUE_LSE : VALUE_LSE2] = lse;
    }
    block->values->tensor[VALUE_O] = out;
}

// What no query of this rank sees of the gradient of keys and values.
static void clear_trailing(struct builder *builder, int32_t whole, int64_t first)
{
    int64_t rows = builder->plan->tensors[whole].dim[0] - first;
    if (rows == 0) {
        return;
    }
    int32_t   rest = context_rows(builder, "unseen kv", whole, first, rows);
    struct op op   = builder_op(builder, OP_CLEAR, "unseen kv gradient");
    builder_operand(&op, CLEAR_OUT, ACCESS_WRITE, rest);
    op.shape.elements.elements = builder->plan->tensors[rest].elements;
    builder_append(builder, &op);
}

void context_attention_backward(struct block *block, int32_t gradient, int32_t dq, int32_t dkv)
{
    struct builder      *builder = block->builder;
    const struct values *values  = block->values;
    if (builder->is_ring) {
        ring_attention_backward(block, gradient, dq, dkv);
        return;
    }
    int32_t keys    = gather_keys(block);
    int32_t ordered = new_whole(builder, "ordered kv gradient");
    int32_t by_rank = new_whole(builder, "kv gradient of all");
    // The second half sees more keys: it writes, the first adds.
    for (int half = HALVES - 1; half >= 0; half--) {
        struct op op   = half_op(builder, OP_ATTENTION_BACKWARD, "attention gradient", half);
        op.accumulates = half == 0;
        builder_operand(&op, ATTENTION_GRADIENT_OUT, ACCESS_READ, context_half(builder, gradient, half));
        builder_operand(&op, ATTENTION_GRADIENT_QUERY_IN, ACCESS_READ,
                        context_half(builder, values->tensor[VALUE_Q], half));
        builder_operand(&op, ATTENTION_GRADIENT_KEY_VALUE_IN, ACCESS_READ, leading(builder, keys, &op));
        builder_operand(&op, ATTENTION_GRADIENT_OUT_IN, ACCESS_READ,
                        context_half(builder, values->tensor[VALUE_O], half));
        builder_operand(&op, ATTENTION_GRADIENT_STATISTICS, ACCESS_READ,
                        values->tensor[half == 0 ? VALUE_LSE : VALUE_LSE2]);
        builder_operand(&op, ATTENTION_GRADIENT_QUERY, ACCESS_WRITE, context_half(builder, dq, half));
        builder_operand(&op, ATTENTION_GRADIENT_KEY_VALUE, half == 0 ? ACCESS_UPDATE : ACCESS_WRITE,
                        leading(builder, ordered, &op));
        if (half == HALVES - 1) {
            clear_trailing(builder, ordered, op.shape.attention.earlier + op.shape.attention.sequence);
        }
        builder_append(builder, &op);
    }
    reorder(builder, "kv gradient order", by_rank, ordered, false);
    transfer(builder, OP_REDUCE_SCATTER, "kv gradient reduce", by_rank, dkv);
}

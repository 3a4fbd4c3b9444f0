// SPDX-License-Identifier: MIT
// Context parallelism by all-to-all (Ulysses): during attention each rank of cp has some heads at all positions, before
// and after it all heads at its own positions.
//
// Sending: heads are packed by destination rank, exchanged, and reordered from rank order to sequence order, since each
// rank has a chunk from each half of a sequence.
#include "attention.h"
#include "context.h"

static int64_t ranks_of(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_CP];
}

bool context_exchanges(const struct builder *builder)
{
    return ranks_of(builder) > 1 && builder->plan->context == CONTEXT_EXCHANGE;
}

static void regroup(struct builder *builder, const char *role, struct rows_shape shape, int32_t in, int32_t out)
{
    struct op op  = assembly_op(&builder->assembly, OP_REGROUP, role);
    op.shape.rows = shape;
    assembly_operand(&op, REGROUP_IN, ACCESS_READ, in);
    assembly_operand(&op, REGROUP_OUT, ACCESS_WRITE, out);
    assembly_append(&builder->assembly, &op);
}

// A tensor for all positions of this rank's share of the heads.
static int32_t new_share(struct builder *builder, const char *role, int64_t elements)
{
    int64_t tokens = builder->tokens * ranks_of(builder);
    return assembly_activation(&builder->assembly, role, DIMS(tokens, elements / tokens));
}

static int32_t exchange(struct builder *builder, const char *role, int32_t in)
{
    int32_t out = new_share(builder, role, builder->plan->tensors[in].elements);
    assembly_transfer(&builder->assembly, &(struct transfer){.kind = OP_ALL_TO_ALL,
                                                             .role = role,
                                                             .axes = 1u << AXIS_CP,
                                                             .lane = LANE_CONTEXT,
                                                             .in   = in,
                                                             .out  = out,
                                                             .hold = -1});
    return out;
}

int32_t context_to_heads(struct builder *builder, const char *role, int32_t in, int64_t pieces)
{
    int64_t ranks = ranks_of(builder), runs = context_runs(builder), elements = builder->plan->tensors[in].elements;
    int64_t rows   = builder->tokens * pieces;
    int32_t packed = new_share(builder, "heads by rank", elements);
    regroup(builder, role, (struct rows_shape){.rows = rows, .columns = elements / rows, .parts = ranks}, in, packed);
    int32_t by_rank = exchange(builder, role, packed);
    int32_t ordered = new_share(builder, "heads by position", elements);
    regroup(
        builder, role,
        (struct rows_shape){.rows = ranks, .columns = elements / ranks, .parts = runs, .variant = REGROUP_FOLDED_PARTS},
        by_rank, ordered);
    return ordered;
}

void context_to_positions(struct builder *builder, const char *role, int32_t in, int64_t pieces, int32_t out)
{
    int64_t ranks = ranks_of(builder), runs = context_runs(builder), elements = builder->plan->tensors[in].elements;
    int32_t by_rank = new_share(builder, "positions by rank", elements);
    regroup(
        builder, role,
        (struct rows_shape){.rows = runs, .columns = elements / runs, .parts = ranks, .variant = REGROUP_FOLDED_ROWS},
        in, by_rank);
    regroup(builder, role,
            (struct rows_shape){.rows = ranks, .columns = elements / ranks, .parts = builder->tokens * pieces},
            exchange(builder, role, by_rank), out);
}

// Attention over the full sequence for this rank's share of the heads. ALiBi slopes depend on a head's index in the
// model.
static struct op heads_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    const struct plan      *plan  = builder->plan;
    struct op               op    = attention_op(builder, kind, role);
    struct attention_shape *shape = &op.shape.attention;
    shape->sequence *= ranks_of(builder);
    shape->heads /= ranks_of(builder);
    shape->kv_heads /= ranks_of(builder);
    if (shape->sloped_heads > 0) {
        shape->first_head += mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_CP) * shape->heads;
    }
    return op;
}

void exchange_attention(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t        *values  = sublayer->values->tensor;
    struct op       op      = heads_op(builder, OP_ATTENTION_FORWARD, "attention");
    int64_t         width   = builder->heads * builder->value_dim;
    values[VALUE_HEADS_O]   = new_share(builder, "attention of heads", builder->tokens * width);
    values[VALUE_LSE] =
        assembly_tensor(&builder->assembly, "attention statistics", STORAGE_ACTIVATION, FORMAT_F32,
                        DIMS(op.shape.attention.batch, op.shape.attention.heads, op.shape.attention.sequence));
    builder->plan->tensors[values[VALUE_LSE]].holds = TENSOR_STATISTICS;
    assembly_operand(&op, ATTENTION_QUERY, ACCESS_READ, values[VALUE_Q]);
    assembly_operand(&op, ATTENTION_KEY_VALUE, ACCESS_READ, values[VALUE_KV]);
    assembly_operand(&op, ATTENTION_OUT, ACCESS_WRITE, values[VALUE_HEADS_O]);
    assembly_operand(&op, ATTENTION_STATISTICS, ACCESS_WRITE, values[VALUE_LSE]);
    assembly_append(&builder->assembly, &op);
    values[VALUE_O] = attention_new_out(builder, "attention", builder->tokens);
    context_to_positions(builder, "attention exchange", values[VALUE_HEADS_O], 1, values[VALUE_O]);
}

void exchange_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         d_out   = context_to_heads(builder, "attention gradient exchange", gradient, 1);
    int32_t         d_query = new_share(builder, "q gradient of heads", builder->plan->tensors[dq].elements);
    int32_t         d_keys  = new_share(builder, "kv gradient of heads", builder->plan->tensors[dkv].elements);
    struct op       op      = heads_op(builder, OP_ATTENTION_BACKWARD, "attention gradient");
    assembly_operand(&op, ATTENTION_GRADIENT_OUT, ACCESS_READ, d_out);
    assembly_operand(&op, ATTENTION_GRADIENT_QUERY_IN, ACCESS_READ, values[VALUE_Q]);
    assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE_IN, ACCESS_READ, values[VALUE_KV]);
    assembly_operand(&op, ATTENTION_GRADIENT_OUT_IN, ACCESS_READ, values[VALUE_HEADS_O]);
    assembly_operand(&op, ATTENTION_GRADIENT_STATISTICS, ACCESS_READ, values[VALUE_LSE]);
    assembly_operand(&op, ATTENTION_GRADIENT_QUERY, ACCESS_WRITE, d_query);
    assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE, ACCESS_WRITE, d_keys);
    assembly_append(&builder->assembly, &op);
    assembly_set_part(&builder->assembly, PART_QUERIES);
    context_to_positions(builder, "q gradient exchange", d_query, 1, dq);
    assembly_set_part(&builder->assembly, PART_KEYS);
    context_to_positions(builder, "kv gradient exchange", d_keys, 2, dkv);
}

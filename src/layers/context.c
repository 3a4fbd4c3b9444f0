// SPDX-License-Identifier: MIT
// Context parallelism with all-gathered keys and values. Of 2 cp chunks of a sequence, rank r has the queries of chunks
// r and 2 cp - 1 - r, which balances causal attention. Gathered keys and values are reordered from rank order to
// sequence order, so that each run of queries attends to a prefix of them.
//
// Each chunk of each sequence is a run with a separate attention op, because chunks of several sequences are not
// contiguous.
#include "context.h"

#include "gswbench/linear.h"
#include "attention.h"

static int64_t ranks_of(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_CP];
}

int64_t context_chunk(const struct builder *builder, int64_t rank, int half)
{
    return half == 0 ? rank : 2 * ranks_of(builder) - 1 - rank;
}

static int64_t own_chunk(const struct builder *builder, int half)
{
    return context_chunk(builder, mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_CP), half);
}

static int32_t new_whole(struct builder *builder, const char *name)
{
    return attention_new_key_value(builder, name, builder->tokens * ranks_of(builder));
}

// Copies chunks between rank order and sequence order.
static void reorder(struct builder *builder, const char *role, int32_t by_rank, int32_t by_position, bool to_position)
{
    int64_t runs = context_runs(builder), length = builder->tokens / runs;
    for (int64_t from = 0; from < ranks_of(builder) * runs; from++) {
        int64_t sequence = from % runs / HALVES;
        int64_t chunk    = context_chunk(builder, from / runs, (int)(from % HALVES));
        int64_t to       = sequence * HALVES * ranks_of(builder) + chunk;
        int32_t ranked   = tensor_rows(builder, "chunk", by_rank, from * length, length);
        int32_t placed   = tensor_rows(builder, "chunk", by_position, to * length, length);
        assembly_cast(&builder->assembly, role, to_position ? ranked : placed, to_position ? placed : ranked, false);
    }
}

static int32_t transfer(struct builder *builder, enum op_kind kind, const char *role, int32_t in, int32_t out)
{
    return assembly_transfer(&builder->assembly,
                             &(struct transfer){.kind  = kind,
                                                .role  = role,
                                                .makes = kind == OP_ALL_GATHER ? MAKES_INPUT : MAKES_OUTPUT,
                                                .axes  = 1u << AXIS_CP,
                                                .lane  = LANE_CONTEXT,
                                                .in    = in,
                                                .out   = out,
                                                .hold  = -1});
}

static int32_t gather_keys(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t         by_rank = new_whole(builder, "gathered kv");
    int32_t         ordered = new_whole(builder, "ordered kv");
    transfer(builder, OP_ALL_GATHER, "kv gather", sublayer->values->tensor[VALUE_KV], by_rank);
    reorder(builder, "kv order", by_rank, ordered, true);
    return ordered;
}

int64_t context_runs(const struct builder *builder)
{
    return HALVES * builder->plan->train.micro_batch;
}

int32_t context_run(struct builder *builder, int32_t whole, int64_t run)
{
    int64_t rows = builder->plan->tensors[whole].dim[0] / context_runs(builder);
    return tensor_rows(builder, "run", whole, run * rows, rows);
}

int32_t context_statistics(struct builder *builder, int64_t runs)
{
    int32_t made = assembly_tensor(&builder->assembly, "attention statistics", STORAGE_ACTIVATION, FORMAT_F32,
                                   DIMS(runs, builder->heads, builder->sequence / HALVES));

    builder->plan->tensors[made].holds = TENSOR_STATISTICS;
    return made;
}

struct op context_op(const struct builder *builder, enum op_kind kind, const char *role, int64_t keys)
{
    struct op op                = attention_op(builder, kind, role);
    op.shape.attention.batch    = 1;
    op.shape.attention.sequence = builder->sequence / HALVES;
    op.shape.attention.earlier  = keys - op.shape.attention.sequence;
    op.shape.attention.distance = op.shape.attention.earlier;
    return op;
}

// Keys up to the end of a run.
static int64_t keys_of(const struct builder *builder, int64_t run)
{
    return (own_chunk(builder, (int)(run % HALVES)) + 1) * (builder->sequence / HALVES);
}

static int32_t leading(struct builder *builder, int32_t whole, int64_t run)
{
    int64_t first = run / HALVES * builder->plan->train.sequence;
    return tensor_rows(builder, "leading kv", whole, first, keys_of(builder, run));
}

void context_attention(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    if (builder->plan->context != CONTEXT_GATHER) {
        (context_exchanges(builder) ? exchange_attention : ring_attention)(sublayer);
        return;
    }
    int32_t keys       = gather_keys(sublayer);
    int32_t out        = attention_new_out(builder, "attention", builder->tokens);
    int32_t statistics = context_statistics(builder, context_runs(builder));
    for (int64_t run = 0; run < context_runs(builder); run++) {
        struct op op = context_op(builder, OP_ATTENTION_FORWARD, "attention", keys_of(builder, run));
        assembly_operand(&op, ATTENTION_QUERY, ACCESS_READ,
                         context_run(builder, sublayer->values->tensor[VALUE_Q], run));
        assembly_operand(&op, ATTENTION_KEY_VALUE, ACCESS_READ, leading(builder, keys, run));
        assembly_operand(&op, ATTENTION_OUT, ACCESS_WRITE, context_run(builder, out, run));
        assembly_operand(&op, ATTENTION_STATISTICS, ACCESS_WRITE, context_run(builder, statistics, run));
        assembly_append(&builder->assembly, &op);
    }
    sublayer->values->tensor[VALUE_O]   = out;
    sublayer->values->tensor[VALUE_LSE] = statistics;
}

// Clears the gradient of keys and values that no query of this rank attends to.
static void clear_trailing(struct builder *builder, int32_t whole, int64_t run)
{
    int64_t sequence = builder->plan->train.sequence, seen = keys_of(builder, run);
    if (seen == sequence) {
        return;
    }
    int32_t   rest = tensor_rows(builder, "unseen kv", whole, run / HALVES * sequence + seen, sequence - seen);
    struct op op   = assembly_op(&builder->assembly, OP_CLEAR, "unseen kv gradient");
    assembly_operand(&op, CLEAR_OUT, ACCESS_WRITE, rest);
    op.shape.elements.elements = builder->plan->tensors[rest].elements;
    assembly_append(&builder->assembly, &op);
}

void context_gradient_inputs(struct sublayer *sublayer, struct op *op, int32_t gradient, int64_t run)
{
    struct builder               *builder = sublayer->builder;
    const struct sublayer_values *values  = sublayer->values;
    assembly_operand(op, ATTENTION_GRADIENT_OUT, ACCESS_READ, context_run(builder, gradient, run));
    assembly_operand(op, ATTENTION_GRADIENT_QUERY_IN, ACCESS_READ, context_run(builder, values->tensor[VALUE_Q], run));
    assembly_operand(op, ATTENTION_GRADIENT_OUT_IN, ACCESS_READ, context_run(builder, values->tensor[VALUE_O], run));
    assembly_operand(op, ATTENTION_GRADIENT_STATISTICS, ACCESS_READ,
                     context_run(builder, values->tensor[VALUE_LSE], run));
}

void context_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv)
{
    struct builder *builder = sublayer->builder;
    if (builder->plan->context != CONTEXT_GATHER) {
        (context_exchanges(builder) ? exchange_attention_backward : ring_attention_backward)(sublayer, gradient, dq,
                                                                                             dkv);
        return;
    }
    int32_t keys    = gather_keys(sublayer);
    int32_t ordered = new_whole(builder, "ordered kv gradient");
    int32_t by_rank = new_whole(builder, "kv gradient of all");
    // The second run of a sequence attends to more keys: it writes the gradient, and the first run adds to it.
    for (int64_t run = context_runs(builder) - 1; run >= 0; run--) {
        bool      is_first = run % HALVES == 0;
        struct op op       = context_op(builder, OP_ATTENTION_BACKWARD, "attention gradient", keys_of(builder, run));
        op.accumulates     = is_first;
        context_gradient_inputs(sublayer, &op, gradient, run);
        assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE_IN, ACCESS_READ, leading(builder, keys, run));
        assembly_operand(&op, ATTENTION_GRADIENT_QUERY, ACCESS_WRITE, context_run(builder, dq, run));
        assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE, is_first ? ACCESS_UPDATE : ACCESS_WRITE,
                         leading(builder, ordered, run));
        if (!is_first) {
            clear_trailing(builder, ordered, run);
        }
        assembly_append(&builder->assembly, &op);
    }
    reorder(builder, "kv gradient order", by_rank, ordered, false);
    transfer(builder, OP_REDUCE_SCATTER, "kv gradient reduce", by_rank, dkv);
}

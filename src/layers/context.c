// SPDX-License-Identifier: MIT
// Appends core attention under context parallelism in one of three ways: keys and values are all-gathered or passed
// around a ring, or all-to-alls give each rank all positions of some heads (Ulysses).
//
// A sequence has 2 cp chunks. Rank r has the queries of chunks r and 2 cp - 1 - r, which balances causal attention. A
// chunk of one sequence on this rank is called a run, and each run has an attention op, because runs are not contiguous
// in memory. All-gathered keys and values are reordered from rank order to sequence order, so that a run attends to a
// prefix of them.
#include "attention.h"

#include "gswbench/linear.h"

static int64_t ranks_of(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_CP];
}

static int64_t context_chunk(const struct builder *builder, int64_t rank, int half)
{
    return half == 0 ? rank : 2 * ranks_of(builder) - 1 - rank;
}

int64_t context_runs(const struct builder *builder)
{
    return HALVES * builder->plan->train.micro_batch;
}

static int32_t context_run(struct builder *builder, int32_t whole, int64_t run)
{
    int64_t rows = builder->plan->tensors[whole].dim[0] / context_runs(builder);
    return tensor_rows(builder, "run", whole, run * rows, rows);
}

static int32_t context_statistics(struct builder *builder, int64_t runs)
{
    int32_t made = assembly_tensor(&builder->assembly, "attention statistics", STORAGE_ACTIVATION, FORMAT_F32,
                                   DIMS(runs, builder->heads, builder->sequence / HALVES));

    builder->plan->tensors[made].holds = TENSOR_STATISTICS;
    return made;
}

static struct op context_op(const struct builder *builder, enum op_kind kind, const char *role, int64_t keys)
{
    struct op op                = attention_op(builder, kind, role);
    op.shape.attention.batch    = 1;
    op.shape.attention.sequence = builder->sequence / HALVES;
    op.shape.attention.earlier  = keys - op.shape.attention.sequence;
    op.shape.attention.distance = op.shape.attention.earlier;
    return op;
}

static void context_gradient_inputs(struct sublayer *sublayer, struct op *op, int32_t gradient, int64_t run)
{
    struct builder               *builder = sublayer->builder;
    const struct sublayer_values *values  = sublayer->values;
    assembly_operand(op, ATTENTION_GRADIENT_OUT, context_run(builder, gradient, run));
    assembly_operand(op, ATTENTION_GRADIENT_QUERY_IN, context_run(builder, values->tensor[VALUE_Q], run));
    assembly_operand(op, ATTENTION_GRADIENT_OUT_IN, context_run(builder, values->tensor[VALUE_O], run));
    assembly_operand(op, ATTENTION_GRADIENT_STATISTICS, context_run(builder, values->tensor[VALUE_LSE], run));
}

bool context_is_ulysses(const struct builder *builder)
{
    return ranks_of(builder) > 1 && builder->plan->context == CONTEXT_EXCHANGE;
}

// Ring attention: each rank's block of keys and values passes around the ranks of cp while attention works on the
// current block. In the backward pass the block's gradient passes with it. Partial outputs are merged in fp32 by their
// log-sum-exp.
//
// Rank r has the queries of chunks r and 2 cp - 1 - r, its first and second half. Attention to its own block is causal.
// All queries attend to the first half of a block from a lower rank. Only the second half of the queries attends to a
// block from a higher rank, to all of it. A visit is one attention op: a run and its keys in the current block. With
// ALiBi each half of a block has its own visit, because the halves are not adjacent in the sequence.

struct visit {
    int64_t run;            // index of the chunk of queries, among this rank's chunks (two per sequence)
    int64_t first, keys;    // keys of the block that the queries attend to: first row, and number of rows
    int64_t distance;       // ALiBi: positions from the first key to the first query
    bool    causal;
};

// Returns the keys of one block that a run of queries (a chunk of a sequence) attends to. The block is from the rank
// that is `distance` ranks before this one in the ring. half: half of the block; without ALiBi, half 0 covers both
// halves.
static struct visit visit_of(const struct builder *builder, int64_t distance, int64_t run, int half)
{
    int64_t length = builder->sequence / HALVES, ranks = builder->plan->mesh.size[AXIS_CP];
    int64_t rank     = mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_CP);
    int     own      = (int)(run % HALVES);
    bool    is_first = own == 0, is_own = distance == 0, is_lower = !is_own && distance <= rank;
    int64_t chunks = is_lower ? 1 : is_first ? is_own : HALVES;
    if (builder->plan->model.positions != POSITIONS_ALIBI) {
        return (struct visit){.run = run, .keys = half == 0 ? chunks * length : 0, .causal = is_own};
    }
    int64_t chunk = context_chunk(builder, (rank + ranks - distance) % ranks, half);
    return (struct visit){.run      = run,
                          .first    = half * length,
                          .keys     = half < chunks ? length : 0,
                          .distance = (context_chunk(builder, rank, own) - chunk) * length,
                          .causal   = is_own && half == own};
}

static struct op visit_op(const struct builder *builder, enum op_kind kind, const char *role, const struct visit *visit)
{
    struct op op                = context_op(builder, kind, role, visit->keys);
    op.shape.attention.causal   = visit->causal;
    op.shape.attention.distance = visit->distance;
    return op;
}

// Returns the rows of the current block of keys and values, or of its gradient, that the visit's queries attend to.
static int32_t seen(struct builder *builder, int32_t keys, const struct visit *visit)
{
    return tensor_rows(builder, "seen kv", keys, visit->run / HALVES * builder->sequence + visit->first, visit->keys);
}

static int32_t rotate(struct builder *builder, const char *role, enum model_value makes, int32_t in)
{
    struct tensor from = builder->plan->tensors[in];    // a copy, because plan->tensors can be reallocated
    int32_t       out  = assembly_tensor(&builder->assembly, role, STORAGE_ACTIVATION, from.format, from.dim);
    collect(builder, &(struct communication){OP_ROTATE, role, .makes = (uint8_t)makes, .axes = 1u << AXIS_CP,
                                             .stream = STREAM_CONTEXT, .in = in, .out = out, .hold = -1, .peer = 1});
    return out;
}

static int32_t new_queries(struct builder *builder, const char *name, int64_t rows, int64_t width)
{
    return assembly_tensor(&builder->assembly, name, STORAGE_ACTIVATION, FORMAT_F32, DIMS(rows, builder->heads, width));
}

static void forward(struct sublayer *sublayer, const struct visit *visit, int32_t keys, int32_t out, int32_t statistics)
{
    struct builder *builder = sublayer->builder;
    struct op       op      = visit_op(builder, OP_ATTENTION_FORWARD, "attention", visit);
    int32_t         queries = context_run(builder, sublayer->values->tensor[VALUE_Q], visit->run);
    int32_t         block   = seen(builder, keys, visit);
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({ATTENTION_QUERY, queries}, {ATTENTION_KEY_VALUE, block}, {ATTENTION_OUT, out},
                               {ATTENTION_STATISTICS, statistics}));
}

static void merge(struct sublayer *sublayer, const struct visit *visit, int32_t keys, int32_t out, int32_t statistics)
{
    struct builder *builder = sublayer->builder;
    int32_t         part    = new_queries(builder, "attention part", builder->sequence / HALVES, builder->value_dim);
    int32_t         own     = context_statistics(builder, 1);
    forward(sublayer, visit, keys, part, own);

    struct op op = visit_op(builder, OP_ATTENTION_MERGE, "attention merge", visit);
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({ATTENTION_MERGE_OUT, out}, {ATTENTION_MERGE_STATISTICS, statistics},
                               {ATTENTION_MERGE_PART, part}, {ATTENTION_MERGE_PART_STATISTICS, own}));
}

static void ring_attention(struct sublayer *sublayer)
{
    struct builder *builder    = sublayer->builder;
    int64_t         ranks      = builder->plan->mesh.size[AXIS_CP];
    int32_t         keys       = sublayer->values->tensor[VALUE_KV];
    int32_t         sum        = new_queries(builder, "attention sum", builder->tokens, builder->value_dim);
    int32_t         statistics = context_statistics(builder, context_runs(builder));
    for (int64_t distance = 0; distance < ranks; distance++) {
        // The next block of keys and values arrives while attention works on the current one.
        int32_t next = distance + 1 < ranks ? rotate(builder, "kv ring", MAKES_INPUT, keys) : -1;
        for (int64_t i = 0; i < HALVES * context_runs(builder); i++) {
            int64_t      run   = i / HALVES;
            struct visit visit = visit_of(builder, distance, run, (int)(i % HALVES));
            if (visit.keys > 0) {
                bool begins = distance == 0 && i % HALVES == 0;
                (begins ? forward : merge)(sublayer, &visit, keys, context_run(builder, sum, run),
                                           context_run(builder, statistics, run));
            }
        }
        keys = next;
    }
    int32_t out = attention_new_out(builder, "attention", builder->tokens);
    assembly_cast(&builder->assembly, "attention cast", sum, out, false);
    sublayer->values->tensor[VALUE_O]   = out;
    sublayer->values->tensor[VALUE_LSE] = statistics;
}

// Tensors of the backward pass: gradient of the attention output, and fp32 sums of the gradients of the queries and of
// the current block of keys and values.
struct gradients {
    int32_t out, query, key_value;
};

// Adds the gradients from one visit. The saved log-sum-exp covers the keys of every block, so the gradients of blocks
// simply add.
static void backward(struct sublayer *sublayer, const struct visit *visit, int32_t keys,
                     const struct gradients *gradients)
{
    struct builder *builder       = sublayer->builder;
    struct op       op            = visit_op(builder, OP_ATTENTION_BACKWARD, "attention gradient", visit);
    op.accumulates                = true;
    op.shape.attention.adds_query = true;
    context_gradient_inputs(sublayer, &op, gradients->out, visit->run);
    assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE_IN, seen(builder, keys, visit));
    assembly_operand(&op, ATTENTION_GRADIENT_QUERY, context_run(builder, gradients->query, visit->run));
    assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE, seen(builder, gradients->key_value, visit));
    assembly_append(&builder->assembly, &op);
}

static void ring_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv)
{
    struct builder  *builder = sublayer->builder;
    int64_t          ranks   = builder->plan->mesh.size[AXIS_CP];
    int32_t          keys    = sublayer->values->tensor[VALUE_KV];
    struct gradients sums    = {.out   = gradient,
                                .query = new_queries(builder, "q gradient sum", builder->tokens, builder->key_dim)};
    sums.key_value =
        assembly_tensor(&builder->assembly, "kv gradient sum", STORAGE_ACTIVATION, FORMAT_F32,
                        DIMS(builder->tokens, builder->kv_heads * (builder->key_dim + builder->value_dim)));
    assembly_set_part(&builder->assembly, PART_QUERIES);
    assembly_clear(&builder->assembly, "q gradient clear", sums.query);
    assembly_set_part(&builder->assembly, PART_KEYS);
    assembly_clear(&builder->assembly, "kv gradient clear", sums.key_value);
    assembly_set_part(&builder->assembly, PART_CORE_ATTENTION);
    for (int64_t distance = 0; distance < ranks; distance++) {
        int32_t next = distance + 1 < ranks ? rotate(builder, "kv ring", MAKES_INPUT, keys) : -1;
        for (int64_t i = 0; i < HALVES * context_runs(builder); i++) {
            struct visit visit = visit_of(builder, distance, i / HALVES, (int)(i % HALVES));
            if (visit.keys > 0) {
                backward(sublayer, &visit, keys, &sums);
            }
        }
        // The gradient of a block moves around the ring with the block, and is back at the block's rank after the last
        // step.
        sums.key_value = rotate(builder, "kv gradient ring", MAKES_OUTPUT, sums.key_value);
        keys           = next;
    }
    assembly_set_part(&builder->assembly, PART_QUERIES);
    assembly_cast(&builder->assembly, "q gradient cast", sums.query, dq, false);
    assembly_set_part(&builder->assembly, PART_KEYS);
    assembly_cast(&builder->assembly, "kv gradient cast", sums.key_value, dkv, false);
}

// Context parallelism by all-to-all (Ulysses): during attention, each rank of cp has some of the heads at all
// positions. Before and after attention, it has all heads at some of the positions.
//
// Before the all-to-all, heads are packed by destination rank. After it, positions are reordered from rank order to
// sequence order, since each rank has a chunk from each half of a sequence.

static void regroup(struct builder *builder, const char *role, struct rows_shape shape, int32_t in, int32_t out)
{
    struct op op  = assembly_op(&builder->assembly, OP_REGROUP, role);
    op.shape.rows = shape;
    assembly_append_with(&builder->assembly, &op, SLOTS({REGROUP_IN, in}, {REGROUP_OUT, out}));
}

// Returns a new tensor for all positions of the heads that this rank has during attention.
static int32_t new_share(struct builder *builder, const char *role, int64_t elements)
{
    int64_t tokens = builder->tokens * ranks_of(builder);
    return assembly_activation(&builder->assembly, role, DIMS(tokens, elements / tokens));
}

static int32_t exchange(struct builder *builder, const char *role, int32_t in)
{
    int32_t out = new_share(builder, role, builder->plan->tensors[in].elements);
    collect(builder, &(struct communication){OP_ALL_TO_ALL, role, .axes = 1u << AXIS_CP, .stream = STREAM_CONTEXT,
                                             .in = in, .out = out, .hold = -1});
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

static void context_to_positions(struct builder *builder, const char *role, int32_t in, int64_t pieces, int32_t out)
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

// Returns an attention op over the full sequence for the heads that this rank has during attention. ALiBi slopes depend
// on a head's index in the model, so first_head is the index of this rank's first head.
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

static void exchange_attention(struct sublayer *sublayer)
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
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({ATTENTION_QUERY, values[VALUE_Q]}, {ATTENTION_KEY_VALUE, values[VALUE_KV]},
                               {ATTENTION_OUT, values[VALUE_HEADS_O]}, {ATTENTION_STATISTICS, values[VALUE_LSE]}));
    values[VALUE_O] = attention_new_out(builder, "attention", builder->tokens);
    context_to_positions(builder, "attention exchange", values[VALUE_HEADS_O], QUERY_PIECES, values[VALUE_O]);
}

static void exchange_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         d_out   = context_to_heads(builder, "attention gradient exchange", gradient, QUERY_PIECES);
    int32_t         d_query = new_share(builder, "q gradient of heads", builder->plan->tensors[dq].elements);
    int32_t         d_keys  = new_share(builder, "kv gradient of heads", builder->plan->tensors[dkv].elements);
    struct op       op      = heads_op(builder, OP_ATTENTION_BACKWARD, "attention gradient");
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({ATTENTION_GRADIENT_OUT, d_out}, {ATTENTION_GRADIENT_QUERY_IN, values[VALUE_Q]},
                               {ATTENTION_GRADIENT_KEY_VALUE_IN, values[VALUE_KV]},
                               {ATTENTION_GRADIENT_OUT_IN, values[VALUE_HEADS_O]},
                               {ATTENTION_GRADIENT_STATISTICS, values[VALUE_LSE]}, {ATTENTION_GRADIENT_QUERY, d_query},
                               {ATTENTION_GRADIENT_KEY_VALUE, d_keys}));
    assembly_set_part(&builder->assembly, PART_QUERIES);
    context_to_positions(builder, "q gradient exchange", d_query, QUERY_PIECES, dq);
    assembly_set_part(&builder->assembly, PART_KEYS);
    context_to_positions(builder, "kv gradient exchange", d_keys, KEY_VALUE_PIECES, dkv);
}

static int32_t new_whole(struct builder *builder, const char *name)
{
    return attention_new_key_value(builder, name, builder->tokens * ranks_of(builder));
}

// Copies all ranks' chunks from rank order (by_rank) to sequence order (by_position), or back if !to_position.
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

static int32_t communication(struct builder *builder, enum op_kind kind, const char *role, int32_t in, int32_t out)
{
    return collect(builder, &(struct communication){
                                kind, role, .makes = kind == OP_ALL_GATHER ? MAKES_INPUT : MAKES_OUTPUT,
                                .axes = 1u << AXIS_CP, .stream = STREAM_CONTEXT, .in = in, .out = out, .hold = -1});
}

static int32_t gather_keys(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t         by_rank = new_whole(builder, "gathered kv");
    int32_t         ordered = new_whole(builder, "ordered kv");
    communication(builder, OP_ALL_GATHER, "kv gather", sublayer->values->tensor[VALUE_KV], by_rank);
    reorder(builder, "kv order", by_rank, ordered, true);
    return ordered;
}

// Returns the number of keys that a run (a chunk of a sequence on this rank) attends to: all up to its own end.
static int64_t keys_of(const struct builder *builder, int64_t run)
{
    int64_t rank = mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_CP);
    return (context_chunk(builder, rank, (int)(run % HALVES)) + 1) * (builder->sequence / HALVES);
}

static int32_t leading(struct builder *builder, int32_t whole, int64_t run)
{
    int64_t first = run / HALVES * builder->plan->train.sequence;
    return tensor_rows(builder, "leading kv", whole, first, keys_of(builder, run));
}

// Clears the gradient of the keys and values after `run`, the second of this rank's two chunks of a sequence. No query
// of this rank attends to them.
static void clear_trailing(struct builder *builder, int32_t whole, int64_t run)
{
    int64_t sequence = builder->plan->train.sequence, seen = keys_of(builder, run);
    if (seen < sequence) {
        assembly_clear(&builder->assembly, "unseen kv gradient",
                       tensor_rows(builder, "unseen kv", whole, run / HALVES * sequence + seen, sequence - seen));
    }
}

void context_attention(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    if (builder->plan->context != CONTEXT_GATHER) {
        (context_is_ulysses(builder) ? exchange_attention : ring_attention)(sublayer);
        return;
    }
    int32_t keys       = gather_keys(sublayer);
    int32_t out        = attention_new_out(builder, "attention", builder->tokens);
    int32_t statistics = context_statistics(builder, context_runs(builder));
    for (int64_t run = 0; run < context_runs(builder); run++) {
        struct op op = context_op(builder, OP_ATTENTION_FORWARD, "attention", keys_of(builder, run));
        assembly_operand(&op, ATTENTION_QUERY, context_run(builder, sublayer->values->tensor[VALUE_Q], run));
        assembly_operand(&op, ATTENTION_KEY_VALUE, leading(builder, keys, run));
        assembly_operand(&op, ATTENTION_OUT, context_run(builder, out, run));
        assembly_operand(&op, ATTENTION_STATISTICS, context_run(builder, statistics, run));
        assembly_append(&builder->assembly, &op);
    }
    sublayer->values->tensor[VALUE_O]   = out;
    sublayer->values->tensor[VALUE_LSE] = statistics;
}

void context_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv)
{
    struct builder *builder = sublayer->builder;
    if (builder->plan->context != CONTEXT_GATHER) {
        (context_is_ulysses(builder) ? exchange_attention_backward : ring_attention_backward)(sublayer, gradient, dq,
                                                                                              dkv);
        return;
    }
    int32_t keys    = gather_keys(sublayer);
    int32_t ordered = new_whole(builder, "ordered kv gradient");
    int32_t by_rank = new_whole(builder, "kv gradient of all");
    // The second chunk of a sequence attends to more keys: its op writes the gradient, and the first chunk's op adds to
    // it.
    for (int64_t run = context_runs(builder) - 1; run >= 0; run--) {
        bool      is_first = run % HALVES == 0;
        struct op op       = context_op(builder, OP_ATTENTION_BACKWARD, "attention gradient", keys_of(builder, run));
        op.accumulates     = is_first;
        context_gradient_inputs(sublayer, &op, gradient, run);
        assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE_IN, leading(builder, keys, run));
        assembly_operand(&op, ATTENTION_GRADIENT_QUERY, context_run(builder, dq, run));
        assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE, leading(builder, ordered, run));
        if (!is_first) {
            clear_trailing(builder, ordered, run);
        }
        assembly_append(&builder->assembly, &op);
    }
    reorder(builder, "kv gradient order", by_rank, ordered, false);
    communication(builder, OP_REDUCE_SCATTER, "kv gradient reduce", by_rank, dkv);
}

// SPDX-License-Identifier: MIT
// Ring attention: keys and values of each rank pass around the ranks of cp, in the backward pass together with their
// gradients, while attention works on the current block. Partial outputs are merged in fp32 by their log-sum-exp.
//
// Rank r has the queries of chunks r and 2 cp - 1 - r, its first and second half. Its own block is causal. Of a block
// from a lower rank, both halves attend to the first half. Of a block from a higher rank, only the second half attends,
// to both halves. The halves of a block are not adjacent in the sequence, so with ALiBi each is a separate op.
#include "gswbench/linear.h"
#include "attention.h"
#include "context.h"

struct visit {
    int64_t run;            // of queries
    int64_t first, keys;    // rows of the block, in the run's sequence, that the run attends to
    int64_t distance;       // ALiBi: positions from the first key to the first query
    bool    causal;
};

// The keys that a run of queries attends to, in the block of the rank that is distance places before in the ring.
// Without ALiBi, half 0 covers both halves of the block.
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

// The rows of the current block, or of its gradient, in this visit.
static int32_t seen(struct builder *builder, int32_t keys, const struct visit *visit)
{
    return tensor_rows(builder, "seen kv", keys, visit->run / HALVES * builder->sequence + visit->first, visit->keys);
}

static int32_t rotate(struct builder *builder, const char *role, enum model_value makes, int32_t in)
{
    struct tensor from = builder->plan->tensors[in];    // a copy, because plan->tensors can be reallocated
    int32_t       out  = assembly_tensor(&builder->assembly, role, STORAGE_ACTIVATION, from.format, from.dim);
    assembly_transfer(&builder->assembly, &(struct transfer){.kind  = OP_ROTATE,
                                                             .role  = role,
                                                             .makes = (uint8_t)makes,
                                                             .axes  = 1u << AXIS_CP,
                                                             .lane  = LANE_CONTEXT,
                                                             .in    = in,
                                                             .out   = out,
                                                             .hold  = -1,
                                                             .peer  = 1});
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
    assembly_operand(&op, ATTENTION_QUERY, ACCESS_READ,
                     context_run(builder, sublayer->values->tensor[VALUE_Q], visit->run));
    assembly_operand(&op, ATTENTION_KEY_VALUE, ACCESS_READ, seen(builder, keys, visit));
    assembly_operand(&op, ATTENTION_OUT, ACCESS_WRITE, out);
    assembly_operand(&op, ATTENTION_STATISTICS, ACCESS_WRITE, statistics);
    assembly_append(&builder->assembly, &op);
}

static void merge(struct sublayer *sublayer, const struct visit *visit, int32_t keys, int32_t out, int32_t statistics)
{
    struct builder *builder = sublayer->builder;
    int32_t         part    = new_queries(builder, "attention part", builder->sequence / HALVES, builder->value_dim);
    int32_t         own     = context_statistics(builder, 1);
    forward(sublayer, visit, keys, part, own);

    struct op op = visit_op(builder, OP_ATTENTION_MERGE, "attention merge", visit);
    assembly_operand(&op, ATTENTION_MERGE_OUT, ACCESS_UPDATE, out);
    assembly_operand(&op, ATTENTION_MERGE_STATISTICS, ACCESS_UPDATE, statistics);
    assembly_operand(&op, ATTENTION_MERGE_PART, ACCESS_READ, part);
    assembly_operand(&op, ATTENTION_MERGE_PART_STATISTICS, ACCESS_READ, own);
    assembly_append(&builder->assembly, &op);
}

void ring_attention(struct sublayer *sublayer)
{
    struct builder *builder    = sublayer->builder;
    int64_t         ranks      = builder->plan->mesh.size[AXIS_CP];
    int32_t         keys       = sublayer->values->tensor[VALUE_KV];
    int32_t         sum        = new_queries(builder, "attention sum", builder->tokens, builder->value_dim);
    int32_t         statistics = context_statistics(builder, context_runs(builder));
    for (int64_t distance = 0; distance < ranks; distance++) {
        // The next block arrives during attention on this one.
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

static void clear(struct builder *builder, const char *role, int32_t tensor)
{
    struct op op = assembly_op(&builder->assembly, OP_CLEAR, role);
    assembly_operand(&op, CLEAR_OUT, ACCESS_WRITE, tensor);
    op.shape.elements.elements = builder->plan->tensors[tensor].elements;
    assembly_append(&builder->assembly, &op);
}

// Backward pass: gradient of the output, gradient sums of the queries and of the current block.
struct gradients {
    int32_t out, query, key_value;
};

// The statistics cover all keys, so the gradients of the blocks simply add up.
static void backward(struct sublayer *sublayer, const struct visit *visit, int32_t keys,
                     const struct gradients *gradients)
{
    struct builder *builder       = sublayer->builder;
    struct op       op            = visit_op(builder, OP_ATTENTION_BACKWARD, "attention gradient", visit);
    op.accumulates                = true;
    op.shape.attention.adds_query = true;
    context_gradient_inputs(sublayer, &op, gradients->out, visit->run);
    assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE_IN, ACCESS_READ, seen(builder, keys, visit));
    assembly_operand(&op, ATTENTION_GRADIENT_QUERY, ACCESS_UPDATE, context_run(builder, gradients->query, visit->run));
    assembly_operand(&op, ATTENTION_GRADIENT_KEY_VALUE, ACCESS_UPDATE, seen(builder, gradients->key_value, visit));
    assembly_append(&builder->assembly, &op);
}

void ring_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv)
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
    clear(builder, "q gradient clear", sums.query);
    assembly_set_part(&builder->assembly, PART_KEYS);
    clear(builder, "kv gradient clear", sums.key_value);
    assembly_set_part(&builder->assembly, PART_CORE_ATTENTION);
    for (int64_t distance = 0; distance < ranks; distance++) {
        int32_t next = distance + 1 < ranks ? rotate(builder, "kv ring", MAKES_INPUT, keys) : -1;
        for (int64_t i = 0; i < HALVES * context_runs(builder); i++) {
            struct visit visit = visit_of(builder, distance, i / HALVES, (int)(i % HALVES));
            if (visit.keys > 0) {
                backward(sublayer, &visit, keys, &sums);
            }
        }
        // The gradients follow their keys, and are back at their own rank after the last block.
        sums.key_value = rotate(builder, "kv gradient ring", MAKES_OUTPUT, sums.key_value);
        keys           = next;
    }
    assembly_set_part(&builder->assembly, PART_QUERIES);
    assembly_cast(&builder->assembly, "q gradient cast", sums.query, dq, false);
    assembly_set_part(&builder->assembly, PART_KEYS);
    assembly_cast(&builder->assembly, "kv gradient cast", sums.key_value, dkv, false);
}

// SPDX-License-Identifier: MIT
// Defines the table of op kinds: shape, cost model, waterfall part and operands of each. op_operands.h documents the
// operands.
#include "gswbench/op_table.h"

#define SIZE(of, name, expression)                                                                                     \
    static int64_t count_##name(const struct op *op)                                                                   \
    {                                                                                                                  \
        const struct of##_shape *shape = &op->shape.of;                                                                \
        return expression;                                                                                             \
    }                                                                                                                  \
    static const struct op_size name = {of##_fields, count_##name, false};

// clang-format off
SIZE(gemm, of_a, shape->m * shape->k)
SIZE(gemm, of_b, shape->k * shape->n)
SIZE(gemm, of_c, shape->m * shape->n)
SIZE(gemm, a_row_of_c, shape->n)
SIZE(gemm, inverse_scales_a, scaling_inverses((enum scaling)shape->scaling_a, shape->m, shape->k))
SIZE(gemm, inverse_scales_b, scaling_inverses((enum scaling)shape->scaling_b, shape->n, shape->k))

SIZE(rows, a_row, shape->rows)
SIZE(rows, a_column, shape->columns)
SIZE(rows, matrix, shape->rows * shape->columns)
SIZE(rows, first_part, shape->rows * shape->valid_columns)
SIZE(rows, other_part, shape->rows * (shape->columns - shape->valid_columns))
SIZE(rows, two_a_row, shape->rows * 2)
SIZE(rows, three_a_row, shape->rows * 3)
SIZE(rows, three_a_row_of_parts, shape->parts * shape->rows * 3)
SIZE(rows, table, shape->valid_columns * shape->columns)
SIZE(rows, before_activation, shape->rows * shape->columns *
     (shape->variant == ACTIVATION_SWIGLU || shape->variant == ACTIVATION_GEGLU ? 2 : 1))

#define TOKENS (shape->batch * shape->sequence)
SIZE(attention, queries, TOKENS * shape->heads * shape->head_dim)
SIZE(attention, outs, TOKENS * shape->heads * attention_value_dim(shape))
SIZE(attention, key_values, shape->batch * (shape->earlier + shape->sequence) * shape->kv_heads *
     (shape->head_dim + attention_value_dim(shape)))
SIZE(attention, own_key_values, TOKENS * shape->kv_heads * (shape->head_dim + attention_value_dim(shape)))
SIZE(attention, key_values_up, TOKENS * shape->heads * (shape->head_dim - shape->rotary + attention_value_dim(shape)))
SIZE(attention, shared_key, TOKENS * shape->rotary)
SIZE(attention, packed, TOKENS * (shape->heads + 2 * shape->kv_heads) * shape->head_dim)
SIZE(attention, one_a_query, TOKENS * shape->heads)
SIZE(attention, one_a_head, shape->heads)
SIZE(attention, head_scales, 2 * shape->head_dim)
SIZE(attention, rotations, shape->sequence * (shape->rotary > 1 ? shape->rotary / 2 : 1) * 2)

#define POSITIONS (shape->batch * shape->sequence)
SIZE(mamba, projected, POSITIONS * mamba_packed(shape))
SIZE(mamba, inner, POSITIONS * mamba_inner(shape))
SIZE(mamba, convolved, POSITIONS * mamba_channels(shape))
SIZE(mamba, time_steps, POSITIONS * shape->heads)
SIZE(mamba, inner_column, mamba_inner(shape))
SIZE(mamba, channel, mamba_channels(shape))
SIZE(mamba, filters, mamba_channels(shape) * shape->taps)
SIZE(mamba, scanned_head, shape->heads)
SIZE(mamba, group_scales, POSITIONS * shape->groups)

SIZE(routing, all_logits, shape->total * shape->experts)
SIZE(routing, own_logits, shape->rows * shape->experts)
SIZE(routing, choices, shape->rows * shape->top_k)
SIZE(routing, stream, shape->rows * shape->columns)
SIZE(routing, slots, routing_slots(shape))
SIZE(routing, in_slots, routing_slots(shape) * shape->columns)
SIZE(routing, one_an_expert, shape->experts)
SIZE(routing, counts, shape->sequences * shape->experts)
SIZE(routing, load, shape->experts + 2)
SIZE(rows, loads, shape->rows * (shape->columns + 2))

SIZE(quantize, copied, shape->rows * shape->columns)
SIZE(quantize, factors, scaling_inverses((enum scaling)shape->scaling, shape->rows, shape->columns))
SIZE(quantize, transposed_inverse_scales, scaling_inverses((enum scaling)shape->scaling, shape->columns, shape->rows))

SIZE(rescale, scales, shape->slots)
SIZE(rescale, history, shape->slots * shape->history)
SIZE(elements, all, shape->elements)
// clang-format on

static int64_t count_one(const struct op *op)
{
    (void)op;
    return 1;
}

static int64_t count_hyper(const struct op *op)
{
    (void)op;
    return HYPER_COUNT;
}

static int64_t count_by_group(const struct op *op)
{
    (void)op;
    return -1;
}

static const struct op_size one = {NULL, count_one, false}, hyper = {NULL, count_hyper, false};
static const struct op_size whole = {NULL, count_by_group, false}, share = {NULL, count_by_group, true};

#define FUSES(shape, cost, part, output)                                                                               \
    shape##_fields, OP_COST_##cost, OP_PART_##part, OP_ROUTE_NONE, OP_PEER_NONE, output
#define COMPUTES(shape, cost, part) FUSES(shape, cost, part, 0)
#define MOVES(shape, route, peer)                                                                                      \
    shape##_fields, OP_COST_COMMUNICATION, OP_PART_EXPOSED, OP_ROUTE_##route, OP_PEER_##peer, 0

// further: initialisers of fields of struct op_slot that few operands set, such as .is_table = true.
#define OPERAND(called, used, needed, of, further)                                                                     \
    {                                                                                                                  \
        .name = called, .use = OP_USE_##used, .need = OP_NEED_##needed, .size = &(of), further                         \
    }
#define SLOT(name, use, need, size)   OPERAND(name, use, need, size, )
#define TABLE(name, use)              OPERAND(name, use, ALWAYS, table, .is_table = true)
#define READ_TWICE(when, name, size)  OPERAND(name, READ, ALWAYS, size, .twice = OP_TWICE_##when)
#define HOLDS(what, name, size, need) OPERAND(name, READ, need, size, .holds = OP_HOLDS_##what)
#define COLUMNS(name, use, accessed)  OPERAND(name, use, ALWAYS, projected, .touched = &(accessed))
#define INDEX(name, size)             HOLDS(INDICES, name, size, ALWAYS)
#define PLACES(name, size)            HOLDS(PLACES, name, size, ALWAYS)
#define READ(name, size)              SLOT(name, READ, ALWAYS, size)
#define WRITE(name, size)             SLOT(name, WRITE, ALWAYS, size)
#define UPDATE(name, size)            SLOT(name, UPDATE, ALWAYS, size)
#define ADD(name, size)               SLOT(name, ADD, ALWAYS, size)
#define MAY_READ(name, size)          SLOT(name, READ, NEVER, size)
#define MAY_WRITE(name, size)         SLOT(name, WRITE, NEVER, size)
#define MAY_UPDATE(name, size)        SLOT(name, UPDATE, NEVER, size)
#define MAY_ADD(name, size)           SLOT(name, ADD, NEVER, size)

// clang-format off
const struct op_row op_table[OP_COUNT] = {
    [OP_EMBEDDING_FORWARD] = {COMPUTES(rows, MEMORY, MEMORY), {
        [EMBEDDING_TOKENS] = INDEX("tokens", a_row), [EMBEDDING_TABLE] = TABLE("table", READ),
        [EMBEDDING_OUT] = ADD("out", matrix)}},
    [OP_EMBEDDING_BACKWARD] = {COMPUTES(rows, MEMORY, MEMORY), {
        [EMBEDDING_GRADIENT_TOKENS] = INDEX("tokens", a_row), [EMBEDDING_GRADIENT_OUT] = READ("out_gradient", matrix),
        [EMBEDDING_GRADIENT_TABLE] = TABLE("table_gradient", ADD)}},
    [OP_NORM_FORWARD] = {FUSES(rows, MEMORY, MEMORY, NORM_OUT), {
        [NORM_IN] = READ_TWICE(TO_COPY, "in", matrix), [NORM_BRANCH] = MAY_READ("branch", matrix),
        [NORM_WEIGHT] = READ("weight", a_column), [NORM_BIAS] = MAY_READ("bias", a_column),
        [NORM_SUM] = MAY_WRITE("sum", matrix), [NORM_OUT] = WRITE("out", matrix),
        [NORM_STATISTICS] = WRITE("statistics", two_a_row)}},
    [OP_NORM_BACKWARD] = {COMPUTES(rows, MEMORY, MEMORY), {
        [NORM_GRADIENT_OUT] = READ("out_gradient", matrix), [NORM_GRADIENT_X] = READ("x", matrix),
        [NORM_GRADIENT_WEIGHT_IN] = READ("weight", a_column),
        [NORM_GRADIENT_STATISTICS] = READ("statistics", two_a_row),
        [NORM_GRADIENT_RESIDUAL] = MAY_READ("residual", matrix), [NORM_GRADIENT_IN] = WRITE("in_gradient", matrix),
        [NORM_GRADIENT_WEIGHT] = MAY_ADD("weight_gradient", a_column),
        [NORM_GRADIENT_BIAS] = MAY_ADD("bias_gradient", a_column)}},
    [OP_GEMM] = {COMPUTES(gemm, GEMM, GEMM), {
        [GEMM_A] = READ("a", of_a), [GEMM_B] = READ("b", of_b), [GEMM_C] = ADD("c", of_c),
        [GEMM_INVERSE_SCALE_A] = MAY_READ("factor_a", inverse_scales_a), [GEMM_INVERSE_SCALE_B] = MAY_READ("factor_b", inverse_scales_b),
        [GEMM_BIAS] = MAY_READ("bias", a_row_of_c), [GEMM_TENSOR_SCALE_A] = MAY_READ("tensor_scale_a", one),
        [GEMM_TENSOR_SCALE_B] = MAY_READ("tensor_scale_b", one), [GEMM_ADDEND] = MAY_READ("addend", of_c)}},
    [OP_ROPE_FORWARD] = {COMPUTES(attention, MEMORY, MEMORY), {
        [ROPE_TABLE] = READ("table", rotations), [ROPE_PACKED] = READ("packed", packed),
        [ROPE_QUERY] = WRITE("query", queries), [ROPE_KEY_VALUE] = WRITE("key_value", own_key_values),
        [ROPE_SCALE] = MAY_READ("scale", head_scales)}},
    [OP_ROPE_BACKWARD] = {COMPUTES(attention, MEMORY, MEMORY), {
        [ROPE_TABLE] = READ("table", rotations), [ROPE_PACKED] = WRITE("packed_gradient", packed),
        [ROPE_QUERY] = READ("query_gradient", queries), [ROPE_KEY_VALUE] = READ("key_value_gradient", own_key_values),
        [ROPE_SCALE] = MAY_READ("scale", head_scales), [ROPE_PACKED_IN] = MAY_READ("packed", packed),
        [ROPE_SCALE_GRADIENT] = MAY_ADD("scale_gradient", head_scales)}},
    [OP_ATTENTION_FORWARD] = {COMPUTES(attention, ATTENTION_FORWARD, ATTENTION), {
        [ATTENTION_QUERY] = READ("query", queries), [ATTENTION_KEY_VALUE] = READ("key_value", key_values),
        [ATTENTION_OUT] = WRITE("out", outs), [ATTENTION_STATISTICS] = WRITE("statistics", one_a_query)}},
    [OP_ATTENTION_BACKWARD] = {COMPUTES(attention, ATTENTION_BACKWARD, ATTENTION), {
        [ATTENTION_GRADIENT_OUT] = READ("out_gradient", outs),
        [ATTENTION_GRADIENT_QUERY_IN] = READ("query", queries),
        [ATTENTION_GRADIENT_KEY_VALUE_IN] = READ("key_value", key_values),
        [ATTENTION_GRADIENT_OUT_IN] = READ("out", outs),
        [ATTENTION_GRADIENT_STATISTICS] = READ("statistics", one_a_query),
        [ATTENTION_GRADIENT_QUERY] = SLOT("query_gradient", ADD_QUERY, ALWAYS, queries),
        [ATTENTION_GRADIENT_KEY_VALUE] = ADD("key_value_gradient", key_values)}},
    [OP_ATTENTION_MERGE] = {COMPUTES(attention, MEMORY, MEMORY), {
        [ATTENTION_MERGE_OUT] = UPDATE("out", outs),
        [ATTENTION_MERGE_STATISTICS] = UPDATE("statistics", one_a_query),
        [ATTENTION_MERGE_PART] = READ("part", outs),
        [ATTENTION_MERGE_PART_STATISTICS] = READ("part_statistics", one_a_query)}},
    [OP_SINK_FORWARD] = {COMPUTES(attention, MEMORY, MEMORY), {
        [SINK_SINKS] = READ("sinks", one_a_head), [SINK_OUT] = UPDATE("out", queries),
        [SINK_STATISTICS] = UPDATE("statistics", one_a_query)}},
    [OP_SINK_BACKWARD] = {COMPUTES(attention, MEMORY, MEMORY), {
        [SINK_GRADIENT_SINKS_IN] = READ("sinks", one_a_head), [SINK_GRADIENT_OUT] = READ("out_gradient", queries),
        [SINK_GRADIENT_OUT_IN] = READ("out", queries), [SINK_GRADIENT_STATISTICS] = READ("statistics", one_a_query),
        [SINK_GRADIENT_SINKS] = ADD("sinks_gradient", one_a_head)}},
    [OP_SPLIT] = {COMPUTES(rows, MEMORY, MEMORY), {
        [SPLIT_IN] = READ("in", matrix), [SPLIT_FIRST] = WRITE("first", first_part),
        [SPLIT_REST] = WRITE("rest", other_part)}},
    [OP_JOIN] = {COMPUTES(rows, MEMORY, MEMORY), {
        [JOIN_FIRST] = READ("first", first_part), [JOIN_REST] = READ("rest", other_part),
        [JOIN_OUT] = WRITE("out", matrix)}},
    [OP_REGROUP] = {COMPUTES(rows, MEMORY, MEMORY), {
        [REGROUP_IN] = READ("in", matrix), [REGROUP_OUT] = WRITE("out", matrix)}},
    [OP_LATENT_ROPE_FORWARD] = {COMPUTES(attention, MEMORY, MEMORY), {
        [LATENT_ROPE_TABLE] = READ("table", rotations), [LATENT_ROPE_QUERY_UP] = READ("query_up", queries),
        [LATENT_ROPE_KEY_VALUE_UP] = READ("key_value_up", key_values_up),
        [LATENT_ROPE_SHARED_KEY] = READ("shared_key", shared_key), [LATENT_ROPE_QUERY] = WRITE("query", queries),
        [LATENT_ROPE_KEY_VALUE] = WRITE("key_value", own_key_values)}},
    [OP_LATENT_ROPE_BACKWARD] = {COMPUTES(attention, MEMORY, MEMORY), {
        [LATENT_ROPE_TABLE] = READ("table", rotations), [LATENT_ROPE_QUERY_UP] = WRITE("query_up_gradient", queries),
        [LATENT_ROPE_KEY_VALUE_UP] = WRITE("key_value_up_gradient", key_values_up),
        [LATENT_ROPE_SHARED_KEY] = WRITE("shared_key_gradient", shared_key),
        [LATENT_ROPE_QUERY] = READ("query_gradient", queries),
        [LATENT_ROPE_KEY_VALUE] = READ("key_value_gradient", own_key_values)}},
    [OP_CONVOLUTION_FORWARD] = {COMPUTES(mamba, MEMORY, MEMORY), {
        [CONVOLUTION_PACKED] = COLUMNS("packed", READ, convolved), [CONVOLUTION_WEIGHT] = READ("weight", filters),
        [CONVOLUTION_BIAS] = READ("bias", channel), [CONVOLUTION_OUT] = WRITE("out", convolved)}},
    [OP_CONVOLUTION_BACKWARD] = {COMPUTES(mamba, MEMORY, MEMORY), {
        [CONVOLUTION_GRADIENT_OUT] = READ("out_gradient", convolved),
        [CONVOLUTION_GRADIENT_PACKED_IN] = COLUMNS("packed", READ, convolved),
        [CONVOLUTION_GRADIENT_WEIGHT_IN] = READ("weight", filters),
        [CONVOLUTION_GRADIENT_BIAS_IN] = READ("bias", channel),
        [CONVOLUTION_GRADIENT_PACKED] = COLUMNS("packed_gradient", UPDATE, convolved),
        [CONVOLUTION_GRADIENT_WEIGHT] = ADD("weight_gradient", filters),
        [CONVOLUTION_GRADIENT_BIAS] = ADD("bias_gradient", channel)}},
    [OP_SCAN_FORWARD] = {COMPUTES(mamba, SCAN_FORWARD, MEMORY), {
        [SCAN_CONVOLVED] = READ("convolved", convolved), [SCAN_PACKED] = COLUMNS("packed", READ, time_steps),
        [SCAN_STEP_BIAS] = READ("step_bias", scanned_head), [SCAN_DECAY] = READ("decay", scanned_head),
        [SCAN_SKIP] = READ("skip", scanned_head), [SCAN_OUT] = WRITE("out", inner)}},
    [OP_SCAN_BACKWARD] = {COMPUTES(mamba, SCAN_BACKWARD, MEMORY), {
        [SCAN_GRADIENT_OUT] = READ("out_gradient", inner),
        [SCAN_GRADIENT_CONVOLVED_IN] = READ("convolved", convolved),
        [SCAN_GRADIENT_PACKED_IN] = COLUMNS("packed", READ, time_steps),
        [SCAN_GRADIENT_STEP_BIAS_IN] = READ("step_bias", scanned_head),
        [SCAN_GRADIENT_DECAY_IN] = READ("decay", scanned_head), [SCAN_GRADIENT_SKIP_IN] = READ("skip", scanned_head),
        [SCAN_GRADIENT_CONVOLVED] = WRITE("convolved_gradient", convolved),
        [SCAN_GRADIENT_PACKED] = COLUMNS("packed_gradient", UPDATE, time_steps),
        [SCAN_GRADIENT_STEP_BIAS] = ADD("step_bias_gradient", scanned_head),
        [SCAN_GRADIENT_DECAY] = ADD("decay_gradient", scanned_head),
        [SCAN_GRADIENT_SKIP] = ADD("skip_gradient", scanned_head)}},
    [OP_GATED_NORM_FORWARD] = {COMPUTES(mamba, MEMORY, MEMORY), {
        [GATED_NORM_IN] = READ("in", inner), [GATED_NORM_PACKED] = COLUMNS("packed", READ, inner),
        [GATED_NORM_WEIGHT] = READ("weight", inner_column), [GATED_NORM_OUT] = WRITE("out", inner),
        [GATED_NORM_STATISTICS] = WRITE("statistics", group_scales)}},
    [OP_GATED_NORM_BACKWARD] = {COMPUTES(mamba, MEMORY, MEMORY), {
        [GATED_NORM_GRADIENT_OUT] = READ("out_gradient", inner), [GATED_NORM_GRADIENT_IN_IN] = READ("in", inner),
        [GATED_NORM_GRADIENT_PACKED_IN] = COLUMNS("packed", READ, inner),
        [GATED_NORM_GRADIENT_WEIGHT_IN] = READ("weight", inner_column),
        [GATED_NORM_GRADIENT_STATISTICS] = READ("statistics", group_scales),
        [GATED_NORM_GRADIENT_IN] = WRITE("in_gradient", inner),
        [GATED_NORM_GRADIENT_PACKED] = WRITE("packed_gradient", projected),
        [GATED_NORM_GRADIENT_WEIGHT] = ADD("weight_gradient", inner_column)}},
    [OP_ACTIVATION_FORWARD] = {FUSES(rows, MEMORY, MEMORY, ACTIVATION_OUT), {
        [ACTIVATION_IN] = READ_TWICE(TO_REPEAT, "in", before_activation), [ACTIVATION_OUT] = WRITE("out", matrix)}},
    [OP_ACTIVATION_BACKWARD] = {FUSES(rows, MEMORY, MEMORY, ACTIVATION_GRADIENT_IN), {
        [ACTIVATION_GRADIENT_OUT] = READ_TWICE(TO_REPEAT, "out_gradient", matrix),
        [ACTIVATION_GRADIENT_IN_IN] = READ_TWICE(TO_REPEAT, "in", before_activation),
        [ACTIVATION_GRADIENT_IN] = WRITE("in_gradient", before_activation)}},
    [OP_ROUTE_FORWARD] = {COMPUTES(routing, ROUTE, MEMORY), {
        [ROUTE_LOGITS] = READ("logits", all_logits), [ROUTE_CHOICES] = WRITE("choices", choices),
        [ROUTE_SLOTS] = WRITE("slots", choices), [ROUTE_GATES] = WRITE("gates", choices),
        [ROUTE_SOURCES] = WRITE("sources", slots), [ROUTE_COUNTS] = WRITE("counts", counts),
        [ROUTE_STATISTICS] = MAY_ADD("statistics", load), [ROUTE_TOKEN_COUNTS] = MAY_WRITE("token_counts", one_an_expert),
        [ROUTE_BIAS] = MAY_READ("bias", one_an_expert)}},
    [OP_ROUTE_BACKWARD] = {COMPUTES(routing, ROUTE, MEMORY), {
        [ROUTE_GRADIENT_LOGITS_IN] = READ("logits", all_logits), [ROUTE_GRADIENT_CHOICES] = INDEX("choices", choices),
        [ROUTE_GRADIENT_GATES_IN] = READ("gates", choices), [ROUTE_GRADIENT_COUNTS] = READ("counts", counts),
        [ROUTE_GRADIENT_GATES] = READ("gates_gradient", choices),
        [ROUTE_GRADIENT_LOGITS] = WRITE("logits_gradient", own_logits)}},
    [OP_READ_TOKEN_COUNTS] = {COMPUTES(routing, MEMORY, MEMORY), {
        [READ_TOKEN_COUNTS_OWN] = HOLDS(COUNTS, "own", one_an_expert, ALWAYS), [READ_TOKEN_COUNTS_RECEIVED] = HOLDS(COUNTS, "received", one_an_expert, NEVER)}},
    [OP_DISPATCH] = {COMPUTES(routing, MEMORY, MEMORY), {
        [DISPATCH_IN] = READ("in", stream), [DISPATCH_SOURCES] = PLACES("sources", slots),
        [DISPATCH_OUT] = WRITE("out", in_slots), [DISPATCH_GATES] = MAY_READ("gates", choices)}},
    [OP_COMBINE] = {COMPUTES(routing, MEMORY, MEMORY), {
        [COMBINE_IN] = READ("in", in_slots), [COMBINE_SLOTS] = PLACES("slots", choices),
        [COMBINE_GATES] = MAY_READ("gates", choices), [COMBINE_OUT] = ADD("out", stream)}},
    [OP_COMBINE_BACKWARD] = {COMPUTES(routing, MEMORY, MEMORY), {
        [COMBINE_GRADIENT_OUT] = READ("out_gradient", stream), [COMBINE_GRADIENT_IN_IN] = READ("in", in_slots),
        [COMBINE_GRADIENT_SLOTS] = PLACES("slots", choices), [COMBINE_GRADIENT_SOURCES] = PLACES("sources", slots),
        [COMBINE_GRADIENT_GATES_IN] = READ("gates", choices), [COMBINE_GRADIENT_IN] = MAY_WRITE("in_gradient", in_slots),
        [COMBINE_GRADIENT_GATES] = WRITE("gates_gradient", choices)}},
    [OP_BALANCE] = {COMPUTES(rows, MEMORY, MEMORY), {
        [BALANCE_LOADS] = READ("loads", loads), [BALANCE_BIAS] = UPDATE("bias", matrix),
        [BALANCE_SCALE] = READ("scale", one)}},
    [OP_LOGIT_STATISTICS] = {COMPUTES(rows, MEMORY, MEMORY), {
        [LOGIT_STATISTICS_LOGITS] = READ("logits", matrix), [LOGIT_STATISTICS_TARGETS] = INDEX("targets", a_row),
        [LOGIT_STATISTICS_OUT] = WRITE("out", three_a_row)}},
    [OP_CROSS_ENTROPY] = {COMPUTES(rows, MEMORY, MEMORY), {
        [CROSS_ENTROPY_LOGITS] = UPDATE("logits", matrix), [CROSS_ENTROPY_TARGETS] = INDEX("targets", a_row),
        [CROSS_ENTROPY_LOSS] = WRITE("loss", a_row),
        [CROSS_ENTROPY_STATISTICS] = MAY_READ("statistics", three_a_row_of_parts)}},
    [OP_LOSS_SUM] = {COMPUTES(rows, MEMORY, MEMORY), {
        [LOSS_SUM_IN] = READ("in", a_row), [LOSS_SUM_OUT] = ADD("out", one)}},
    [OP_COLUMN_SUM] = {COMPUTES(rows, MEMORY, MEMORY), {
        [COLUMN_SUM_IN] = READ("in", matrix), [COLUMN_SUM_OUT] = ADD("out", a_column)}},
    [OP_CAST] = {COMPUTES(elements, MEMORY, CONVERSION), {[CAST_IN] = READ("in", all), [CAST_OUT] = ADD("out", all)}},
    [OP_QUANTIZE] = {COMPUTES(quantize, CAST, CAST), {
        [QUANTIZE_IN] = READ_TWICE(TO_SCALE, "in", copied), [QUANTIZE_OUT] = MAY_WRITE("out", copied),
        [QUANTIZE_TRANSPOSED] = MAY_WRITE("transposed", copied),
        [QUANTIZE_INVERSE_SCALE] = SLOT("factor", WRITE, OWN_SCALE, factors),
        [QUANTIZE_TRANSPOSED_INVERSE_SCALE] = MAY_WRITE("transposed_factor", transposed_inverse_scales),
        [QUANTIZE_SCALE] = MAY_READ("scale", one), [QUANTIZE_AMAX] = MAY_UPDATE("amax", one),
        [QUANTIZE_TENSOR_SCALE] = MAY_WRITE("tensor_scale", one),
        [QUANTIZE_TRANSPOSED_TENSOR_SCALE] = MAY_WRITE("transposed_tensor_scale", one),
        [QUANTIZE_HYPER] = MAY_READ("hyper", hyper)}},
    [OP_TRANSPOSE] = {COMPUTES(rows, CAST, CAST), {
        [TRANSPOSE_IN] = READ("in", matrix), [TRANSPOSE_OUT] = WRITE("out", matrix)}},
    [OP_MAGNITUDE] = {COMPUTES(elements, CAST, MEMORY), {
        [MAGNITUDE_IN] = READ("in", all), [MAGNITUDE_AMAX] = UPDATE("amax", one)}},
    [OP_RESCALE] = {COMPUTES(rescale, MEMORY, MEMORY), {
        [RESCALE_AMAX] = UPDATE("amax", scales), [RESCALE_HISTORY] = MAY_UPDATE("history", history),
        [RESCALE_SCALE] = UPDATE("scale", scales), [RESCALE_FACTOR] = WRITE("factor", scales)}},
    [OP_CLEAR] = {COMPUTES(elements, MEMORY, MEMORY), {[CLEAR_OUT] = WRITE("out", all)}},
    [OP_SQUARE_SUM] = {COMPUTES(elements, MEMORY, MEMORY), {
        [SQUARE_SUM_IN] = READ("in", all), [SQUARE_SUM_OUT] = ADD("out", one)}},
    [OP_CLIP] = {COMPUTES(elements, MEMORY, MEMORY), {
        [CLIP_PARTIALS] = READ("partials", all), [CLIP_NORM] = WRITE("norm", one), [CLIP_SCALE] = WRITE("scale", one)}},
    [OP_ADAMW] = {COMPUTES(elements, MEMORY, MEMORY), {
        [ADAMW_HYPER] = READ("hyper", hyper), [ADAMW_SCALE] = READ("scale", one),
        [ADAMW_GRADIENT] = READ("gradient", all), [ADAMW_MASTER] = MAY_UPDATE("master", all),
        [ADAMW_FIRST] = UPDATE("first", all), [ADAMW_SECOND] = UPDATE("second", all),
        [ADAMW_WEIGHT] = SLOT("weight", UNLESS_MASTER, NO_MASTER, all), [ADAMW_AMAX] = MAY_UPDATE("amax", one)}},
    [OP_MOMENTUM] = {COMPUTES(elements, MEMORY, MEMORY), {
        [MOMENTUM_SCALE] = READ("scale", one), [MOMENTUM_GRADIENT] = READ("gradient", all),
        [MOMENTUM_FIRST] = UPDATE("first", all), [MOMENTUM_OUT] = WRITE("out", all)}},
    [OP_NORMALIZE] = {COMPUTES(elements, MEMORY, MEMORY), {
        [NORMALIZE_IN] = READ("in", all), [NORMALIZE_SUM] = READ("sum", one), [NORMALIZE_OUT] = WRITE("out", all)}},
    [OP_MUON] = {COMPUTES(elements, MEMORY, MEMORY), {
        [MUON_HYPER] = READ("hyper", hyper), [MUON_SCALE] = READ("scale", one), [MUON_UPDATE] = READ("update", all),
        [MUON_MASTER] = MAY_UPDATE("master", all),
        [MUON_WEIGHT] = SLOT("weight", UNLESS_MASTER, NO_MASTER, all)}},
    [OP_ALL_REDUCE] = {MOVES(communication, TREE, NONE), {[COMMUNICATION_OUT] = UPDATE("out", whole)}},
    [OP_ALL_REDUCE_MAXIMUM] = {MOVES(communication, TREE, NONE), {[COMMUNICATION_OUT] = UPDATE("out", whole)}},
    [OP_ALL_GATHER] = {MOVES(communication, RING, NONE), {
        [COMMUNICATION_IN] = READ("in", share), [COMMUNICATION_OUT] = WRITE("out", whole)}},
    [OP_REDUCE_SCATTER] = {MOVES(communication, RING, NONE), {
        [COMMUNICATION_IN] = READ("in", whole), [COMMUNICATION_OUT] = WRITE("out", share)}},
    [OP_ALL_TO_ALL] = {MOVES(communication, ALL_TO_ALL, NONE), {
        [COMMUNICATION_IN] = READ("in", whole), [COMMUNICATION_OUT] = WRITE("out", whole)}},
    [OP_ROTATE] = {MOVES(communication, HOP, PLACES), {
        [COMMUNICATION_IN] = READ("in", whole), [COMMUNICATION_OUT] = WRITE("out", whole)}},
    [OP_SEND] = {MOVES(link, HOP, END), {[COMMUNICATION_IN] = READ("in", whole)}},
    [OP_RECEIVE] = {MOVES(link, HOP, END), {[COMMUNICATION_OUT] = WRITE("out", whole)}},
    [OP_BROADCAST] = {MOVES(communication, RING, ROOT), {[COMMUNICATION_OUT] = UPDATE("out", whole)}},
};
// clang-format on

// SPDX-License-Identifier: MIT
// Names op kinds, streams and phases, and counts the FLOPs of an op.
#include "gswbench/op_table.h"

const char *op_name(enum op_kind kind)
{
#define NAME(kind, name) [kind]              = #name,
    static const char *const names[OP_COUNT] = {OP_COMPUTE_KINDS(NAME) OP_COMMUNICATION_KINDS(NAME)};
    return names[kind];
}

const char *op_stream_name(enum stream stream)
{
    static const char *const names[STREAM_COUNT] = {
        [STREAM_COMPUTE]          = "compute",
        [STREAM_WEIGHT_GATHER]    = "weight-gather",
        [STREAM_GRADIENT_REDUCE]  = "gradient-reduce",
        [STREAM_REPLICA_REDUCE]   = "replica-reduce",
        [STREAM_TENSOR]           = "tensor",
        [STREAM_CONTEXT]          = "context",
        [STREAM_EXPERT]           = "expert",
        [STREAM_PIPELINE_SEND]    = "pipeline-send",
        [STREAM_PIPELINE_RECEIVE] = "pipeline-receive",
    };
    return names[stream];
}

bool op_is_optimizer(enum op_kind kind)
{
    return kind == OP_ADAMW || kind == OP_MOMENTUM || kind == OP_MUON;
}

bool op_stream_is_pipeline(int stream)
{
    return stream == STREAM_PIPELINE_SEND || stream == STREAM_PIPELINE_RECEIVE;
}

const char *op_phase_name(enum phase phase)
{
    static const char *const names[PHASE_COUNT] = {
        [PHASE_FORWARD] = "forward", [PHASE_RECOMPUTE] = "recompute", [PHASE_BACKWARD] = "backward",
        [PHASE_REDUCE] = "reduce",   [PHASE_OPTIMIZER] = "optimizer",
    };
    return names[phase];
}

bool op_is_communication(enum op_kind kind)
{
    return (int)kind >= (int)OP_COMPUTE_COUNT && kind < OP_COUNT;
}

bool op_is_link(enum op_kind kind)
{
    return op_table[kind].peer == OP_PEER_END;
}

// Returns the number of (query, key) pairs that the mask lets through. With a window, the first queries attend to fewer
// keys, because their window begins before the first key.
static double seen_pairs(const struct attention_shape *shape)
{
    double sequence = (double)shape->sequence, window = (double)shape->window;
    double pairs = shape->causal ? sequence * (sequence + 1) / 2 : sequence * sequence;
    pairs += sequence * (double)shape->earlier;
    if (shape->window == 0 || shape->window >= shape->earlier + shape->sequence) {
        return pairs;
    }
    double missing = shape->earlier < shape->window ? window - (double)shape->earlier : 0;
    return sequence * window - missing * (missing - 1) / 2;
}

// multiply_adds: number of multiply-adds per unmasked pair of a query and a key, for one head.
static double attention_flops(const struct attention_shape *shape, int64_t multiply_adds)
{
    return 2.0 * (double)shape->batch * (double)shape->heads * (double)multiply_adds * seen_pairs(shape);
}

// Returns the FLOPs of a Mamba-2 scan in chunks of Q positions. It has four GEMMs: the scores C B^T of each group,
// the product of scores and x, the states of the chunks, and the outputs from the states. The first two compute (Q +
// 1) / 2 causal pairs per position, the last two head_dim x state multiply-adds per head and position. The backward
// pass computes scores and states again, and two gradients for each of the four GEMMs.
static double scan_flops(const struct mamba_shape *shape, bool is_backward)
{
    double positions = (double)(shape->batch * shape->sequence), inner = (double)mamba_inner(shape);
    double state = (double)shape->state, groups = (double)shape->groups;
    double chunk  = (double)(shape->chunk < shape->sequence ? shape->chunk : shape->sequence);
    double pairs  = (chunk + 1.0) / 2.0;
    double scores = pairs * groups * state, mixed = pairs * inner, states = inner * state;
    return 2.0 * positions * (is_backward ? 3.0 * scores + 2.0 * mixed + 5.0 * states : scores + mixed + 2.0 * states);
}

// Attention has these multiply-adds per pair: forward q k^T (head_dim) and p v (value_dim). Backward recomputes q k^T
// and adds the gradients of q and k (head_dim each), and of p and v (value_dim each).
double op_flops(const struct op *op)
{
    const struct gemm_shape      *gemm      = &op->shape.gemm;
    const struct attention_shape *attention = &op->shape.attention;
    switch ((enum op_cost)op_table[op->kind].cost) {
    case OP_COST_GEMM:
        return 2.0 * (double)gemm->m * (double)gemm->n * (double)gemm->k;
    case OP_COST_ATTENTION_FORWARD:
        return attention_flops(attention, attention->head_dim + attention_value_dim(attention));
    case OP_COST_ATTENTION_BACKWARD:
        return attention_flops(attention, 3 * attention->head_dim + 2 * attention_value_dim(attention));
    case OP_COST_SCAN_FORWARD:
    case OP_COST_SCAN_BACKWARD:
        return scan_flops(&op->shape.mamba, op_table[op->kind].cost == OP_COST_SCAN_BACKWARD);
    case OP_COST_MEMORY:
    case OP_COST_CAST:
    case OP_COST_ROUTE:
    case OP_COST_NONE:
    case OP_COST_COMMUNICATION:
        break;
    }
    return 0;
}

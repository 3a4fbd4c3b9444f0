// SPDX-License-Identifier: MIT
// Names of the kinds of work, their lanes and phases, and the FLOPs that an op executes.
#include "gswbench/op.h"

const char *op_name(enum op_kind kind)
{
    static const char *const names[OP_COUNT] = {
        [OP_EMBEDDING_FORWARD]   = "embedding_forward",
        [OP_EMBEDDING_BACKWARD]  = "embedding_backward",
        [OP_NORM_FORWARD]        = "norm_forward",
        [OP_NORM_BACKWARD]       = "norm_backward",
        [OP_GEMM]                = "gemm",
        [OP_ROPE_FORWARD]        = "rope_forward",
        [OP_ROPE_BACKWARD]       = "rope_backward",
        [OP_ATTENTION_FORWARD]   = "attention_forward",
        [OP_ATTENTION_BACKWARD]  = "attention_backward",
        [OP_ATTENTION_MERGE]     = "attention_merge",
        [OP_ACTIVATION_FORWARD]  = "activation_forward",
        [OP_ACTIVATION_BACKWARD] = "activation_backward",
        [OP_ROUTE_FORWARD]       = "route_forward",
        [OP_ROUTE_BACKWARD]      = "route_backward",
        [OP_DISPATCH]            = "dispatch",
        [OP_COMBINE]             = "combine",
        [OP_COMBINE_BACKWARD]    = "combine_backward",
        [OP_LOGIT_STATISTICS]    = "logit_statistics",
        [OP_CROSS_ENTROPY]       = "cross_entropy",
        [OP_LOSS_SUM]            = "loss_sum",
        [OP_CAST]                = "cast",
        [OP_QUANTIZE]            = "quantize",
        [OP_TRANSPOSE]           = "transpose",
        [OP_MAGNITUDE]           = "magnitude",
        [OP_RESCALE]             = "rescale",
        [OP_CLEAR]               = "clear",
        [OP_SQUARE_SUM]          = "square_sum",
        [OP_CLIP]                = "clip",
        [OP_ADAMW]               = "adamw",
        [OP_ALL_REDUCE]          = "all_reduce",
        [OP_ALL_REDUCE_MAXIMUM]  = "all_reduce_maximum",
        [OP_ALL_GATHER]          = "all_gather",
        [OP_REDUCE_SCATTER]      = "reduce_scatter",
        [OP_ALL_TO_ALL]          = "all_to_all",
        [OP_ROTATE]              = "rotate",
        [OP_SEND]                = "send",
        [OP_RECEIVE]             = "receive",
        [OP_BROADCAST]           = "broadcast",
    };
    return names[kind];
}

const char *op_lane_name(enum lane lane)
{
    static const char *const names[LANE_COUNT] = {
        [LANE_COMPUTE]          = "compute",
        [LANE_PARAMETER_GATHER] = "parameter-gather",
        [LANE_GRADIENT_REDUCE]  = "gradient-reduce",
        [LANE_TENSOR]           = "tensor",
        [LANE_CONTEXT]          = "context",
        [LANE_EXPERT]           = "expert",
        [LANE_PIPELINE_SEND]    = "pipeline-send",
        [LANE_PIPELINE_RECEIVE] = "pipeline-receive",
    };
    return names[lane];
}

const char *op_phase_name(enum phase phase)
{
    static const char *const names[PHASE_COUNT] = {
        [PHASE_FORWARD] = "forward", [PHASE_RECOMPUTE] = "recompute", [PHASE_BACKWARD] = "backward",
        [PHASE_REDUCE] = "reduce",   [PHASE_OPTIMIZER] = "optimizer",
    };
    return names[phase];
}

bool op_is_transfer(enum op_kind kind)
{
    return kind >= OP_ALL_REDUCE && kind < OP_COUNT;
}

// Two products of head_dim multiply-adds for each pair of a query and a key that it sees.
static double attention_flops(const struct attention_shape *shape)
{
    double sequence = (double)shape->sequence;
    double pairs    = shape->causal ? sequence * (sequence + 1) / 2 : sequence * sequence;
    pairs += sequence * (double)shape->earlier;
    return 4.0 * (double)shape->batch * (double)shape->heads * (double)shape->head_dim * pairs;
}

double op_flops(const struct op *op)
{
    switch (op->kind) {
    case OP_GEMM:
        return 2.0 * (double)op->shape.gemm.m * (double)op->shape.gemm.n * (double)op->shape.gemm.k;
    case OP_ATTENTION_FORWARD:
        return attention_flops(&op->shape.attention);
    case OP_ATTENTION_BACKWARD:
        return 2.5 * attention_flops(&op->shape.attention);
    default:
        return 0;
    }
}

// SPDX-License-Identifier: MIT
// Attention over ranks of cp as PyTorch's context parallelism computes it, which gathers keys and values but attends to
// them rank by rank (torch/distributed/tensor/experimental/_attention.py, end of 2024 to 2025).
#include "gswbench/predict.h"
#include "internal.h"

// Of each element of the queries, for each part after the first: copies of key and value to be sent (8), the part in
// fp32 (6), its difference to the sum (12), the product with its share (8), the new sum (12).
static const double forward_bytes = 46.0;
// And for each part of the backward pass: copies of key and value (8), the sum of the queries' gradient (10), those of
// half of the keys' and values' and their copies (26), copies of these to be sent (16).
static const double backward_bytes = 60.0;

static double ranks_of(const struct plan *plan)
{
    return (double)plan->mesh.size[AXIS_CP];
}

// A plan that passes keys and values round has these parts as ops, and one that exchanges heads has none.
static bool is_by_parts(const struct software_config *software, const struct plan *plan)
{
    return software != NULL && software->context_parts && plan->mesh.size[AXIS_CP] > 1 &&
           plan->context == CONTEXT_GATHER;
}

double predict_part_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    const struct attention_shape *shape    = &op->shape.attention;
    if (!is_by_parts(machine->software, plan) ||
        (op->kind != OP_ATTENTION_FORWARD && op->kind != OP_ATTENTION_BACKWARD)) {
        return 0.0;
    }
    double queries = (double)shape->batch * (double)shape->sequence * (double)shape->heads * (double)shape->head_dim;
    double bytes =
        op->kind == OP_ATTENTION_FORWARD ? (ranks_of(plan) - 1.0) * forward_bytes : ranks_of(plan) * backward_bytes;
    return queries * bytes / (hardware->memory_efficiency.value * hardware->memory_bandwidth.value);
}

// Models with fewer heads of keys and values repeat these for each head of queries before attention. Gradients go round
// all ranks in fp32 and back to their own, where a reduction would leave out one step.
double predict_part_bytes(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    if (op->lane != LANE_CONTEXT || !is_by_parts(software, plan)) {
        return 1.0;
    }
    double heads = (double)plan->model.heads / (double)plan->model.kv_heads;
    if (op->kind != OP_REDUCE_SCATTER) {
        return heads;
    }
    const struct tensor *gradient = &plan->tensors[op->operand[TRANSFER_OUT]];
    double               width    = (double)format_table[FORMAT_F32].bits / (double)format_table[gradient->format].bits;
    return heads * width * ranks_of(plan) / (ranks_of(plan) - 1.0);
}

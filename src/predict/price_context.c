// SPDX-License-Identifier: MIT
// Cost of attention under PyTorch's context parallelism, which gathers K and V but computes attention for the keys of
// one rank after another (torch/distributed/tensor/experimental/_attention.py, end of 2024 to 2025).
#include "gswbench/predict.h"
#include "internal.h"

// Forward bytes per element of Q and part after the first: send copies of K and V (8), the part in fp32 (6), its
// difference from the sum (12), that difference times its weight (8), the new sum (12).
static const double forward_bytes = 46.0;
// Backward bytes per element of Q and part: copies of K and V (8), the sum of dQ (10), half of dK and dV with their
// copies (26), send copies of these (16).
static const double backward_bytes = 60.0;

static double ranks_of(const struct plan *plan)
{
    return (double)plan->mesh.size[AXIS_CP];
}

// Ring attention has these parts as ops in the plan, and Ulysses has none.
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

// With GQA, PyTorch expands K and V to the number of query heads before attention. Gradients make a full round of the
// ring in fp32; a reduce-scatter needs one step less.
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

// SPDX-License-Identifier: MIT
// Cost of ops in the modelled framework, relative to the plan: [software].
#include "gswbench/op_operands.h"
#include "gswbench/op_table.h"
#include "internal.h"

static bool moves_rows(const struct op *op)
{
    return op->kind == OP_DISPATCH || op->kind == OP_COMBINE || op->kind == OP_COMBINE_BACKWARD;
}

// Factor on the cost of the op.
double predict_program_share(const struct software_config *software, const struct op *op)
{
    if (software == NULL) {
        return 1.0;
    }
    bool is_loss = op->kind == OP_CROSS_ENTROPY || op->kind == OP_LOGIT_STATISTICS;
    switch ((enum op_price)op_table[op->kind].price) {
    case OP_PRICE_CAST:
        return software->cast_bytes.value;
    case OP_PRICE_MEMORY:
    case OP_PRICE_ROUTE:
        return op->tag.phase == PHASE_OPTIMIZER ? software->optimizer_bytes.value
               : is_loss                        ? software->loss_bytes.value
               : moves_rows(op)                 ? software->expert_bytes.value
                                                : software->memory_bytes.value;
    case OP_PRICE_GEMM:
        return 1.0 / software->gemm_share.value;
    case OP_PRICE_ATTENTION_FORWARD:
    case OP_PRICE_ATTENTION_BACKWARD:
    case OP_PRICE_NONE:
    case OP_PRICE_TRANSFER:
        break;
    }
    return 1.0;
}

// Minimum seconds of a loss kernel that is bound by its math per logit, on any device.
double predict_program_least(const struct software_config *software, const struct op *op)
{
    return software == NULL || op->kind != OP_CROSS_ENTROPY || software->loss_rate.value == 0.0
               ? 0.0
               : (double)op_operand_elements(op, CROSS_ENTROPY_LOGITS) / software->loss_rate.value;
}

// Seconds to read and write the rows of a rank's experts, after the gather over etp.
static double copy_rows_seconds(const struct hardware_config *hardware, const struct plan *plan,
                                const struct routing_shape *shape)
{
    int64_t rows   = shape->quantum == 0 ? routing_slots(shape) : shape->rows * shape->top_k;
    int64_t ranks  = plan->mesh.etp > 1 ? plan->mesh.etp : 1;
    double  copied = (double)format_bytes(FORMAT_BF16, rows * ranks * shape->columns);
    return 2.0 * copied / (hardware->memory_efficiency.value * hardware->memory_bandwidth.value);
}

// Bytes per element of expert biases in Megatron-Core (transformer/moe/experts.py, _apply_bias). Forward: scale the
// bias by the gates of its rows, add it, concatenate the experts, cast the output (4 + 10 + 8 + 6). Backward: cast the
// gradient, cast and concatenate the row gradients (16), reduce their products with gates and bias (24).
static double bias_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const double forward = 28.0, backward = 40.0, copied = 4.0;
    if (!machine->software->expert_biases || !plan->model.mlp_bias) {
        return 0.0;
    }
    return (op->kind == OP_ROUTE_FORWARD ? forward : backward) / copied *
           copy_rows_seconds(machine->hardware, plan, &op->shape.routing);
}

// Elements of Q and K.
static double rotated_elements(const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    return (double)(shape->batch * shape->sequence * (shape->heads + shape->kv_heads) * shape->head_dim);
}

// Bytes per element of the ops that Megatron-Core does not fuse for GPT-OSS.
//
// Activation (fusions/fused_bias_geglu.py). Forward: clamp both halves of the input and concatenate them (2 + 2,
// twice). Backward: mask the gradients by the input (6), concatenate them (4).
//
// RoPE (models/common/embeddings/rope_utils.py), unfused because the fused kernel has no YaRN scaling. Forward:
// multiply by the cosine (4), negate and concatenate the halves (6), multiply by the sine (4), add (6), copy (4).
// Backward: both products (8), the halves (6), the sum (6), slice gradients (14). The plan already counts 4 in each
// pass.
static double eager_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    if (!machine->software->expert_biases || !plan->model.mlp_bias || plan->model.experts == 0) {
        return 0.0;
    }
    double bytes = op->kind == OP_ACTIVATION_FORWARD    ? 8.0 * (double)op_operand_elements(op, ACTIVATION_IN)
                   : op->kind == OP_ACTIVATION_BACKWARD ? 10.0 * (double)op_operand_elements(op, ACTIVATION_GRADIENT_IN)
                   : op->kind == OP_ROPE_FORWARD        ? 20.0 * rotated_elements(op)
                   : op->kind == OP_ROPE_BACKWARD       ? 30.0 * rotated_elements(op)
                                                        : 0.0;
    return bytes / (machine->hardware->memory_efficiency.value * machine->hardware->memory_bandwidth.value);
}

// Extra time for the experts of a layer. The GPU waits for the host once per expert. Grouped GEMMs are one launch, but
// quantization to FP8 computes a scale per expert. Without grouped GEMMs, rows are sorted by expert and concatenated
// again.
static double expert_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct software_config *software = machine->software;
    if (op_table[op->kind].price != OP_PRICE_ROUTE) {
        return 0.0;
    }
    const struct routing_shape *shape  = &op->shape.routing;
    double                      here   = (double)shape->experts / (double)shape->owners;
    double                      counts = software->expert_groups && plan->precision.narrow_linears == 0 ? 1.0 : here;
    double                      copies = here > 1.0 ? software->expert_copies.value : 0.0;
    return software->expert_gap.value * (1.0 + counts) / 2.0 + bias_seconds(machine, plan, op) +
           (copies > 0.0 ? copies * copy_rows_seconds(machine->hardware, plan, shape) : 0.0);
}

// Bytes per element of QK norm in Megatron-Core (transformer/attention.py, get_query_key_value_tensors). Forward: copy
// Q and K out of the QKV output (2 + 2), since Transformer Engine's norm reads whole rows, and normalise them (2 + 2).
// Backward: norm (6), concatenate the split gradients (4), rotate (4); the plan already counts 6.
static double head_norm_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const double bytes = 8.0;
    if (!machine->software->head_norms || !plan->model.qk_norm ||
        (op->kind != OP_ROPE_FORWARD && op->kind != OP_ROPE_BACKWARD)) {
        return 0.0;
    }
    return bytes * rotated_elements(op) /
           (machine->hardware->memory_efficiency.value * machine->hardware->memory_bandwidth.value);
}

// Quantization with current scaling, and the router, may take several kernels in the modelled framework.
double predict_program_gaps(const struct machine *machine, const struct op *op)
{
    int64_t kernels = machine->software == NULL                       ? 1
                      : op->kind == OP_ROUTE_FORWARD                  ? machine->software->router_kernels
                      : op->kind == OP_QUANTIZE && op_finds_scale(op) ? machine->software->scale_kernels
                                                                      : 1;
    return (double)(kernels - 1) * machine->hardware->kernel_gap.value;
}

double predict_program_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    return machine->software == NULL ? 0.0
                                     : expert_seconds(machine, plan, op) + eager_seconds(machine, plan, op) +
                                           head_norm_seconds(machine, plan, op);
}

// FP8 copies that the framework already has: tensors that tp gathers in FP8, and transposed weights after the first
// microbatch.
bool predict_program_has(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    if (software == NULL || (op->kind != OP_QUANTIZE && op->kind != OP_TRANSPOSE)) {
        return false;
    }
    const struct tensor *in =
        &plan->tensors[op->operand[op->kind == OP_QUANTIZE ? (int)QUANTIZE_IN : (int)TRANSPOSE_IN]];
    if (op->kind == OP_TRANSPOSE) {
        return software->fp8_transposes_once && in->storage == STORAGE_WEIGHT && op->tag.microbatch > 0;
    }
    return software->fp8_gathers && in->first_op >= 0 && predict_gathers_casts(plan, &plan->ops[in->first_op]);
}

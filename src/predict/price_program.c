// SPDX-License-Identifier: MIT
// How another program differs from the plan in what an op takes: [software].
#include "gswbench/op_operands.h"
#include "gswbench/op_table.h"
#include "internal.h"

static bool moves_rows(const struct op *op)
{
    return op->kind == OP_DISPATCH || op->kind == OP_COMBINE || op->kind == OP_COMBINE_BACKWARD;
}

// How the program that is predicted differs in ops of that kind.
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

// Of kernels that are bound by what they compute of each logit, on any device.
double predict_program_least(const struct software_config *software, const struct op *op)
{
    return software == NULL || op->kind != OP_CROSS_ENTROPY || software->loss_rate.value == 0.0
               ? 0.0
               : (double)op_operand_elements(op, CROSS_ENTROPY_LOGITS) / software->loss_rate.value;
}

// Seconds of reading and writing the rows of a rank's experts, which those of tp that share them out have gathered.
static double copy_rows_seconds(const struct hardware_config *hardware, const struct plan *plan,
                                const struct routing_shape *shape)
{
    int64_t rows   = shape->quantum == 0 ? routing_slots(shape) : shape->rows * shape->top_k;
    int64_t ranks  = plan->mesh.etp > 1 ? plan->mesh.etp : 1;
    double  copied = (double)format_bytes(FORMAT_BF16, rows * ranks * shape->columns);
    return 2.0 * copied / (hardware->memory_efficiency.value * hardware->memory_bandwidth.value);
}

// Megatron-Core (transformer/moe/experts.py, _apply_bias) multiplies each expert's bias by its rows' gates, adds it,
// joins the experts and casts what they give, 4 + 10 + 8 + 6 bytes an element. Backward, it casts the gradient, casts
// and joins that of the rows, 16, and sums its products with gates and with the bias, 24.
static double bias_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const double forward = 28.0, backward = 40.0, copied = 4.0;
    if (!machine->software->expert_biases || !plan->model.mlp_bias) {
        return 0.0;
    }
    return (op->kind == OP_ROUTE_FORWARD ? forward : backward) / copied *
           copy_rows_seconds(machine->hardware, plan, &op->shape.routing);
}

// Of queries and keys.
static double rotated_elements(const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    return (double)(shape->batch * shape->sequence * (shape->heads + shape->kv_heads) * shape->head_dim);
}

// What Megatron-Core does of GPT-OSS op by op, in bytes an element. It clamps both halves of what an activation reads
// and joins them before (fusions/fused_bias_geglu.py): 2 + 2, twice; backward, gradients are masked by what was read,
// 6, and joined, 4. It rotates queries and keys by general kernels (models/common/embeddings/rope_utils.py), since that
// of its library cannot scale them as YaRN does: products with the cosine, 4, and of the negated and joined halves, 6,
// with the sine, 4, their sum, 6, and a copy, 4; backward, both products, 8, the halves, 6, the sum, 6, and what
// becomes of the slices, 14. Of the latter the plan has 4 each.
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

// What the program that is predicted does besides for the experts of a layer: the host takes part while the device
// waits, for each of them. Grouped products are one launch, but casts to FP8 find a scale for the rows of each expert.
// Where experts run one by one, their rows are sorted by expert and joined again.
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

// Megatron-Core (transformer/attention.py, get_query_key_value_tensors) copies queries and keys out of the product that
// gives them, since norms of Transformer Engine read whole rows, 2 + 2 bytes an element, and normalises them, 2 + 2;
// backward, it reads what came in, its gradient and writes one, 6, joins what was split, 4, and rotates, 4, of which
// the plan has 6.
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

// Most ops are one kernel. A copy in FP8 that finds its scale first, and a router, may be several in the program that
// is predicted.
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

// Copies in FP8 that the program has already: of rows that tp gathers in FP8, and of weights that no microbatch
// changes.
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

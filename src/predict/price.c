// SPDX-License-Identifier: MIT
// Prices of what computes: products by tiles and waves, attention by its length, all else by the bytes it moves.
#include <math.h>

#include "gswbench/predict.h"

static double operand_bytes(const struct plan *plan, const struct op *op, int slot)
{
    if (op->operand[slot] < 0) {
        return 0.0;
    }
    double elements = (double)op_operand_elements(op, slot);
    bool   is_table = (op->kind == OP_EMBEDDING_FORWARD && slot == EMBEDDING_TABLE) ||
                    (op->kind == OP_EMBEDDING_BACKWARD && slot == EMBEDDING_GRADIENT_TABLE);
    if (is_table) {    // the rows of the tokens, not all
        elements = fmin(elements, (double)op->shape.rows.rows * (double)op->shape.rows.columns);
    }
    double passes = op->access[slot] == ACCESS_UPDATE ? 2.0 : 1.0;
    return passes * elements * (double)dtype_bytes(plan->tensors[op->operand[slot]].dtype);
}

static double memory_seconds(const struct hardware_config *hardware, const struct plan *plan, const struct op *op)
{
    double bytes = 0.0;
    for (int slot = 0; slot < op->operand_count; slot++) {
        bytes += operand_bytes(plan, op, slot);
    }
    return bytes / (hardware->memory_efficiency.value * hardware->memory_bandwidth.value);
}

// The tile that is fastest for the shape. The last wave of tiles leaves processors idle, the more of it the less the
// kernel can smooth; a tile's beginning and end cost like more steps along k.
static double product_seconds(const struct hardware_config *hardware, const struct gemm_shape *shape, bool accumulates)
{
    static const struct {
        double m, n, efficiency;
    } tiles[]    = {{128, 256, 1.0},  {256, 128, 1.0},  {128, 192, 1.0},
                    {192, 128, 0.97}, {128, 128, 0.92}, {64, 256, 0.88}};
    double units = (double)hardware->multiprocessors;
    double rate  = hardware->gemm_efficiency.value * hardware->peak_bf16.value / units;
    double depth =
        (double)shape->k + hardware->gemm_prologue.value + (accumulates ? hardware->gemm_accumulate.value : 0.0);
    double fastest = INFINITY;
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++) {
        double count = ceil((double)shape->m / tiles[i].m) * ceil((double)shape->n / tiles[i].n);
        double waves = (1.0 - hardware->gemm_smoothing.value) * ceil(count / units) +
                       hardware->gemm_smoothing.value * fmax(count / units, 1.0);
        double tile = 2.0 * tiles[i].m * tiles[i].n * depth / (rate * tiles[i].efficiency);
        fastest     = fmin(fastest, waves * tile);
    }
    return fastest;
}

// Short runs of keys fill the device badly, and heads wider than 128 leave less room for tiles. The backward pass reads
// and writes six arrays of the queries' size in bf16 before and after its products.
static double attention_seconds(const struct hardware_config *hardware, const struct op *op)
{
    const struct attention_shape *shape       = &op->shape.attention;
    bool                          is_backward = op->kind == OP_ATTENTION_BACKWARD;
    double                        length      = (double)(shape->sequence + shape->earlier);
    double share = is_backward ? hardware->attention_backward.value : hardware->attention_forward.value;
    double width = shape->head_dim > 128 ? 0.9 : 1.0;
    double rate = share * width * hardware->peak_bf16.value * length / (length + hardware->attention_half_length.value);
    double queries = (double)shape->batch * (double)shape->sequence * (double)shape->heads * (double)shape->head_dim;
    double around =
        is_backward ? 12.0 * queries / (hardware->memory_efficiency.value * hardware->memory_bandwidth.value) : 0.0;
    return op_flops(op) / rate + around;
}

static double compute_seconds(const struct hardware_config *hardware, const struct plan *plan, const struct op *op)
{
    switch (op->kind) {
    case OP_GEMM:
        return fmax(product_seconds(hardware, &op->shape.gemm, op->accumulates), memory_seconds(hardware, plan, op));
    case OP_ATTENTION_FORWARD:
    case OP_ATTENTION_BACKWARD:
        return attention_seconds(hardware, op);
    default:
        return memory_seconds(hardware, plan, op);
    }
}

struct price predict_price_op(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    if (op_is_transfer((enum op_kind)op->kind)) {
        return predict_price_transfer(machine->hardware, plan, op);
    }
    const struct quantity *measured = measured_find(machine->measured, plan, op);
    if (measured != NULL) {
        return (struct price){.seconds = measured->value};
    }
    return (struct price){.seconds =
                              compute_seconds(machine->hardware, plan, op) + machine->hardware->kernel_gap.value};
}

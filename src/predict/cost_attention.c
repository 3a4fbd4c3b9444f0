// SPDX-License-Identifier: MIT
// Cost of attention: by FLOPs and sequence length; in FP8 also by the number of query-key pairs.
#include <math.h>

#include "gswbench/op_operands.h"
#include "gswbench/op_table.h"
#include "gswbench/predict.h"
#include "internal.h"

// Ratio of computed to visible query-key pairs under a sliding window. Engines compute whole tiles of queries by keys,
// so a tile of queries meets partial tiles at both ends of the window. At most all pairs are computed.
enum { ATTENTION_TILE = 128 };
static double tiles_of_window(const struct op *op)
{
    struct op all              = *op;
    all.shape.attention.window = 0;
    double window              = (double)op->shape.attention.window;
    return window > 0 ? fmin((window + ATTENTION_TILE) / window, op_flops(&all) / op_flops(op)) : 1.0;
}

static bool is_backward(const struct op *op)
{
    return op_table[op->kind].cost == OP_COST_ATTENTION_BACKWARD;
}

static bool is_low_precision(const struct software_config *software, const struct plan *plan)
{
    return software != NULL && software->fp8_attention && plan->precision.low_precision_linears != 0;
}

// Slowdown of short sequences, which do not fill the device.
static double length_factor(const struct hardware_config *hardware, const struct attention_shape *shape)
{
    double length = (double)(shape->sequence + shape->earlier);
    if (shape->window > 0) {
        length = fmin(length, (double)(shape->window + ATTENTION_TILE));
    }
    return (length + hardware->attention_half_length.value) / length;
}

// Heads wider than 128 leave less room for tiles.
static double wide_seconds(const struct machine *machine, enum format format, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    const struct software_config *software = machine->software;
    const struct attention_shape *shape    = &op->shape.attention;
    double share = is_backward(op) ? hardware->attention_backward.value : hardware->attention_forward.value;
    double width = shape->head_dim > 128 ? 0.9 : 1.0;
    double rate =
        share * width * predict_sustained_peak(hardware, &format_table[format]) / length_factor(hardware, shape);
    double limit = software == NULL  ? 0.0
                   : is_backward(op) ? software->attention_backward.value
                                     : software->attention_forward.value;
    limit *= width * predict_sustained_clock(hardware);
    return op_flops(op) * tiles_of_window(op) / (limit > 0.0 ? fmin(rate, limit) : rate);
}

// In FP8 the GEMMs no longer dominate: exponentials and the casts between the two GEMMs cost the same per query-key
// pair for any head width. The backward pass computes all pairs, also those outside a window.
static double low_precision_seconds(const struct machine *machine, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    struct op                     computed = *op;
    computed.shape.attention.window        = is_backward(op) ? 0 : op->shape.attention.window;
    const struct attention_shape *shape    = &computed.shape.attention;
    int64_t                       keys = shape->head_dim, values = attention_value_dim(shape);
    double flops_of_pair = 2.0 * (double)(is_backward(op) ? 3 * keys + 2 * values : keys + values);
    double pairs         = op_flops(&computed) * tiles_of_window(&computed) / flops_of_pair;
    double rate = is_backward(op) ? hardware->attention_fp8_backward.value : hardware->attention_fp8_forward.value;
    return length_factor(hardware, shape) * pairs *
           (flops_of_pair / predict_sustained_peak(hardware, &format_table[FORMAT_E4M3]) +
            1.0 / (rate * predict_sustained_clock(hardware)));
}

// The backward pass reads or writes six arrays of the size of Q outside its GEMMs.
double predict_attention_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    enum format                   format = plan->tensors[op->operand[ATTENTION_QUERY]].format;    // or of the gradients
    const struct attention_shape *shape  = &op->shape.attention;
    double queries = (double)shape->batch * (double)shape->sequence * (double)shape->heads * (double)shape->head_dim;
    double around =
        is_backward(op) ? predict_memory_seconds(machine->hardware, (double)format_bytes(format, 6) * queries) : 0.0;
    return around + (is_low_precision(machine->software, plan) ? low_precision_seconds(machine, op)
                                                               : wide_seconds(machine, format, op));
}

// SPDX-License-Identifier: MIT
// Computes the seconds of attention from FLOPs and sequence length, and in FP8 also from the number of query-key pairs.
#include <math.h>

#include "gswbench/op_operands.h"
#include "gswbench/op_table.h"
#include "internal.h"

// Returns the ratio of computed to visible query-key pairs under a sliding window. Kernels compute whole tiles, which
// include invisible pairs at both ends of the window. They never compute more pairs than without a window.
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

static double pair_flops(const struct op *op)
{
    double keys = (double)op->shape.attention.head_dim, values = (double)attention_value_dim(&op->shape.attention);
    return 2.0 * (is_backward(op) ? 3.0 * keys + 2.0 * values : keys + values);
}

// Returns the number of query-key pairs that the kernel computes, including invisible pairs in the tiles at both ends
// of a sliding window.
static double count_pairs(const struct op *op)
{
    return op_flops(op) * tiles_of_window(op) / pair_flops(op);
}

// Returns the slowdown of short sequences: at attention_half_length positions, attention reaches half of its rate.
static double length_factor(const struct hardware_config *hardware, const struct attention_shape *shape)
{
    double length = (double)(shape->sequence + shape->earlier);
    if (shape->window > 0) {
        length = fmin(length, (double)(shape->window + ATTENTION_TILE));
    }
    return (length + hardware->attention_half_length.value) / length;
}

// Returns the slowdown if there are too few heads and query tiles to fill all SMs. With a causal mask the tile of the
// last queries attends to all keys. The op takes at least the time that one SM needs for this tile.
static double fill_factor(const struct hardware_config *hardware, const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    double                        keys  = (double)(shape->sequence + shape->earlier);
    if (shape->window > 0) {
        keys = fmin(keys, (double)(shape->window + ATTENTION_TILE));
    }
    double pairs = count_pairs(op), heads = (double)(shape->batch * shape->heads);
    double longest = fmin(fmin((double)shape->sequence, ATTENTION_TILE) * keys, pairs / heads);
    return fmax(1.0, (double)hardware->multiprocessors * longest / pairs);
}

// Returns the FLOP/s for heads of this size, relative to heads of size 128. The rate is interpolated linearly between
// the sizes that [hardware] has a value for, and proportional to the size below 64.
static double width_factor(const struct hardware_config *hardware, double width)
{
    const double widths[] = {0.0, 64.0, 128.0, 192.0, 256.0};
    const double rates[]  = {0.0, hardware->attention_heads_64.value, 1.0, hardware->attention_heads_192.value,
                             hardware->attention_heads_256.value};
    int          last     = sizeof(widths) / sizeof(widths[0]) - 1;
    for (int i = 1; i <= last; i++) {
        if (width <= widths[i]) {
            double share = (widths[i] - width) / (widths[i] - widths[i - 1]);
            return share * rates[i - 1] + (1.0 - share) * rates[i];
        }
    }
    return rates[last];
}

static double fused_seconds(const struct machine *machine, enum format format, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    const struct software_config *software = machine->software;
    const struct attention_shape *shape    = &op->shape.attention;
    double share = is_backward(op) ? hardware->attention_backward.value : hardware->attention_forward.value;
    double limit = is_backward(op) ? software->attention_backward.value : software->attention_forward.value;
    share        = share / length_factor(hardware, shape);
    share        = limit > 0.0 ? fmin(share, limit * hardware->ampere_share.value) : share;
    double peak  = predict_sustained_peak(hardware, &format_table[format]);
    return op_flops(op) * tiles_of_window(op) * fill_factor(hardware, op) /
           (share * width_factor(hardware, (double)shape->head_dim) * peak);
}

// Unfused attention, as before FlashAttention: two GEMMs for all pairs including masked ones, with the scores in
// memory. If 8 does not divide the head size, the GEMMs run outside the tensor cores, at 1/32 of the peak (half of an
// A100's FP32 rate). In the forward pass a BF16 score causes 8 bytes of traffic: a GEMM writes it, the softmax reads
// and writes it, and a GEMM reads it. In the backward pass the gradient of the score also causes 8 bytes, and the score
// is read three times.
static const double unaligned_share = 1.0 / 32.0, score_bytes[] = {8.0, 14.0};

static double unfused_seconds(const struct hardware_config *hardware, enum format format, const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    double                        pairs =
        (double)(shape->batch * shape->heads) * (double)shape->sequence * (double)(shape->sequence + shape->earlier);
    int64_t keys = shape->head_dim, values = attention_value_dim(shape);
    double  flops      = 2.0 * (is_backward(op) ? 2.0 : 1.0) * pairs * (double)(keys + values);
    bool    is_aligned = keys % 8 == 0 && values % 8 == 0;
    double  rate       = (is_aligned ? hardware->gemm_efficiency.value : unaligned_share) *
                  predict_sustained_peak(hardware, &format_table[format]);
    return flops / rate + predict_memory_seconds(hardware, score_bytes[is_backward(op)] * pairs);
}

// Returns the seconds of FP8 attention. Here the GEMMs are not dominant. The exponentials, and the casts between the
// two GEMMs, take a time per query-key pair that does not depend on the head size.
static double low_precision_seconds(const struct machine *machine, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    double rate = is_backward(op) ? hardware->attention_fp8_backward.value : hardware->attention_fp8_forward.value;
    return length_factor(hardware, &op->shape.attention) * fill_factor(hardware, op) * count_pairs(op) *
           (pair_flops(op) / predict_sustained_peak(hardware, &format_table[FORMAT_E4M3]) +
            1.0 / (rate * predict_sustained_clock(hardware)));
}

// If a sequence packs several texts, a token attends only to its own text. In a text of L tokens (text_tokens) it
// attends to L / 2 tokens on average. The op then has the cost of attention with a sliding window of L / 2. The FP8
// backward pass also computes pairs outside the model's window, but no pairs of different texts.
static struct op computed_op(const struct software_config *software, bool is_fp8, const struct op *op)
{
    struct op               computed = *op;
    struct attention_shape *shape    = &computed.shape.attention;
    int64_t                 keys     = (software->text_tokens + 1) / 2;
    if (is_fp8 && is_backward(op)) {
        shape->window = 0;
    }
    if (keys > 0 && keys < (shape->sequence + shape->earlier + 1) / 2 && (shape->window == 0 || keys < shape->window)) {
        shape->window = keys;
    }
    return computed;
}

// Returns the seconds of an attention op. In addition to the time of its GEMMs, the backward pass of fused attention
// reads or writes six arrays as large as Q.
double predict_attention_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    // Format of the queries; in the backward pass, format of the output gradient (ATTENTION_GRADIENT_OUT has the same
    // slot).
    enum format                   format = plan->tensors[op->operand[ATTENTION_QUERY]].format;
    const struct attention_shape *shape  = &op->shape.attention;
    if (machine->software->unfused_attention) {
        return unfused_seconds(machine->hardware, format, op);
    }
    double queries = (double)shape->batch * (double)shape->sequence * (double)shape->heads * (double)shape->head_dim;
    double around =
        is_backward(op) ? predict_memory_seconds(machine->hardware, (double)format_bytes(format, 6) * queries) : 0.0;
    bool            is_fp8   = machine->software->fp8_attention && plan->precision.low_precision_linears != 0;
    const struct op computed = computed_op(machine->software, is_fp8, op);
    return around + (is_fp8 ? low_precision_seconds(machine, &computed) : fused_seconds(machine, format, &computed));
}

// SPDX-License-Identifier: MIT
// Computes the seconds of compute ops: GEMMs from tiles and waves, all other ops from memory traffic. Attention is in
// cost_attention.c, communication in cost_communication.c. cost_software.c corrects the times for the modelled
// framework.
#include <math.h>

#include "gswbench/fatal.h"
#include "gswbench/op_table.h"
#include "internal.h"

enum { MAX_PARTS = 8 };    // maximum split-k factor of a GEMM

double predict_memory_seconds(const struct hardware_config *hardware, double bytes)
{
    return bytes / (hardware->memory_efficiency.value * hardware->memory_bandwidth.value);
}

// Whether an FP8 GEMM accumulates in the tensor cores alone, instead of adding partial sums in fp32 registers. A
// framework with an FP8 output layer (head) uses this fast accumulation only in the forward pass of the head.
static bool sums_fast(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    return op->sums_fast ||
           (op->tag.phase == PHASE_FORWARD && predict_is_low_precision_head(machine->software, plan, op));
}

// Returns the format that determines the rate of a GEMM: the format of its wider operand.
static const struct format_row *gemm_format(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    if (predict_is_low_precision_head(machine->software, plan, op)) {
        return &format_table[FORMAT_E4M3];
    }
    const struct format_row *a = &format_table[plan->tensors[op->operand[GEMM_A]].format];
    const struct format_row *b = &format_table[plan->tensors[op->operand[GEMM_B]].format];
    return a->bits >= b->bits ? a : b;
}

// Returns the clock under a power limit, relative to the full clock. A fifth of full power does not depend on the clock
// f: measured with bursts of the same GEMMs on H100 boards of 350 and 700 W. The other four fifths are proportional to
// f V^2, and the voltage V to f. So the clock is the cube root of the share of these four fifths that the limit allows.
double predict_sustained_clock(const struct hardware_config *hardware)
{
    const double fixed = 0.2;
    return cbrt((hardware->power_share.value - fixed) / (1.0 - fixed));
}

double predict_sustained_peak(const struct hardware_config *hardware, const struct format_row *format)
{
    return hardware->peak[format->rate].value * predict_sustained_clock(hardware);
}

// Returns the seconds to write and read the fp32 partial sums of a split-k GEMM.
static double sum_seconds(const struct hardware_config *hardware, const struct gemm_shape *shape, double parts)
{
    double bytes = parts > 1.0 ? parts * 8.0 * (double)shape->m * (double)shape->n : 0.0;
    return predict_memory_seconds(hardware, bytes);
}

// GEMM values of section [hardware] for one operand format. A step is the time of one multiply-add per element of a
// tile. efficiency: share of the peak FLOP/s. prologue: steps of a tile's prologue and epilogue. smoothing: see
// count_waves. gap: idle seconds before the kernel. steps: steps of this format in the time of one BF16 step, such as 2
// for FP8. The option gemm_accumulate, the time to add a tile to C, is in BF16 steps.
struct gemm_values {
    double efficiency, prologue, smoothing, gap, steps;
};
static struct gemm_values gemm_values(const struct hardware_config *hardware, const struct format_row *format)
{
    double smoothing = hardware->gemm_smoothing_fp8.value, gap = hardware->gemm_gap_fp8.value;
    if (format->rate == RATE_FP4) {
        return (struct gemm_values){hardware->gemm_efficiency_fp4.value, hardware->gemm_prologue_fp4.value, smoothing,
                                    gap, .steps = 4.0};
    }
    if (format->rate == RATE_FP8) {
        return (struct gemm_values){hardware->gemm_efficiency_fp8.value, hardware->gemm_prologue_fp8.value, smoothing,
                                    gap, .steps = 2.0};
    }
    return (struct gemm_values){hardware->gemm_efficiency.value, hardware->gemm_prologue.value,
                                hardware->gemm_smoothing.value, hardware->kernel_gap.value, .steps = 1.0};
}

// Returns the number of waves of a GEMM. A wave is one tile on each SM. The last wave leaves SMs idle. smoothing is the
// share of this loss that the kernel avoids.
static double count_waves(double smoothing, double tiles, double processors)
{
    double waves = tiles / processors;
    return (1.0 - smoothing) * ceil(waves) + smoothing * fmax(waves, 1.0);
}

// Returns the FLOP/s of a tile of m x n, relative to a tile of 128 x 256. A tile loads (m + n) k values for m n k
// multiplications, so a small tile is slower. traffic: load time of a 128 x 128 tile, divided by its math time.
// 0.75 is 64 (1 / 128 + 1 / 256).
static double tile_rate(double traffic, double m, double n)
{
    return (1.0 + 0.75 * traffic) / (1.0 + 64.0 * traffic * (1.0 / m + 1.0 / n));
}

// Whether the epilogue of the GEMM reads a matrix as large as C.
static bool reads_c(const struct op *op)
{
    return op->accumulates || (op->operand_count > GEMM_ADDEND && op->operand[GEMM_ADDEND] >= 0);
}

// Returns the math time of a GEMM with the fastest tile shape and, if there are fewer tiles than SMs, the fastest
// split-k. Prologue and epilogue lengthen the k loop of a tile by a fixed number of steps.
static double gemm_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    static const struct {
        double m, n;
    } tiles[]                            = {{128, 256}, {256, 128}, {128, 128}, {64, 256}, {256, 64}};
    const struct gemm_shape *shape       = &op->shape.gemm;
    const struct format_row *format      = gemm_format(machine, plan, op);
    struct gemm_values       values      = gemm_values(hardware, format);
    double                   processors  = (double)hardware->multiprocessors;
    double                   usable      = fmax(processors - (double)machine->sm_margin, 1.0);
    bool                     splits_sums = format->rate == RATE_FP8 && !sums_fast(machine, plan, op);
    double                   rate        = values.efficiency * predict_sustained_peak(hardware, format) /
                  (splits_sums ? hardware->gemm_split_accumulation.value : 1.0) /
                  (shape->scaling_a == SCALING_MX ? hardware->gemm_mxfp8.value : 1.0);
    double around  = values.prologue + (reads_c(op) ? hardware->gemm_accumulate.value * values.steps : 0.0);
    double fastest = INFINITY;
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++) {
        double count = ceil((double)shape->m / tiles[i].m) * ceil((double)shape->n / tiles[i].n);
        for (double parts = 1.0; parts <= (count < usable ? MAX_PARTS : 1.0); parts++) {
            double tile = 2.0 * tiles[i].m * tiles[i].n * ((double)shape->k / parts + around) * processors /
                          (rate * tile_rate(hardware->gemm_tile_traffic.value, tiles[i].m, tiles[i].n));
            double waves = count_waves(values.smoothing, parts * count, usable);
            fastest      = fmin(fastest, waves * tile + sum_seconds(hardware, shape, parts));
        }
    }
    return fastest;
}

static double find_gemm_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct gemm_shape *shape  = &op->shape.gemm;
    struct known_gemm        wanted = {shape->m,
                                       shape->n,
                                       shape->k,
                                       .format      = gemm_format(machine, plan, op),
                                       .accumulates = reads_c(op),
                                       .sums_fast   = sums_fast(machine, plan, op),
                                       .is_mxfp8    = shape->scaling_a == SCALING_MX};
    if (machine->gemms == NULL) {
        return gemm_seconds(machine, plan, op);
    }
    uint64_t           mixed = ((uint64_t)wanted.m * 31 + (uint64_t)wanted.n) * 31 + (uint64_t)wanted.k;
    struct known_gemm *known = &machine->gemms->known[(mixed * 0x9E3779B97F4A7C15u >> 32) % GEMM_MEMO];
    if (known->m != wanted.m || known->n != wanted.n || known->k != wanted.k || known->format != wanted.format ||
        known->accumulates != wanted.accumulates || known->sums_fast != wanted.sums_fast ||
        known->is_mxfp8 != wanted.is_mxfp8) {
        *known         = wanted;
        known->seconds = gemm_seconds(machine, plan, op);
    }
    return known->seconds;
}

// Memory traffic of the chunked Mamba-2 scan in addition to its operands. Between the kernels of mamba_ssm, running
// sums of dt, the products C B^T of every chunk, and the state before every chunk pass through memory.
//
// Bytes that a forward or backward pass moves per element of a tensor. inputs: x. outs: the output, in the backward
// pass its gradient. pairs: B and C. state: states of the chunks. score: C B^T. step: bytes per head and position.
struct scan_traffic {
    double inputs, outs, pairs, state, score, step;
};

// There are five forward kernels. They compute running sums of dt; the fp32 state of each chunk, from x and B; sums of
// these states over earlier chunks, in BF16; C B^T in fp32, from B and C; and the output, from x, C, C B^T and the
// states. One access per operand is not counted here, because plan_op_bytes counts it.
static const struct scan_traffic scan_forward = {
    .inputs = 2, .outs = 0, .pairs = 4, .state = 12, .score = 8, .step = 24};

// The backward pass repeats the first four forward kernels. It computes gradients of the states from d out and C and
// sums them over later chunks. Then it computes d x and d dt, d B, d C, d (C B^T), and the gradient of the running
// sums. It reads x and d out five times each; plan_op_bytes counts one of these.
static const struct scan_traffic scan_backward = {
    .inputs = 8, .outs = 8, .pairs = 14, .state = 28, .score = 24, .step = 60};

static double scan_bytes(const struct op *op)
{
    const struct mamba_shape  *shape     = &op->shape.mamba;
    const struct scan_traffic *of        = op->kind == OP_SCAN_FORWARD ? &scan_forward : &scan_backward;
    double                     positions = (double)(shape->batch * shape->sequence);
    double                     chunk     = (double)(shape->chunk < shape->sequence ? shape->chunk : shape->sequence);
    double inner = (double)mamba_inner(shape), groups = (double)shape->groups, state = (double)shape->state;
    double of_states = of->state * inner * state / chunk, of_scores = of->score * chunk * groups;
    return positions * ((of->inputs + of->outs) * inner + of->pairs * groups * state + of_states + of_scores +
                        of->step * (double)shape->heads);
}

// Returns the seconds of a cast to FP8 or FP4. If it computes its scale, a separate kernel first reads the input, at
// scale_efficiency times the memory bandwidth. The cast itself runs at cast_efficiency times the bandwidth.
static double cast_seconds(const struct hardware_config *hardware, const struct plan *plan, const struct op *op)
{
    double found = op_finds_scale(op) ? (double)format_bytes(plan->tensors[op->operand[QUANTIZE_IN]].format,
                                                             op_operand_elements(op, QUANTIZE_IN))
                                      : 0.0;
    return (found / hardware->scale_efficiency.value +
            (plan_op_bytes(plan, op) - found) / hardware->cast_efficiency.value) /
           hardware->memory_bandwidth.value;
}

// Returns the idle time of the GPU before the kernel of an op. A framework with grouped experts launches one activation
// kernel for all of them, so the activation of each expert pays a share of one gap. The framework distributes the GEMMs
// of grouped experts over several CUDA streams. This hides the longer setup of an FP8 GEMM, so each GEMM pays the gap
// of an ordinary kernel.
static double gap_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    double experts = predict_group(machine->software, plan, op);
    double gap     = machine->hardware->kernel_gap.value;
    if (op_table[op->kind].cost == OP_COST_GEMM) {
        return experts > 1.0 ? gap : gemm_values(machine->hardware, gemm_format(machine, plan, op)).gap;
    }
    return gap / experts;
}

// Returns the seconds of a GEMM. Its math and memory times overlap, except for the share gemm_memory_exposed of the
// shorter time.
static double join_times(const struct hardware_config *hardware, double tiles, double memory)
{
    return fmax(tiles, memory) + hardware->gemm_memory_exposed.value * fmin(tiles, memory);
}

static double compute_seconds(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    switch ((enum op_cost)op_table[op->kind].cost) {
    case OP_COST_GEMM:
        return join_times(hardware, find_gemm_seconds(machine, plan, op),
                          predict_memory_seconds(hardware, plan_op_bytes(plan, op)));
    case OP_COST_ATTENTION_FORWARD:
    case OP_COST_ATTENTION_BACKWARD:
        return predict_attention_seconds(machine, plan, op);
    case OP_COST_SCAN_FORWARD:
    case OP_COST_SCAN_BACKWARD:
        return predict_memory_seconds(hardware, plan_op_bytes(plan, op) + scan_bytes(op));
    case OP_COST_CAST:
        return cast_seconds(hardware, plan, op);
    case OP_COST_MEMORY:
    case OP_COST_ROUTE:
        return predict_memory_seconds(hardware, plan_op_bytes(plan, op));
    case OP_COST_NONE:
    case OP_COST_COMMUNICATION:
        break;
    }
    FATAL(EXIT_INTERNAL, "%s computes nothing that has a cost", op_name((enum op_kind)op->kind));
}

// Returns the measured time of the op if there is one, else the modelled time plus the idle time before each kernel.
static double device_seconds(const struct machine *machine, const struct plan *plan, const struct op *op,
                             const struct quantity *measured)
{
    if (measured != NULL) {
        return measured->value;
    }
    struct op whole   = predict_software_blocks(machine->software, plan, op);
    struct op part[3] = {whole};
    int       count   = predict_software_gemms(machine->software, plan, &whole, part);
    double    seconds = 0.0;
    for (int i = 0; i < count; i++) {
        seconds += compute_seconds(machine, plan, &part[i]) + gap_seconds(machine, plan, &part[i]);
    }
    return op->kind == OP_GEMM ? seconds * (double)op->shape.gemm.m / (double)whole.shape.gemm.m : seconds;
}

struct cost predict_cost_op(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct quantity *measured = measured_find(machine->measured, plan, op);
    if (op_is_communication((enum op_kind)op->kind)) {
        struct cost cost = predict_cost_communication(machine, plan, op);
        cost.is_measured = measured != NULL;
        cost.seconds     = measured != NULL ? measured->value : cost.seconds;
        predict_cost_launch(&cost, machine, plan, op);
        return cost;
    }
    if (predict_software_has(machine, plan, op)) {
        return (struct cost){.seconds = 0.0};
    }
    double      seconds = device_seconds(machine, plan, op, measured);
    struct cost cost    = {.seconds     = predict_software_seconds(machine, plan, op, seconds),
                           .is_measured = measured != NULL};
    predict_cost_launch(&cost, machine, plan, op);
    return cost;
}

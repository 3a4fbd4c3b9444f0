// SPDX-License-Identifier: MIT
// Measures [hardware] values for the cost model: rates of large ops, and the time of a tiny one.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

// Probes in measurement order. The last ones are GEMMs, one per format.
enum probe { PROBE_GAP, PROBE_COPY, PROBE_ATTENTION, PROBE_ATTENTION_BACKWARD, PROBE_GEMMS };

static void add_gemm(struct distinct_ops *list, enum format format, int64_t size)
{
    const enum format formats[] = {format, format, format};
    const struct op   gemm = {.kind = OP_GEMM, .shape.gemm = {.m = size, .n = size, .k = size, .transpose_b = true}};
    distinct_add_probe(list, gemm, formats, 3);
}

// Adds the ops in the order of enum probe. Their sizes hide prologue and epilogue of a kernel, and are smaller on a
// CPU. own: activation format of the job. BF16 GEMMs are added too, since most other jobs compute in BF16.
static void add_probes(struct distinct_ops *list, bool is_device, enum format own)
{
    const enum format      f32 = FORMAT_F32, bf[] = {FORMAT_BF16, FORMAT_BF16};
    const enum format      forward[]  = {own, own, own, FORMAT_F32};
    const enum format      backward[] = {own, own, own, own, FORMAT_F32, own, own};
    int64_t                size       = is_device ? 8192 : 1024;
    struct attention_shape attention  = {.batch    = 1,
                                         .sequence = is_device ? size : 512,
                                         .heads    = is_device ? 32 : 4,
                                         .kv_heads = is_device ? 8 : 4,
                                         .head_dim = 128,
                                         .scale    = 0.088F,
                                         .causal   = true};
    distinct_add_probe(list, (struct op){.kind = OP_CLEAR, .shape.elements = {.elements = 1}}, &f32, 1);
    distinct_add_probe(
        list, (struct op){.kind = OP_CAST, .shape.elements = {.elements = is_device ? 256 << 20 : 8 << 20}}, bf, 2);
    distinct_add_probe(list, (struct op){.kind = OP_ATTENTION_FORWARD, .shape.attention = attention}, forward, 4);
    distinct_add_probe(list, (struct op){.kind = OP_ATTENTION_BACKWARD, .shape.attention = attention}, backward, 7);
    add_gemm(list, FORMAT_BF16, size);
    add_gemm(list, own, size);
}

// Stores a measured rate. If the data sheet (whole) has a higher one, stores the fraction of it that was reached
// (share). Otherwise the measured rate replaces it, and the fraction is 1.
static void set_rate(struct quantity *whole, struct quantity *share, double rate, double spread_percent)
{
    struct quantity measured = {.value = rate, .spread_percent = spread_percent, .origin = QUANTITY_MEASURED};
    if (whole->value > rate && whole->origin != QUANTITY_MEASURED) {
        measured.value = rate / whole->value;
        *share         = measured;
    } else {
        *whole = measured;
        *share = (struct quantity){.value = 1.0};
    }
}

static struct quantity *peak_of(struct hardware_config *hardware, const struct distinct_op *probe)
{
    return &hardware->peak[format_table[probe->format[0]].rate];
}

static void set_compute(struct hardware_config *hardware, const struct distinct_ops *list)
{
    const struct distinct_op *probes = list->ops, *copy = &probes[PROBE_COPY];
    hardware->kernel_gap = probes[PROBE_GAP].seconds;
    for (int32_t i = PROBE_GEMMS; i < list->count; i++) {
        set_rate(peak_of(hardware, &probes[i]), &hardware->gemm_efficiency,
                 op_flops(&probes[i].op) / probes[i].seconds.value, probes[i].seconds.spread_percent);
    }
    set_rate(&hardware->memory_bandwidth, &hardware->memory_efficiency,
             4.0 * (double)copy->elements[0] / copy->seconds.value, copy->seconds.spread_percent);
    struct quantity *shares[] = {&hardware->attention_forward, &hardware->attention_backward};
    for (int pass = 0; pass < 2; pass++) {
        const struct distinct_op *attention = &probes[PROBE_ATTENTION + pass];
        double                    length    = (double)attention->op.shape.attention.sequence;
        double                    rate      = op_flops(&attention->op) / attention->seconds.value *
                      (length + hardware->attention_half_length.value) / length;
        *shares[pass] = (struct quantity){.value          = fmin(rate / peak_of(hardware, attention)->value, 1.0),
                                          .spread_percent = attention->seconds.spread_percent,
                                          .origin         = QUANTITY_MEASURED};
    }
}

// A communication group of the job.
struct span {
    uint32_t axes;    // 0: none
    int64_t  size, nodes;
};

static struct span describe_group(const struct mesh *mesh, uint32_t axes, int64_t ranks_per_node)
{
    struct span span  = {.axes = axes, .size = mesh_group_size(mesh, axes), .nodes = 1};
    int64_t    *ranks = memory_allocate((size_t)span.size * sizeof(*ranks));
    mesh_group_ranks(mesh, 0, axes, ranks);
    for (int64_t i = 1; i < span.size; i++) {
        span.nodes += ranks[i] / ranks_per_node != ranks[i - 1] / ranks_per_node;
    }
    free(ranks);
    return span;
}

// Returns the largest group on one node, or across nodes.
static struct span find_widest(const struct distinct_ops *list, const struct mesh *mesh, int64_t ranks_per_node,
                               bool across)
{
    struct span widest = {.size = 1};
    for (int32_t i = 0; i < list->count; i++) {
        if (list->ops[i].axes != 0) {
            struct span span = describe_group(mesh, list->ops[i].axes, ranks_per_node);
            widest           = span.size > widest.size && (span.nodes > 1) == across ? span : widest;
        }
    }
    return widest;
}

static struct distinct_op gather_probe(const struct span *span, int64_t part)
{
    return (struct distinct_op){.op       = {.kind                = OP_ALL_GATHER,
                                             .stream              = STREAM_WEIGHT_GATHER,
                                             .operand_count       = 2,
                                             .access              = {ACCESS_READ, ACCESS_WRITE},
                                             .shape.communication = {.elements = span->size * part}},
                                .format   = {FORMAT_BF16, FORMAT_BF16},
                                .elements = {part, span->size * part},
                                .axes     = span->axes};
}

// Latency is the time of the shortest gather; bandwidth follows from the additional time of a long one.
static status measure_links(struct hardware_config *hardware, const struct span *span, const struct distinct_op *gap,
                            const struct calibrate_setup *setup)
{
    enum { PART = 1 << 20 };
    struct distinct_op  gathers[] = {gather_probe(span, 1), gather_probe(span, PART)};
    struct distinct_ops list      = {.ops = gathers, .count = 2};
    TRY(microbenchmarks_measure(&list, gap, setup));
    const struct quantity *brief = &gathers[0].seconds, *lasting = &gathers[1].seconds;
    double                 local = (double)span->size / (double)span->nodes;
    double longer    = fmax(lasting->value - brief->value, 0.1 * lasting->value);    // lower limit against noise
    double bandwidth = 2.0 * (PART - 1.0) * (double)(span->size - 1) / longer;
    if (span->nodes == 1) {
        set_rate(&hardware->node_bandwidth, &hardware->node_efficiency, bandwidth, lasting->spread_percent);
        hardware->collective_latency = *brief;
        hardware->node_latency       = (struct quantity){.origin = QUANTITY_MEASURED};
    } else {
        set_rate(&hardware->network_bandwidth, &hardware->network_efficiency, bandwidth / local,
                 lasting->spread_percent);
        hardware->network_latency = *brief;
        hardware->network_latency.value =
            fmax(brief->value - hardware->collective_latency.value, 0.0) / (double)span->nodes;
    }
    return OK;
}

// Mutual slowdown of communication and compute, averaged over the job's communication ops.
static void set_disturbance(struct hardware_config *hardware, const struct distinct_ops *list)
{
    double count = 0.0, seconds = 0.0, delayed = 0.0, lost = 0.0;
    for (int32_t i = 0; i < list->count; i++) {
        const struct distinct_op *distinct = &list->ops[i];
        if (op_is_communication((enum op_kind)distinct->op.kind)) {
            double times = (double)distinct->count, lasts = distinct->seconds.value + distinct->delay_seconds;
            count += times;
            delayed += times * distinct->delay_seconds;
            seconds += times * lasts;
            lost += times * lasts * distinct->contention;
        }
    }
    hardware->communication_delay =
        (struct quantity){.origin = QUANTITY_MEASURED, .value = count > 0.0 ? delayed / count : 0.0};
    hardware->contention =
        (struct quantity){.origin = QUANTITY_MEASURED, .value = count > 0.0 ? fmin(lost / seconds, 0.9) : 0.0};
}

status calibrate_hardware(struct hardware_config *hardware, const struct distinct_ops *list,
                          const struct calibrate_setup *setup)
{
    struct distinct_ops probes = {.count = 0};
    add_probes(&probes, setup->backend->ops->is_device, setup->request->precision.activation);
    status result = microbenchmarks_measure(&probes, NULL, setup);
    if (!failed(&result)) {
        set_compute(hardware, &probes);
    }
    for (int across = 0; across < 2 && !failed(&result); across++) {
        struct span span = find_widest(list, &setup->request->mesh, setup->comm->topology.local_ranks, across);
        if (span.axes != 0) {
            result = measure_links(hardware, &span, &probes.ops[PROBE_GAP], setup);
        }
    }
    calibrate_free(&probes);
    if (hardware->node_bandwidth.value == 0.0) {    // no group has two ranks on a node: assume a memory copy
        hardware->node_bandwidth = hardware->memory_bandwidth;
    }
    if (!setup->backend->ops->is_device) {
        const struct quantity none = {.origin = QUANTITY_MEASURED};
        hardware->multiprocessors  = hardware->multiprocessors > 0 ? hardware->multiprocessors : 1;
        hardware->cores            = setup->cores;
        hardware->core_ranks       = setup->core_ranks;
        hardware->jitter           = none;
        set_disturbance(hardware, list);
    }
    hardware->gpus_per_node = setup->comm->topology.local_ranks;
    return result;
}

// SPDX-License-Identifier: MIT
// Measures values of [hardware] for the cost model: rates of large ops, the time of a tiny op, latency and bandwidth of
// links, and how much communication and compute on CPU ranks slow each other down.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

// Index of each probe, an op that is measured for [hardware], in the list of probes. The GEMMs are last, one per
// format.
enum probe { PROBE_GAP, PROBE_COPY, PROBE_ATTENTION, PROBE_ATTENTION_BACKWARD, PROBE_GEMMS };

static void add_gemm(struct distinct_ops *list, enum format format, int64_t size)
{
    const enum format formats[] = {format, format, format};
    const struct op   gemm = {.kind = OP_GEMM, .shape.gemm = {.m = size, .n = size, .k = size, .transpose_b = true}};
    distinct_add_probe(list, gemm, formats, 3);
}

// Adds the ops to measure, in the order of enum probe. All except PROBE_GAP are large, so that the start and end of a
// kernel do not count; on a CPU they are smaller. own: activation format of the job. A BF16 GEMM is always added,
// because most jobs use BF16.
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

// Stores a measured rate. If `whole` has a higher data sheet value, `share` gets the fraction of it that was reached.
// Otherwise the measured rate replaces the value of `whole`, and the fraction is 1.
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

static struct quantity *find_peak(struct hardware_config *hardware, const struct distinct_op *probe)
{
    return &hardware->peak[format_table[probe->format[0]].rate];
}

// Raises measured peaks to the rate of the job's fastest GEMM. Other programs on the cores may slow the long GEMM of
// the probes more than the short ones of a job, whose MFU could then exceed 1.
static void raise_peaks(struct hardware_config *hardware, const struct distinct_ops *job)
{
    for (int32_t i = 0; i < job->count; i++) {
        const struct distinct_op *gemm = &job->ops[i];
        struct quantity          *peak = find_peak(hardware, gemm);
        if (gemm->op.kind == OP_GEMM && gemm->format[0] == gemm->format[1] && peak->origin == QUANTITY_MEASURED) {
            peak->value = fmax(peak->value, op_flops(&gemm->op) / gemm->seconds.value);
        }
    }
}

static void set_compute(struct hardware_config *hardware, const struct distinct_ops *list,
                        const struct distinct_ops *job)
{
    const struct distinct_op *probes = list->ops, *copy = &probes[PROBE_COPY];
    hardware->kernel_gap = probes[PROBE_GAP].seconds;
    for (int32_t i = PROBE_GEMMS; i < list->count; i++) {
        set_rate(find_peak(hardware, &probes[i]), &hardware->gemm_efficiency,
                 op_flops(&probes[i].op) / probes[i].seconds.value, probes[i].seconds.spread_percent);
    }
    raise_peaks(hardware, job);
    set_rate(&hardware->memory_bandwidth, &hardware->memory_efficiency,
             4.0 * (double)copy->elements[0] / copy->seconds.value, copy->seconds.spread_percent);
    struct quantity *shares[] = {&hardware->attention_forward, &hardware->attention_backward};
    for (int pass = 0; pass < 2; pass++) {
        const struct distinct_op *attention = &probes[PROBE_ATTENTION + pass];
        double                    length    = (double)attention->op.shape.attention.sequence;
        double                    rate      = op_flops(&attention->op) / attention->seconds.value *
                      (length + hardware->attention_half_length.value) / length;
        *shares[pass] = (struct quantity){.value = fmin(fmax(rate / find_peak(hardware, attention)->value, 0.01), 1.0),
                                          .spread_percent = attention->seconds.spread_percent,
                                          .origin         = QUANTITY_MEASURED};
    }
}

// A communication group of the job: its mesh axes, number of ranks, and number of nodes.
struct group_span {
    uint32_t axes;    // 0: no group
    int64_t  size, nodes;
};

static struct group_span describe_group(const struct mesh *mesh, uint32_t axes, int64_t ranks_per_node)
{
    struct group_span group_span = {.axes = axes, .size = mesh_group_size(mesh, axes), .nodes = 1};
    int64_t          *ranks      = memory_allocate((size_t)group_span.size * sizeof(*ranks));
    mesh_group_ranks(mesh, 0, axes, ranks);
    for (int64_t i = 1; i < group_span.size; i++) {
        group_span.nodes += ranks[i] / ranks_per_node != ranks[i - 1] / ranks_per_node;
    }
    free(ranks);
    return group_span;
}

// Returns the largest group of the job that is on one node, or, if `across`, on several nodes. Its axes are 0 if the
// job has no such group.
static struct group_span find_largest(const struct distinct_ops *list, const struct mesh *mesh, int64_t ranks_per_node,
                                      bool across)
{
    struct group_span widest = {.size = 1};
    for (int32_t i = 0; i < list->count; i++) {
        if (list->ops[i].axes != 0) {
            struct group_span group_span = describe_group(mesh, list->ops[i].axes, ranks_per_node);
            widest = group_span.size > widest.size && (group_span.nodes > 1) == across ? group_span : widest;
        }
    }
    return widest;
}

static struct distinct_op gather_probe(const struct group_span *group_span, int64_t part)
{
    return (struct distinct_op){.op       = {.kind                = OP_ALL_GATHER,
                                             .stream              = STREAM_WEIGHT_GATHER,
                                             .operand_count       = 2,
                                             .access              = {ACCESS_READ, ACCESS_WRITE},
                                             .shape.communication = {.elements = group_span->size * part}},
                                .format   = {FORMAT_BF16, FORMAT_BF16},
                                .elements = {part, group_span->size * part},
                                .axes     = group_span->axes};
}

// Measures latency and bandwidth of a group's links. The time of a tiny all-gather is the latency. A large all-gather
// takes longer; the additional time gives the bandwidth.
static status measure_links(struct hardware_config *hardware, const struct group_span *group_span,
                            const struct distinct_op *gap, const struct calibrate_setup *setup)
{
    enum { PART = 1 << 20 };
    struct distinct_op  gathers[] = {gather_probe(group_span, 1), gather_probe(group_span, PART)};
    struct distinct_ops list      = {.ops = gathers, .count = 2};
    TRY(microbenchmarks_measure(&list, gap, setup));
    const struct quantity *brief = &gathers[0].seconds, *lasting = &gathers[1].seconds;
    double                 local = (double)group_span->size / (double)group_span->nodes;
    // Noise can make the difference tiny or negative, so it counts as at least a tenth of the longer time.
    double longer    = fmax(lasting->value - brief->value, 0.1 * lasting->value);
    double bandwidth = 2.0 * (PART - 1.0) * (double)(group_span->size - 1) / longer;
    if (group_span->nodes == 1) {
        set_rate(&hardware->node_bandwidth, &hardware->node_efficiency, bandwidth, lasting->spread_percent);
        hardware->collective_latency = *brief;
        hardware->node_latency       = (struct quantity){.origin = QUANTITY_MEASURED};
    } else {
        set_rate(&hardware->network_bandwidth, &hardware->network_efficiency, bandwidth / local,
                 lasting->spread_percent);
        hardware->network_latency = *brief;
        hardware->network_latency.value =
            fmax(brief->value - hardware->collective_latency.value, 0.0) / (double)(group_span->nodes - 1);
    }
    return OK;
}

// Sets the values of [hardware] for the mutual slowdown of communication and compute: the mean over the job's
// communication ops.
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
        set_compute(hardware, &probes, list);
    }
    for (int across = 0; across < 2 && !failed(&result); across++) {
        struct group_span group_span =
            find_largest(list, &setup->request->mesh, setup->comm->topology.local_ranks, across);
        if (group_span.axes != 0) {
            result = measure_links(hardware, &group_span, &probes.ops[PROBE_GAP], setup);
        }
    }
    calibrate_free(&probes);
    // If neither a profile nor a measurement has the bandwidth within a node, assumes the speed of a memory copy.
    if (hardware->node_bandwidth.value == 0.0) {
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

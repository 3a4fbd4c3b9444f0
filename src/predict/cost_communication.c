// SPDX-License-Identifier: MIT
// Computes the cost of communication ops from the topology of their group: seconds, links, SMs and stalls of compute.
// This file chooses between measured times within a node (cost_collectives.c) and the model of NCCL's rings, trees,
// NVLS and PAT (cost_nccl.c). It also models all-to-alls and send/receive pairs. In a group across nodes, each rank of
// a node adds its own network link. A node here is an NVLink domain, possibly a whole rack.
#include <math.h>

#include "gswbench/connection.h"
#include "gswbench/fatal.h"
#include "gswbench/op_table.h"
#include "internal.h"

// Returns the SMs of a communication op: NCCL's choice for this size, or run.sm_margin if that is lower. Returns 0 on
// CPUs, and if copy engines move the data (run.zero_cta). These cannot reduce data or reach another node.
static int find_processors(const struct machine *machine, const struct op *op, const struct plan_group *group,
                           int64_t domain, double bytes)
{
    int  processors = plan_connection_processors(op->stream, (int64_t)bytes), maximum = (int)machine->sm_margin;
    bool is_copied = machine->zero_cta &&
                     (op->kind == OP_ALL_GATHER || op->kind == OP_ALL_TO_ALL || op->kind == OP_ROTATE) &&
                     plan_group_nodes(group, domain) == 1;
    return machine->hardware->cores > 0 || is_copied ? 0 : maximum > 0 && maximum < processors ? maximum : processors;
}

static struct span find_span(const struct hardware_config *hardware, const struct plan_group *group, int64_t domain,
                             int processors)
{
    double carried = processors > 0 && hardware->channel_bandwidth.value > 0.0
                         ? processors * hardware->channel_bandwidth.value
                         : INFINITY;
    return (struct span){.members     = (double)group->size,
                         .inside      = 1.0,
                         .outside     = 1.0,
                         .start_share = 1.0,
                         .nodes       = (double)plan_group_nodes(group, domain),
                         .processors  = processors,
                         .node        = fmin(hardware->node_efficiency.value * hardware->node_bandwidth.value, carried),
                         .network =
                             fmin(hardware->network_efficiency.value * hardware->network_bandwidth.value, carried)};
}

// Returns the seconds of an all-to-all. Its traffic within nodes overlaps with its traffic between nodes.
static double all_to_all_seconds(const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double local  = span->members / span->nodes;
    double inside = span->inside * bytes * (local - 1.0) / span->members / span->node;
    if (span->nodes == 1.0) {
        return inside + span->start_share * (predict_collective_start(hardware, span) + hardware->node_latency.value);
    }
    double outside = span->outside * bytes * (span->members - local) / span->members / span->network;
    return fmax(inside, outside) +
           span->start_share * (predict_collective_start(hardware, span) + hardware->network_latency.value);
}

// Returns the expected number of distinct places (nodes or ranks) that receive a token which chooses `choices` experts
// uniformly at random.
static double expect_places(double places, double choices)
{
    return places * (1.0 - pow(1.0 - 1.0 / places, choices));
}

// Shares of NVLink bandwidth that expert dispatch kernels reach. forwarded: for tokens that arrive from other nodes,
// 122 of 200 GB/s on H800. linked: if all ranks are on one node. DeepEP measured 153 to 158 of 200 GB/s on H800,
// HybridEP 735 and 674 of 900 GB/s on B200. These rates include the eighth of the tokens that a rank sends to itself;
// linked excludes it.
static const double forwarded = 0.61, linked = 0.685;

// Kernels such as DeepEP's send a token once to each node that has experts for it, and within a node once to each rank.
// Sets the bytes that they send within nodes (span->inside) and between nodes (span->outside), relative to one copy of
// the token per chosen expert.
static void send_tokens_once(struct span *span, const struct machine *machine, double choices)
{
    double local = span->members / span->nodes, bandwidth = machine->hardware->node_bandwidth.value;
    // The option expert_bandwidth counts also the tokens that a rank sends to itself, which do not cross a link.
    double limit = machine->software->expert_bandwidth.value * (local - 1.0) / local;
    span->inside = span->nodes * expect_places(span->members, choices) / choices;
    span->node   = fmin(span->node, (span->nodes > 1.0 ? forwarded : linked) * bandwidth);
    span->node   = limit > 0.0 ? fmin(span->node, limit) : span->node;
    if (span->nodes > 1.0) {
        span->outside = expect_places(span->nodes, choices) / choices;
    }
}

// Returns the seconds of a send/receive pair, or of one step of a ring, in which all ranks wait for the slowest link.
static double hop_seconds(const struct hardware_config *hardware, const struct span *span, double bytes,
                          bool is_network)
{
    return bytes / (is_network ? span->network : span->node) +
           (is_network ? hardware->network_latency.value : hardware->node_latency.value);
}

static double model_seconds(const struct machine *machine, const struct span *span, const struct op *op, double bytes,
                            bool is_network)
{
    switch ((enum op_route)op_table[op->kind].route) {
    case OP_ROUTE_RING:
        return predict_gather_seconds(machine, span, bytes);
    case OP_ROUTE_TREE:
        return predict_sum_seconds(machine, span, bytes);
    case OP_ROUTE_ALL_TO_ALL:
        return all_to_all_seconds(machine->hardware, span, bytes);
    case OP_ROUTE_HOP:
        return hop_seconds(machine->hardware, span, bytes, is_network);
    case OP_ROUTE_NONE:
        break;
    }
    FATAL(EXIT_INTERNAL, "%s is not a communication op", op_name((enum op_kind)op->kind));
}

// Returns the measured time of the op, or the time of the model if none was measured. If the op has fewer SMs than in
// the measurement (is_limited), returns the longer of these two times. One of n parts of an all-to-all (start_share is
// 1 / n) costs 1 / n of an all-to-all with the bytes of all n parts.
static double communication_seconds(const struct machine *machine, const struct span *span, const struct op *op,
                                    double bytes, bool is_network)
{
    double measured =
        span->is_once ? 0.0
                      : span->start_share * predict_collective_seconds(machine, span, op, bytes / span->start_share);
    if (measured > 0.0 && !span->is_limited) {
        return measured;
    }
    return fmax(measured, model_seconds(machine, span, op, bytes, is_network));
}

// Whether the op reduces the gradients of a layer.
static bool is_reduction(const struct op *op)
{
    return (op->stream == STREAM_GRADIENT_REDUCE || op->stream == STREAM_REPLICA_REDUCE) && op->tag.layer >= 0;
}

// Returns the seconds that compute stalls while the framework copies data into or out of the buffer of the collective.
// Each copy reads and writes the bytes.
static double copy_seconds(const struct machine *machine, const struct plan *plan, const struct op *op, double bytes)
{
    const struct hardware_config *hardware = machine->hardware;
    const struct software_config *software = machine->software;
    bool                          is_whole = op->kind == OP_ALL_GATHER || op->kind == OP_REDUCE_SCATTER;
    uint32_t                      axes     = plan->groups[op->shape.communication.group].axes;
    bool                          is_fsdp  = (axes & mesh_shard_axes(&plan->mesh, false)) != 0 &&
                   (op->stream == STREAM_WEIGHT_GATHER || op->stream == STREAM_GRADIENT_REDUCE);
    double copies = !is_whole                     ? 0.0
                    : is_fsdp                     ? software->fsdp_copies.value
                    : op->stream == STREAM_TENSOR ? software->tensor_copies.value
                                                  : 0.0;
    return predict_memory_seconds(hardware, copies * 2.0 * bytes);
}

static int64_t trained_elements(const struct plan *plan)
{
    int64_t elements = 0;
    for (int32_t i = 0; i < plan->unit_count; i++) {
        elements += plan->units[i].is_frozen ? 0 : plan->units[i].elements;
    }
    return elements;
}

// Returns how many collectives of this size the framework joins in one bucket (option bucket_elements); 1: none. The op
// then costs its share of the time of one collective for the whole bucket.
static double find_bucket(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    bool    is_of_unit = op->tag.layer >= 0 && (is_reduction(op) || op->stream == STREAM_WEIGHT_GATHER);
    int64_t elements = op->shape.communication.elements, limit = machine->software->bucket_elements;
    if (!is_of_unit || elements >= limit) {
        return 1.0;
    }
    int64_t all = trained_elements(plan);
    return (double)(all < limit ? all : limit) / (double)elements;
}

// Whether the op moves tokens to experts or back. An all-to-all of int32 exchanges token counts instead.
static bool moves_tokens(const struct plan *plan, const struct op *op)
{
    return op->kind == OP_ALL_TO_ALL && op->stream == STREAM_EXPERT &&
           plan->tensors[op->operand[COMMUNICATION_OUT]].format != FORMAT_I32;
}

// Whether the op is a reduce-scatter of input gradients over tp. If Q, K and V are separate linears, PyTorch adds their
// input gradients after the last of their GEMMs. No GEMM is left to overlap with the reduce-scatter, so compute waits
// for it.
static bool reduces_sums(const struct op *op)
{
    return op->kind == OP_REDUCE_SCATTER && op->stream == STREAM_TENSOR && op->tag.phase == PHASE_BACKWARD;
}

struct cost predict_cost_communication(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct hardware_config     *hardware = machine->hardware;
    const struct software_config     *software = machine->software;
    const struct communication_shape *shape    = &op->shape.communication;
    const struct plan_group          *group    = &plan->groups[shape->group];

    int64_t     domain      = hardware_domain(hardware, plan->mesh.world);
    double      bytes       = plan_op_bytes(plan, op) * predict_software_bytes(software, plan, op);
    int         processors  = find_processors(machine, op, group, domain, bytes);
    struct span span        = find_span(hardware, group, domain, processors);
    bool        is_exchange = moves_tokens(plan, op);
    bool        is_serial   = is_exchange && software->expert_serial;
    if (is_serial) {    // the framework has one all-to-all, gswbench one per local expert
        span.start_share = span.members / (double)plan->model.experts;
    }
    span.is_limited = processors < plan_connection_processors(op->stream, (int64_t)bytes);
    span.is_once    = is_exchange && software->expert_nodes;
    if (span.is_once) {
        send_tokens_once(&span, machine, (double)plan->model.top_k);
    } else if (op->kind == OP_ALL_TO_ALL && hardware->exchange_efficiency.value > 0.0) {
        span.node = fmin(span.node, hardware->exchange_efficiency.value * hardware->node_bandwidth.value);
    }
    bool is_link    = op_is_link((enum op_kind)op->kind);
    bool is_network = is_link ? plan_group_is_apart(group, shape->peer, domain) : span.nodes > 1.0;
    int  out        = op->kind == OP_RECEIVE ? 0 : is_network ? LINK_NETWORK_OUT : LINK_NODE_OUT;
    int  in         = op->kind == OP_SEND ? 0 : is_network ? LINK_NETWORK_IN : LINK_NODE_IN;

    struct cost cost = {.seconds    = communication_seconds(machine, &span, op, bytes, is_network),
                        .links      = (uint8_t)(out | in),
                        .is_alone   = is_serial || (software->separate_linears && reduces_sums(op)),
                        .processors = (int16_t)processors};
    cost.seconds += span.is_once ? span.inside / span.nodes * bytes * software->expert_exchange.value : 0.0;
    double bucket = find_bucket(machine, plan, op);
    if (bucket > 1.0) {
        cost.seconds = communication_seconds(machine, &span, op, bucket * bytes, is_network) / bucket;
    }
    cost.stall_seconds = copy_seconds(machine, plan, op, bytes);
    // the framework splits the reduction into reduction_parts collectives, and each of them pays the latency
    if (is_reduction(op)) {
        double latency = communication_seconds(machine, &span, op, 0.0, is_network),
               parts   = software->reduction_parts.value;
        cost.seconds += (parts - 1.0) * latency;
        cost.stall_seconds +=
            plan->precision.low_precision_linears != 0 ? software->fp8_reduction_stall.value * parts * latency : 0.0;
    }
    return cost;
}

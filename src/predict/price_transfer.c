// SPDX-License-Identifier: MIT
// Prices of transfers, by how a group lies on the nodes: ranks of one node talk over the links within it; of a group on
// several nodes, each rank on a node brings its own link to the network.
#include <math.h>

#include "gswbench/connection.h"
#include "gswbench/fatal.h"
#include "gswbench/op_table.h"
#include "gswbench/predict.h"

struct span {
    double members, nodes;
    double node, network;    // bytes a second of one device, as far as the multiprocessors of the transfer carry them
};

// Within a node copy engines can move what nobody adds up, and take no multiprocessor.
static bool is_copied(const struct machine *machine, const struct op *op, const struct plan_group *group)
{
    return machine->zero_cta && (op->kind == OP_ALL_GATHER || op->kind == OP_ALL_TO_ALL) &&
           plan_group_nodes(group, machine->hardware->gpus_per_node) == 1;
}

// What the library takes for a transfer of so many bytes, or the user's bound. Cores have no multiprocessors.
static int find_processors(const struct machine *machine, const struct op *op, const struct plan_group *group,
                           double bytes)
{
    int processors = plan_connection_processors(op->lane, (int64_t)bytes), most = (int)machine->spared_processors;
    return machine->hardware->cores > 0 || is_copied(machine, op, group) ? 0
           : most > 0 && most < processors                               ? most
                                                                         : processors;
}

static struct span find_span(const struct hardware_config *hardware, const struct plan_group *group, int processors)
{
    double carried = processors > 0 && hardware->channel_bandwidth.value > 0.0
                         ? processors * hardware->channel_bandwidth.value
                         : INFINITY;
    return (struct span){.members = (double)group->size,
                         .nodes   = (double)plan_group_nodes(group, hardware->gpus_per_node),
                         .node    = fmin(hardware->node_efficiency.value * hardware->node_bandwidth.value, carried),
                         .network =
                             fmin(hardware->network_efficiency.value * hardware->network_bandwidth.value, carried)};
}

static double hop_latency(const struct hardware_config *hardware, bool is_network)
{
    return is_network ? hardware->network_latency.value : hardware->node_latency.value;
}

// A ring through all members that crosses each node once.
static double ring_seconds(const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double local     = span->members / span->nodes;
    double bandwidth = span->nodes > 1.0 ? fmin(span->node, span->network * local) : span->node;
    double crossings = span->nodes > 1.0 ? span->nodes : 0.0;
    return bytes * (span->members - 1.0) / span->members / bandwidth + hardware->collective_latency.value +
           (local - 1.0) * span->nodes * hardware->node_latency.value + crossings * hardware->network_latency.value;
}

// The bytes of a reduction and a gather, at the latency of a tree up and down.
static double tree_seconds(const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double local     = span->members / span->nodes;
    double bandwidth = span->nodes > 1.0 ? fmin(span->node, span->network * local) : span->node;
    return 2.0 * bytes * (span->members - 1.0) / span->members / bandwidth + hardware->collective_latency.value +
           2.0 * (ceil(log2(local)) * hardware->node_latency.value +
                  ceil(log2(span->nodes)) * hardware->network_latency.value);
}

// What stays on the node and what leaves it travel at the same time.
static double all_to_all_seconds(const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double local  = span->members / span->nodes;
    double inside = bytes * (local - 1.0) / span->members / span->node;
    if (span->nodes == 1.0) {
        return inside + hardware->collective_latency.value + hardware->node_latency.value;
    }
    double outside = bytes * (span->members - local) / span->members / span->network;
    return fmax(inside, outside) + hardware->collective_latency.value + hardware->network_latency.value;
}

// Two ranks, or each rank and the next of a ring, of which the slowest counts.
static double hop_seconds(const struct hardware_config *hardware, const struct span *span, double bytes,
                          bool is_network)
{
    return bytes / (is_network ? span->network : span->node) + hop_latency(hardware, is_network);
}

static double transfer_seconds(const struct hardware_config *hardware, const struct span *span, const struct op *op,
                               double bytes, bool is_network)
{
    switch ((enum op_route)op_table[op->kind].route) {
    case OP_ROUTE_RING:
        return ring_seconds(hardware, span, bytes);
    case OP_ROUTE_TREE:
        return tree_seconds(hardware, span, bytes);
    case OP_ROUTE_ALL_TO_ALL:
        return all_to_all_seconds(hardware, span, bytes);
    case OP_ROUTE_HOP:
        return hop_seconds(hardware, span, bytes, is_network);
    case OP_ROUTE_NONE:
        break;
    }
    FATAL(EXIT_INTERNAL, "%s is not a transfer", op_name((enum op_kind)op->kind));
}

// Sums the gradients of a layer.
static bool is_reduction(const struct op *op)
{
    return (op->lane == LANE_GRADIENT_REDUCE || op->lane == LANE_REPLICA_REDUCE) && op->tag.layer >= 0;
}

struct price predict_price_transfer(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    const struct software_config *software = machine->software;
    const struct transfer_shape  *shape    = &op->shape.transfer;
    const struct plan_group      *group    = &plan->groups[shape->group];

    double      bytes      = plan_op_bytes(plan, op);
    int         processors = find_processors(machine, op, group, bytes);
    struct span span       = find_span(hardware, group, processors);
    bool        is_link    = op_is_link((enum op_kind)op->kind);
    bool is_network = is_link ? plan_group_is_apart(group, shape->peer, hardware->gpus_per_node) : span.nodes > 1.0;
    int  out        = op->kind == OP_RECEIVE ? 0 : is_network ? LINK_NETWORK_OUT : LINK_NODE_OUT;
    int  in         = op->kind == OP_SEND ? 0 : is_network ? LINK_NETWORK_IN : LINK_NODE_IN;

    struct price price = {.seconds    = transfer_seconds(hardware, &span, op, bytes, is_network),
                          .links      = (uint8_t)(out | in),
                          .processors = (int16_t)processors};
    if (software != NULL && is_reduction(op)) {    // each part has a beginning of its own
        double latency = transfer_seconds(hardware, &span, op, 0.0, is_network),
               parts   = software->reduction_parts.value;
        price.seconds += (parts - 1.0) * latency;
        price.stall_seconds =
            plan->precision.narrow_linears != 0 ? software->fp8_reduction_stall.value * parts * latency : 0.0;
    }
    return price;
}

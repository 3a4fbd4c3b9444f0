// SPDX-License-Identifier: MIT
// Prices of transfers, by how a group lies on the nodes: ranks of one node talk over the links within it; of a group on
// several nodes, each rank on a node brings its own link to the network. A node is here what these links connect, which
// may be a rack.
#include <math.h>

#include "gswbench/connection.h"
#include "gswbench/fatal.h"
#include "gswbench/op_table.h"
#include "gswbench/predict.h"

struct span {
    double members, nodes;
    double outside;          // share of an all-to-all's bytes for other nodes that crosses the network
    double node, network;    // bytes a second of one device, as far as the multiprocessors of the transfer carry them
};

// Within a node copy engines can move what nobody adds up, and take no multiprocessor.
static bool is_copied(const struct machine *machine, const struct op *op, const struct plan_group *group,
                      int64_t domain)
{
    return machine->zero_cta && (op->kind == OP_ALL_GATHER || op->kind == OP_ALL_TO_ALL) &&
           plan_group_nodes(group, domain) == 1;
}

// What the library takes for a transfer of so many bytes, or the user's bound. Cores have no multiprocessors.
static int find_processors(const struct machine *machine, const struct op *op, const struct plan_group *group,
                           int64_t domain, double bytes)
{
    int processors = plan_connection_processors(op->lane, (int64_t)bytes), most = (int)machine->spared_processors;
    return machine->hardware->cores > 0 || is_copied(machine, op, group, domain) ? 0
           : most > 0 && most < processors                                       ? most
                                                                                 : processors;
}

static struct span find_span(const struct hardware_config *hardware, const struct plan_group *group, int64_t domain,
                             int processors)
{
    double carried = processors > 0 && hardware->channel_bandwidth.value > 0.0
                         ? processors * hardware->channel_bandwidth.value
                         : INFINITY;
    return (struct span){.members = (double)group->size,
                         .nodes   = (double)plan_group_nodes(group, domain),
                         .node    = fmin(hardware->node_efficiency.value * hardware->node_bandwidth.value, carried),
                         .network =
                             fmin(hardware->network_efficiency.value * hardware->network_bandwidth.value, carried)};
}

// How NCCL can send the steps of a ring or tree, by its own model of tuning (src/graph/tuning.cc, 2.27 to 2.30): with
// less of the bandwidth, but without waiting for a flag behind each piece. Latencies are those of Hopper and Blackwell,
// as shares of the plain protocol's 3.4 us in a node and 14 us between nodes. It takes what is fastest for the size.
static const struct protocol {
    double bandwidth, node_latency, network_latency;
} protocols[] = {{1.0, 1.0, 1.0}, {0.92, 1.9 / 3.4, 4.0 / 14.0}, {0.5, 0.6 / 3.4, 2.7 / 14.0}};

// A latency that was measured is that of the protocol which the library took; cores have one way only.
static int count_protocols(const struct hardware_config *hardware)
{
    bool is_measured =
        hardware->node_latency.origin == QUANTITY_MEASURED || hardware->network_latency.origin == QUANTITY_MEASURED;
    return is_measured || hardware->cores > 0 ? 1 : (int)(sizeof(protocols) / sizeof(protocols[0]));
}

static double hop_latency(const struct hardware_config *hardware, bool is_network)
{
    return is_network ? hardware->network_latency.value : hardware->node_latency.value;
}

// A ring through all members that crosses each node once.
static double ring_seconds(const struct hardware_config *hardware, const struct span *span, double bytes,
                           const struct protocol *protocol)
{
    double local     = span->members / span->nodes;
    double bandwidth = span->nodes > 1.0 ? fmin(span->node, span->network * local) : span->node;
    double crossings = span->nodes > 1.0 ? span->nodes : 0.0;
    return bytes * (span->members - 1.0) / span->members / (bandwidth * protocol->bandwidth) +
           hardware->collective_latency.value +
           (local - 1.0) * span->nodes * hardware->node_latency.value * protocol->node_latency +
           crossings * hardware->network_latency.value * protocol->network_latency;
}

// The bytes of a reduction and a gather, at the latency of a tree up and down.
static double tree_seconds(const struct hardware_config *hardware, const struct span *span, double bytes,
                           const struct protocol *protocol)
{
    double local     = span->members / span->nodes;
    double bandwidth = span->nodes > 1.0 ? fmin(span->node, span->network * local) : span->node;
    return 2.0 * bytes * (span->members - 1.0) / span->members / (bandwidth * protocol->bandwidth) +
           hardware->collective_latency.value +
           2.0 * (ceil(log2(local)) * hardware->node_latency.value * protocol->node_latency +
                  ceil(log2(span->nodes)) * hardware->network_latency.value * protocol->network_latency);
}

static double fastest_seconds(double (*seconds)(const struct hardware_config *, const struct span *, double,
                                                const struct protocol *),
                              const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double fastest = INFINITY;
    for (int i = 0; i < count_protocols(hardware); i++) {
        fastest = fmin(fastest, seconds(hardware, span, bytes, &protocols[i]));
    }
    return fastest;
}

// What stays on the node and what leaves it, or a share of that, travel at the same time.
static double all_to_all_seconds(const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double local  = span->members / span->nodes;
    double inside = bytes * (local - 1.0) / span->members / span->node;
    if (span->nodes == 1.0) {
        return inside + hardware->collective_latency.value + hardware->node_latency.value;
    }
    double outside = span->outside * bytes * (span->members - local) / span->members / span->network;
    return fmax(inside, outside) + hardware->collective_latency.value + hardware->network_latency.value;
}

// Where a token crosses the network once for each node: the nodes that its experts are expected to be on, of those
// experts that are not here.
static double find_outside(const struct software_config *software, const struct plan *plan, const struct op *op,
                           double nodes)
{
    double choices = (double)plan->model.top_k;
    if (software == NULL || !software->expert_nodes || op->lane != LANE_EXPERT || nodes < 2.0 || choices < 1.0) {
        return 1.0;
    }
    return (1.0 - pow(1.0 - 1.0 / nodes, choices)) * nodes / choices;
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
        return fastest_seconds(ring_seconds, hardware, span, bytes);
    case OP_ROUTE_TREE:
        return fastest_seconds(tree_seconds, hardware, span, bytes);
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

// For how long compute stops while the program copies what it gathers or reduces into or out of the transfer's own
// memory.
static double copy_seconds(const struct machine *machine, const struct plan *plan, const struct op *op, double bytes)
{
    const struct hardware_config *hardware = machine->hardware;
    const struct software_config *software = machine->software;
    bool                          is_whole = op->kind == OP_ALL_GATHER || op->kind == OP_REDUCE_SCATTER;
    bool                          is_fsdp  = (plan->groups[op->shape.transfer.group].axes & 1u << AXIS_FSDP) != 0 &&
                   (op->lane == LANE_WEIGHT_GATHER || op->lane == LANE_GRADIENT_REDUCE);
    double copies = software == NULL || !is_whole ? 0.0
                    : is_fsdp                     ? software->fsdp_copies.value
                    : op->lane == LANE_TENSOR     ? software->tensor_copies.value
                                                  : 0.0;
    return copies * 2.0 * bytes / (hardware->memory_efficiency.value * hardware->memory_bandwidth.value);
}

struct price predict_price_transfer(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    const struct software_config *software = machine->software;
    const struct transfer_shape  *shape    = &op->shape.transfer;
    const struct plan_group      *group    = &plan->groups[shape->group];

    int64_t     domain     = hardware_domain(hardware, plan->mesh.world);
    double      bytes      = plan_op_bytes(plan, op);
    int         processors = find_processors(machine, op, group, domain, bytes);
    struct span span       = find_span(hardware, group, domain, processors);
    span.outside           = find_outside(software, plan, op, span.nodes);
    bool is_link           = op_is_link((enum op_kind)op->kind);
    bool is_network        = is_link ? plan_group_is_apart(group, shape->peer, domain) : span.nodes > 1.0;
    int  out               = op->kind == OP_RECEIVE ? 0 : is_network ? LINK_NETWORK_OUT : LINK_NODE_OUT;
    int  in                = op->kind == OP_SEND ? 0 : is_network ? LINK_NETWORK_IN : LINK_NODE_IN;

    struct price price  = {.seconds    = transfer_seconds(hardware, &span, op, bytes, is_network),
                           .links      = (uint8_t)(out | in),
                           .processors = (int16_t)processors};
    price.stall_seconds = copy_seconds(machine, plan, op, bytes);
    if (software != NULL && is_reduction(op)) {    // each part has a beginning of its own
        double latency = transfer_seconds(hardware, &span, op, 0.0, is_network),
               parts   = software->reduction_parts.value;
        price.seconds += (parts - 1.0) * latency;
        price.stall_seconds +=
            plan->precision.narrow_linears != 0 ? software->fp8_reduction_stall.value * parts * latency : 0.0;
    }
    return price;
}

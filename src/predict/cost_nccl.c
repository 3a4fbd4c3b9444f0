// SPDX-License-Identifier: MIT
// Computes the seconds of all-gathers, reduce-scatters and all-reduces by NCCL's tuning model (src/graph/tuning.cc,
// topo.h and search.cc of NCCL 2.27 to 2.30). The result is the time of the fastest algorithm (ring, tree, NVLS, PAT)
// and protocol.
#include <math.h>

#include "internal.h"

// NCCL's protocols Simple, LL128 and LL, for rings and trees. node_hop and network_hop are the latencies per hop of a
// ring with Simple in NCCL's tables for Hopper and Blackwell, in us. struct protocol has the bandwidth and latencies of
// a protocol relative to this ring. The model multiplies the relative latencies by node_latency and network_latency of
// [hardware]. LL and LL128 have a lower latency and bandwidth, because a flag travels with the data instead of after
// each chunk. In LL, half of the traffic is flags.
static const double node_hop = 3.4, network_hop = 14.0;
// Share of an NVLink's nominal bandwidth in NCCL's tables: 20.6 of 25 GB/s on Hopper, 40.1 of 50 GB/s on Blackwell.
static const double counted_share = 0.802;
enum { SIMPLE, LL128, LL, PROTOCOLS };
struct protocol {
    double bandwidth, node_latency, network_latency;
};
// Columns of the following tables: bandwidth, node_latency, network_latency.
static const struct protocol ring_protocols[PROTOCOLS] = {
    [SIMPLE] = {1.0, 1.0, 1.0}, [LL128] = {0.92, 1.9 / 3.4, 4.0 / 14.0}, [LL] = {0.5, 0.6 / 3.4, 2.7 / 14.0}};
static const struct protocol tree_protocols[PROTOCOLS] = {[SIMPLE] = {0.92, 4.0 / 3.4, 1.0},
                                                          [LL128]  = {0.92 * 0.9375, 1.25 / 3.4, 8.5 / 14.0},
                                                          [LL]     = {0.92 / 3.8, 0.6 / 3.4, 5.0 / 14.0}};
// Protocol for latencies that were measured on this machine: they include the effect of the protocol that NCCL chose.
static const struct protocol measured_protocol = {1.0, 1.0, 1.0};

// NCCL's factors on the bandwidth of a tree, by protocol and message size: 64 B, 128 B, ... 256 MiB.
enum { CORRECTIONS = 23, CORRECTED_FROM = 64 };
static const double tree_corrections[PROTOCOLS][CORRECTIONS] = {
    [SIMPLE] = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
    [LL128]  = {1., 1., 1., 1., 1., .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1., 1.},
    [LL]     = {1., 1., 1., 1., .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1., 1., 1., 1.}};

static double tree_correction(int protocol, double bytes)
{
    double power = floor(log2(fmax(bytes, 1.0) / CORRECTED_FROM));
    return power < 0.0 || power >= CORRECTIONS ? 1.0 : tree_corrections[protocol][(int)power];
}

// Returns NCCL's limit on the bandwidth of LL in bytes/s, for 1, 2 and more nodes. Other protocols have no limit.
static double max_bandwidth(int protocol, double nodes)
{
    return protocol != LL ? INFINITY : nodes == 1.0 ? 141e9 : nodes == 2.0 ? 39e9 : 20.4e9;
}

static bool is_measured(const struct hardware_config *hardware)
{
    return hardware->node_latency.origin == QUANTITY_MEASURED || hardware->network_latency.origin == QUANTITY_MEASURED;
}

// Critical path of a collective: seconds until it starts, consecutive hops within and between nodes, and bytes that
// cross one link in one direction.
struct path {
    double start, node_hops, network_hops, bytes;
};

double predict_collective_start(const struct hardware_config *hardware, const struct span *span)
{
    return span->nodes > 1.0 || is_measured(hardware) ? hardware->collective_latency.value
                                                      : hardware->node_collective_latency.value;
}

static double path_seconds(const struct hardware_config *hardware, const struct path *path,
                           const struct protocol *protocol, double bandwidth)
{
    return path->start + path->bytes / bandwidth +
           path->node_hops * hardware->node_latency.value * protocol->node_latency +
           path->network_hops * hardware->network_latency.value * protocol->network_latency;
}

// Returns the bandwidth of a ring or tree in one direction. Across nodes, each rank of a node adds its network link, up
// to the bandwidth within the node.
static double span_bandwidth(const struct span *span)
{
    return span->nodes > 1.0 ? fmin(span->node, span->network * span->members / span->nodes) : span->node;
}

// Returns a protocol with NCCL's changes for rings across nodes. With LL, a hop within a node takes 1 us instead of
// 0.6, because of the network proxy. An all-reduce (two passes) with Simple has 1.4 times the latency. With one rank
// per node, a hop between nodes has the latency of a tree, because no hop within a node hides a part of it.
static struct protocol ring_protocol(int i, const struct span *span, double passes)
{
    struct protocol protocol = ring_protocols[i];
    if (span->nodes > 1.0 && i == LL) {
        protocol.node_latency = 1.0 / node_hop;
    }
    if (span->nodes == span->members) {
        protocol.network_latency = tree_protocols[i].network_latency;
    }
    if (span->nodes > 1.0 && i == SIMPLE && passes > 1.0) {
        protocol.node_latency *= 1.4;
        protocol.network_latency *= 1.4;
    }
    return protocol;
}

// Returns the seconds of a ring with the fastest protocol. The ring visits all ranks and leaves each node once. passes
// is 1 for all-gather and reduce-scatter, 2 for all-reduce.
static double ring_seconds(const struct hardware_config *hardware, const struct span *span, double bytes, double passes)
{
    double      bandwidth = span_bandwidth(span), fastest = INFINITY;
    struct path path = {.start        = predict_collective_start(hardware, span),
                        .node_hops    = passes * (span->members - span->nodes),
                        .network_hops = passes * (span->nodes - 1.0),
                        .bytes        = passes * bytes * (span->members - 1.0) / span->members};
    if (hardware->cores > 0 || is_measured(hardware)) {
        return path_seconds(hardware, &path, &measured_protocol, bandwidth);
    }
    for (int i = 0; i < PROTOCOLS; i++) {
        struct protocol protocol = ring_protocol(i, span, passes);
        double          share    = fmin(bandwidth * protocol.bandwidth, max_bandwidth(i, span->nodes));
        fastest                  = fmin(fastest, path_seconds(hardware, &path, &protocol, share));
    }
    return fastest;
}

// Returns the protocol that NCCL's tuning chooses for a ring within a node. It uses the latencies of NCCL's tables, not
// of [hardware]. starts: start latency of each protocol in seconds. shares: bandwidth relative to Simple; LL reaches
// 141 of 361 GB/s on Hopper.
int predict_ring_protocol(const struct hardware_config *hardware, double members, double passes, double bytes)
{
    static const double starts[PROTOCOLS] = {8.4e-6, 14e-6, 6.6e-6}, shares[PROTOCOLS] = {1.0, 0.92, 0.39};
    double              hops = passes * (members - 1.0), bandwidth = counted_share * hardware->node_bandwidth.value;
    double              fastest  = INFINITY;
    int                 protocol = SIMPLE;
    for (int i = 0; i < PROTOCOLS; i++) {
        double seconds = starts[i] + hops * (1e-6 * node_hop * ring_protocols[i].node_latency +
                                             bytes / members / (shares[i] * bandwidth));
        if (seconds < fastest) {
            fastest  = seconds;
            protocol = i;
        }
    }
    return protocol;
}

// Returns the seconds of an all-reduce up and down a tree across nodes, with a chain through the ranks of each node. On
// CPUs, the ranks of a node form a tree, too.
static double tree_seconds(const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double      bandwidth = span_bandwidth(span), local = span->members / span->nodes, fastest = INFINITY;
    bool        is_cpu = hardware->cores > 0;
    struct path path   = {.start        = predict_collective_start(hardware, span),
                          .node_hops    = 2.0 * (is_cpu ? ceil(log2(local)) : local - 1.0),
                          .network_hops = 2.0 * ceil(log2(span->nodes)),
                          .bytes        = 2.0 * bytes * (span->members - 1.0) / span->members};
    if (is_cpu || is_measured(hardware)) {
        return path_seconds(hardware, &path, &measured_protocol, bandwidth);
    }
    for (int i = 0; i < PROTOCOLS; i++) {
        struct protocol protocol = tree_protocols[i];
        if (i == LL128 && span->nodes == 1.0) {
            protocol.bandwidth = 0.92 * 7.0 / 9.0;
        }
        double share = fmin(bandwidth * protocol.bandwidth, max_bandwidth(i, span->nodes)) * tree_correction(i, bytes);
        fastest      = fmin(fastest, path_seconds(hardware, &path, &protocol, share));
    }
    return fastest;
}

// NVLS (NVLink SHARP): the switch reduces the data of a node's ranks and multicasts the result. A head is a rank that
// handles one share of the bytes. With n heads, the link of a rank carries n + 1 shares. A head moves data at the
// largest rate in NCCL's tables (SM90 and SM100 merged) at which n + 1 shares fit into the link.
//
// 16 SMs saturate a link (enqueue.cc). The latency within a node is 25 us for any number of ranks. nvls_latency and
// nvls_network_latency are in us. node_latency and network_latency of [hardware] scale them as in a ring.
enum { HEADS_MAX = 32, NVLS_PROCESSORS = 16 };
static const double nvls_latency = 25.0, nvls_network_latency = 20.9;
static const double head_rates[] = {90e9, 80e9, 70e9, 60e9, 50e9, 45e9, 40e9, 30e9, 24e9,
                                    20e9, 19e9, 18e9, 15e9, 12e9, 11e9, 6e9,  3e9};

static double head_rate(double fits)
{
    for (size_t i = 0; i < sizeof(head_rates) / sizeof(head_rates[0]); i++) {
        if (head_rates[i] <= fits) {
            return head_rates[i];
        }
    }
    return fits;
}

// Whether NCCL uses NVLS: the machine must support it, and the framework must not disable it.
static bool has_nvls(const struct machine *machine)
{
    return machine->hardware->nvls_efficiency.value > 0.0 && machine->software->nvls;
}

static double find_heads(const struct span *span)
{
    return fmin(floor(span->members / span->nodes), HEADS_MAX);
}

// Returns the bytes/s that all NVLS heads (ranks that each handle a share of the bytes) exchange in one direction. One
// of the n shares that a head moves is its own and does not count. With one head or with copy engines, returns 0.
static double heads_bandwidth(const struct hardware_config *hardware, const struct span *span)
{
    double heads = find_heads(span), rate = head_rate(counted_share * hardware->node_bandwidth.value / (heads + 1.0));
    return hardware->nvls_efficiency.value * rate * (heads - 1.0) *
           fmin((double)span->processors / NVLS_PROCESSORS, 1.0);
}

static double nvls_start(const struct hardware_config *hardware)
{
    return is_measured(hardware) ? hardware->collective_latency.value
                                 : nvls_latency / node_hop * hardware->node_latency.value;
}

// Returns the seconds of an all-reduce with NVLS. Reduction and multicast overlap, which doubles the bandwidth. Across
// nodes, the ranks that handle the same share of the bytes reduce it in a tree. Two nodes exchange their sums once,
// which is half of a tree's traffic.
static double nvls_sum_seconds(const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double bandwidth = 2.0 * heads_bandwidth(hardware, span), latency = nvls_start(hardware);
    if (span->nodes > 1.0) {
        double hop = is_measured(hardware) ? 1.0 : nvls_network_latency / network_hop;
        bandwidth  = fmin(bandwidth, find_heads(span) * span->network * (span->nodes == 2.0 ? 2.0 : 1.0));
        latency += 2.0 * ceil(log2(span->nodes)) * hop * hardware->network_latency.value;
    }
    return latency + 2.0 * bytes * (span->members - 1.0) / span->members / bandwidth;
}

// Returns the seconds of PAT, NCCL's algorithm of parallel trees for groups with one rank per node. Its latency is 4 us
// times log2 of the nodes, rounded up, plus 2.8 us per rank. Both are scaled by network_latency / 14 us;
// collective_latency is added. Its bandwidth is 3/4 of a ring's.
static double pat_seconds(const struct hardware_config *hardware, const struct span *span, double bytes)
{
    double hops = ceil(log2(span->nodes)) / 3.5 + span->members * 2.8 / network_hop;
    return hardware->collective_latency.value + hops * hardware->network_latency.value +
           bytes / (0.75 * span_bandwidth(span));
}

double predict_gather_seconds(const struct machine *machine, const struct span *span, double bytes)
{
    const struct hardware_config *hardware = machine->hardware;
    double                        fastest  = ring_seconds(hardware, span, bytes, 1.0);
    if (span->nodes == 1.0 && span->members <= HEADS_MAX && has_nvls(machine)) {
        double bandwidth = heads_bandwidth(hardware, span) * (span->members - 1.0) / span->members;
        fastest          = fmin(fastest, nvls_start(hardware) + bytes / bandwidth);
    }
    bool has_pat =
        hardware->cores == 0 && !is_measured(hardware) && machine->software->pat && span->nodes == span->members;
    return has_pat ? fmin(fastest, pat_seconds(hardware, span, bytes)) : fastest;
}

double predict_sum_seconds(const struct machine *machine, const struct span *span, double bytes)
{
    const struct hardware_config *hardware = machine->hardware;
    double                        fastest  = tree_seconds(hardware, span, bytes);
    if (hardware->cores > 0) {
        return fastest;
    }
    fastest = fmin(fastest, ring_seconds(hardware, span, bytes, 2.0));
    return has_nvls(machine) ? fmin(fastest, nvls_sum_seconds(hardware, span, bytes)) : fastest;
}

// SPDX-License-Identifier: MIT
// Compares costs of collectives by NCCL protocol and by tree with calculations by hand.
#include <criterion/criterion.h>

#include "round_machine.h"

// Returns the cost in a group of ranks with a constant distance. Each protocol has its own latencies.
static double cost_among(enum op_kind kind, int64_t size, int64_t distance, int64_t node, int64_t elements)
{
    static int64_t         ranks[1152];
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan_group      group    = {.size = size, .ranks = ranks};
    struct plan            plan     = {.tensors = &tensor, .groups = &group};
    struct hardware_config hardware = round_machine();
    struct software_config software;
    struct op              op = {.kind = (uint8_t)kind, .shape.communication = {.elements = elements}};
    option_set_defaults(software_options, &software);
    software.pat                 = false;
    hardware.node_latency.origin = QUANTITY_PRIOR;
    hardware.gpus_per_node       = node;
    for (int64_t i = 0; i < size; i++) {
        ranks[i] = i * distance;
    }
    return predict_cost_op(&(struct machine){.hardware = &hardware, .software = &software}, &plan, &op).seconds;
}

static double cost_unmeasured(enum op_kind kind, int64_t size, int64_t elements)
{
    return cost_among(kind, size, 1, 8, elements);
}

static double cost_apart(int64_t elements)
{
    return cost_among(OP_ALL_GATHER, 8, 8, 8, elements);
}

Test(cost_protocol, takes_the_protocol_of_least_time)
{
    // 512 ranks on 64 nodes have 448 hops within nodes and 63 between nodes. Latencies within and between nodes are 3.4
    // and 14 us (Simple), 1.9 and 4 us (LL128), 1 and 2.7 us (LL). A collective starts in 15 us, within a node in 5 us.
    expect_seconds(cost_unmeasured(OP_ALL_GATHER, 512, 1),
                   2.0 / 512 * 511 / (0.5 * 3.67e10) + 15e-6 + 448 * 1e-6 + 63 * 2.7e-6);
    expect_seconds(cost_unmeasured(OP_ALL_GATHER, 512, 100000000),
                   2e8 / 512 * 511 / (0.92 * 8e10) + 15e-6 + 448 * 1.9e-6 + 63 * 4e-6);
    expect_seconds(cost_unmeasured(OP_ALL_GATHER, 512, 10000000000),
                   2e10 / 512 * 511 / 8e10 + 15e-6 + 448 * 3.4e-6 + 63 * 14e-6);
    expect_seconds(cost_unmeasured(OP_ALL_GATHER, 8, 10000000000), 2e10 / 8 * 7 / 1e11 + 5e-6 + 7 * 3.4e-6);
    expect_seconds(cost_unmeasured(OP_ALL_GATHER, 8, 1), 2.0 / 8 * 7 / (0.5 * 3.67e10) + 5e-6 + 7 * 0.6e-6);
}

// LL moves at most 20.4e9 bytes/s over many nodes and 39e9 over two. Half of the link bandwidth would be 4e10.
Test(cost_protocol, bounds_what_the_protocol_of_least_latency_moves)
{
    expect_seconds(cost_unmeasured(OP_ALL_GATHER, 512, 2000000),
                   4e6 / 512 * 511 / 20.4e9 + 15e-6 + 448 * 1e-6 + 63 * 2.7e-6);
}

// Each of 8 nodes has one rank, so no hops within nodes hide the network latency: 5 us with LL, 14 us with Simple.
Test(cost_protocol, has_the_latency_of_a_tree_where_each_node_has_one_rank)
{
    expect_seconds(cost_apart(1), 2.0 / 8 * 7 / (0.5 * 1e10) + 15e-6 + 7 * 5e-6);
    expect_seconds(cost_apart(1000000000), 2e9 / 8 * 7 / 1e10 + 15e-6 + 7 * 14e-6);
}

// 512 ranks on 64 nodes. A tree has chains of 7 hops within nodes and 6 levels between nodes, up and down. A ring goes
// around twice. NCCL corrects the bandwidth of trees by size: 0.9 at 2e7 bytes with LL128, 1 at 2e8.
Test(cost_protocol, sums_by_a_tree_with_latencies_of_its_own_or_by_a_ring)
{
    const double share = 2.0 * 511 / 512;
    expect_seconds(cost_unmeasured(OP_ALL_REDUCE, 512, 1),
                   share * 2.0 / (0.92 / 3.8 * 3.67e10) + 15e-6 + 2 * (7 * 0.6e-6 + 6 * 5.0e-6));
    expect_seconds(cost_unmeasured(OP_ALL_REDUCE, 512, 10000000),
                   share * 2e7 / (0.9 * 0.92 * 120 / 128 * 8e10) + 15e-6 + 2 * (7 * 1.25e-6 + 6 * 8.5e-6));
    expect_seconds(cost_unmeasured(OP_ALL_REDUCE, 512, 100000000),
                   share * 2e8 / (0.92 * 120 / 128 * 8e10) + 15e-6 + 2 * (7 * 1.25e-6 + 6 * 8.5e-6));
    expect_seconds(cost_unmeasured(OP_ALL_REDUCE, 512, 10000000000),
                   share * 2e10 / 8e10 + 15e-6 + 1.4 * 2 * (448 * 3.4e-6 + 63 * 14e-6));
    expect_seconds(cost_unmeasured(OP_ALL_REDUCE, 8, 10000000000), 2 * 2e10 / 8 * 7 / 1e11 + 5e-6 + 14 * 3.4e-6);
}

// All 1,152 ranks are on one node. A tree with LL128 reaches 7/9 of the bandwidth.
Test(cost_protocol, sums_by_a_tree_on_one_node)
{
    expect_seconds(cost_among(OP_ALL_REDUCE, 1152, 1, 1152, 75000000),
                   2.0 * 1151 / 1152 * 1.5e8 / (0.92 * 7 / 9 * 1e11) + 5e-6 + 2 * 1151 * 1.25e-6);
}

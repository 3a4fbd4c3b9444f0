// SPDX-License-Identifier: MIT
// Tests which algorithm the model of NCCL chooses, and its time: against published bus bandwidths of real machines, and
// against calculations by hand. Also compares costs of collectives by NCCL protocol and by tree with calculations by
// hand.
#include <criterion/criterion.h>

#include "collective_time.h"

// Returns the bus bandwidth as nccl-tests defines it.
static double bus_bandwidth(enum op_kind kind, int64_t size, double bytes)
{
    double actions = kind == OP_ALL_REDUCE ? 2.0 : 1.0;
    return actions * (double)(size - 1) / (double)size * bytes / group_seconds(kind, size, 1, bytes);
}

// Sources. H200 by number of devices: stas00, ml-engineering, network (NCCL 2.27.7); for 248 nodes nccl-tests, issue
// 283, "around 350". DGX H100: NCCL's maintainers, nccl-tests, issue 290. Two nodes of H100 and B200:
// coreweave/nccl-tests, pull request 92; GB200 NVL72: pull request 43. All-to-alls of 56 MiB: AWS's sweeps
// (awslabs/awsome-distributed-ai).
Test(cost_nccl, has_the_bus_bandwidths_that_were_published)
{
    static const struct {
        const char  *profile;
        enum op_kind kind;
        int64_t      size;
        double       gib, published, share;
    } cases[] = {
        {"h200", OP_ALL_REDUCE, 5, 16, 414e9, 0.04},
        {"h200", OP_ALL_REDUCE, 6, 16, 436e9, 0.04},
        {"h200", OP_ALL_REDUCE, 7, 16, 460e9, 0.04},
        {"h200", OP_ALL_REDUCE, 8, 16, 481e9, 0.04},
        {"h200", OP_ALL_REDUCE, 4, 16, 363e9, 0.04},    // NCCL used a ring; NVLS takes the same time here
        {"h200", OP_ALL_GATHER, 8, 16, 361e9, 0.04},    // a ring; NVLS would reach 208
        {"h200", OP_REDUCE_SCATTER, 8, 16, 363e9, 0.06},
        {"h200", OP_ALL_REDUCE, 1984, 0.5, 350e9, 0.15},
        {"h100-sxm", OP_ALL_REDUCE, 8, 16, 476e9, 0.04},
        {"h100-sxm", OP_ALL_REDUCE, 16, 8, 440.58e9, 0.1},
        {"b200", OP_ALL_REDUCE, 16, 8, 690.07e9, 0.04},
        {"gb200", OP_ALL_REDUCE, 72, 4, 839.16e9, 0.1},
        {"h100-sxm-efa", OP_ALL_TO_ALL, 32, 0.0546875, 45.1e9, 0.1},
        {"h100-sxm-efa", OP_ALL_TO_ALL, 64, 0.0546875, 40.4e9, 0.1},
        {"b300-efa", OP_ALL_TO_ALL, 32, 0.0546875, 94.0e9, 0.1},
        {"b300-efa", OP_ALL_TO_ALL, 64, 0.0546875, 74.0e9, 0.1},
        {"b300-efa", OP_ALL_TO_ALL, 128, 0.0546875, 73.8e9, 0.1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        config       = read_machine(cases[i].profile);
        double found = bus_bandwidth(cases[i].kind, cases[i].size, cases[i].gib * 1073741824.0);
        cr_expect_float_eq(found, cases[i].published, cases[i].share * cases[i].published, "%zu: %g", i, found);
    }
}

// Reads a machine profile and removes its measured times of collectives, so that the model is used.
static void read_model(const char *profile)
{
    config                           = read_machine(profile);
    config.hardware.collective_times = (struct collective_times){0};
}

// In NVLS each of 8 heads reduces a share in the switch. 9 shares must fit into 0.802 x 450e9 bytes/s, so a head moves
// 40e9. NVLS uses 16 SMs and starts in 25 us.
Test(cost_nccl, adds_up_in_the_switch_of_a_node)
{
    read_model("h100-sxm");
    const double bytes = 1e9, rate = 2 * 0.85 * 40e9 * 7;
    expect_time(OP_ALL_REDUCE, 8, 1, bytes, 25e-6 + 2 * bytes * 7 / 8 / rate);
    machine.sm_margin = 12;
    expect_time(OP_ALL_REDUCE, 8, 1, bytes, 25e-6 + 2 * bytes * 7 / 8 / (rate * 12 / 16));
}

// Without NVLS, an all-reduce uses a ring over links of 351e9 bytes/s (234e9 on A100) with 14 hops and the protocol
// Simple.
Test(cost_nccl, leaves_the_switch_alone_where_the_program_or_the_machine_does)
{
    read_model("h100-sxm");
    const double bytes = 1e10, ring = 5e-6 + 14 * 3.4e-6 + 2 * bytes * 7 / 8 / 351e9;
    config.software.nvls = false;
    expect_time(OP_ALL_REDUCE, 8, 1, bytes, ring);
    config.software.nvls                  = true;
    config.hardware.nvls_efficiency.value = 0.0;
    expect_time(OP_ALL_REDUCE, 8, 1, bytes, ring);
    read_model("a100-80gb");
    expect_time(OP_ALL_REDUCE, 8, 1, bytes, 9e-6 + 14 * 3.4e-6 + 2 * bytes * 7 / 8 / 234e9);
}

// Over several nodes the NVLS heads form trees, with 4 levels for 16 nodes and 2 for three nodes, and 20.9 us per hop.
// Each head has a network link of 0.85 x 50e9 bytes/s. Between two nodes half as many bytes are sent.
Test(cost_nccl, adds_up_over_several_nodes_by_trees_of_heads)
{
    read_model("h100-sxm");
    const double bytes = 1e9, network = 8 * 42.5e9, node = 2 * 0.85 * 40e9 * 7;
    expect_time(OP_ALL_REDUCE, 128, 1, bytes, 25e-6 + 8 * 20.9e-6 + 2 * bytes * 127 / 128 / network);
    expect_time(OP_ALL_REDUCE, 24, 1, bytes, 25e-6 + 4 * 20.9e-6 + 2 * bytes * 23 / 24 / network);
    expect_time(OP_ALL_REDUCE, 16, 1, bytes, 25e-6 + 2 * 20.9e-6 + 2 * bytes * 15 / 16 / node);
    read_model("b200");
    expect_time(OP_ALL_REDUCE, 16, 1, bytes, 25e-6 + 2 * 20.9e-6 + 2 * bytes * 15 / 16 / (2 * network));
}

// At most 32 devices of a rack are NVLS heads, with 20e9 bytes/s each. All-gathers use NVLS for at most 32 ranks and
// messages that are short for the number of steps of a ring. Other all-gathers use a ring.
Test(cost_nccl, has_thirty_two_heads_of_a_rack)
{
    read_model("gb200");
    const double heads = 0.74 * 20e9 * 31;
    expect_time(OP_ALL_REDUCE, 64, 1, 1e9, 25e-6 + 2 * 1e9 * 63 / 64 / (2 * heads));
    expect_time(OP_ALL_GATHER, 32, 1, 1.6e7, 25e-6 + 1.6e7 / (heads * 31 / 32));
    expect_time(OP_REDUCE_SCATTER, 32, 1, 1.6e7, 25e-6 + 1.6e7 / (heads * 31 / 32));
    expect_time(OP_ALL_GATHER, 32, 1, 1e9, 9e-6 + 31 * 3.4e-6 + 1e9 * 31 / 32 / 640e9);
    machine.zero_cta = true;    // copy engines use the full link bandwidth
    expect_time(OP_ALL_GATHER, 32, 1, 1.6e7, 9e-6 + 31 * 1.9e-6 + 1.6e7 * 31 / 32 / (0.92 * 720e9));
    machine.zero_cta = false;
    expect_time(OP_ALL_GATHER, 64, 1, 1.6e7, 9e-6 + 63 * 1.9e-6 + 1.6e7 * 63 / 64 / (0.92 * 640e9));
}

// Each of 64 nodes has one rank. PAT needs 6 hops of 4 us and 2.8 us per rank, and reaches 3/4 of 42.5e9 bytes/s. A
// ring would need at least 63 steps of 5 us.
Test(cost_nccl, gathers_over_nodes_of_one_rank_by_trees)
{
    read_model("h100-sxm");
    const double pat = 15e-6 + 6 * 4e-6 + 64 * 2.8e-6;
    expect_time(OP_ALL_GATHER, 64, 8, 4e6, pat + 4e6 / (0.75 * 42.5e9));
    expect_time(OP_REDUCE_SCATTER, 64, 8, 4e6, pat + 4e6 / (0.75 * 42.5e9));
    expect_time(OP_ALL_GATHER, 64, 8, 1e9, 15e-6 + 63 * 14e-6 + 1e9 * 63 / 64 / 42.5e9);
    config.software.pat = false;
    expect_time(OP_ALL_GATHER, 64, 8, 4e6, 15e-6 + 63 * 5e-6 + 4e6 * 63 / 64 / 20.4e9);
    config.software.pat = true;
    expect_time(OP_ALL_GATHER, 64, 1, 1e9, 15e-6 + 56 * 3.4e-6 + 7 * 14e-6 + 1e9 * 63 / 64 / 340e9);
}

// A tree over 2,048 nodes has 11 levels of 5 us with LL and 20.9 us with NVLS. A ring would have 2,047 hops.
Test(cost_nccl, adds_up_over_thousands_of_ranks_in_the_depth_of_a_tree)
{
    read_model("h100-sxm");
    const double share = 2.0 * 16383 / 16384;
    expect_time(OP_ALL_REDUCE, 16384, 1, 8, 15e-6 + 2 * (7 * 0.6e-6 + 11 * 5e-6) + share * 8 / (0.92 / 3.8 * 36.7e9));
    expect_time(OP_ALL_REDUCE, 16384, 1, 1e9, 25e-6 + 22 * 20.9e-6 + share * 1e9 / 340e9);
    config.software.nvls = false;
    expect_time(OP_ALL_REDUCE, 16384, 1, 1e9, 15e-6 + 2 * (7 * 4e-6 + 11 * 14e-6) + share * 1e9 / (0.92 * 340e9));
}

// The group has every fourth of 1,452 ranks: two on each of 181 nodes, and one on the last node, which therefore has no
// NVLS.
Test(cost_nccl, computes_the_cost_of_groups_that_nodes_do_not_share_evenly)
{
    read_model("h100-sxm");
    const double network = 42.5e9 * 363 / 182, local = 363.0 / 182;
    expect_time(OP_ALL_GATHER, 363, 4, 1e9, 15e-6 + 181 * (1.9e-6 + 4e-6) + 1e9 * 362 / 363 / (0.92 * network));
    expect_time(OP_ALL_REDUCE, 363, 4, 1e9,
                15e-6 + 2 * ((local - 1) * 4e-6 + 8 * 14e-6) + 2 * 1e9 * 362 / 363 / (0.92 * network));
}

// Returns the cost in a group of ranks with a constant distance. Each protocol has its own latencies.
static double cost_among(enum op_kind kind, int64_t size, int64_t distance, int64_t node, int64_t elements)
{
    static int64_t    ranks[1152];
    struct plan_group group = {.size = size, .ranks = ranks};
    struct op         op    = {.kind = (uint8_t)kind, .shape.communication = {.elements = elements}};
    init_round();
    given.plan.groups                  = &group;
    given.software.pat                 = false;
    given.hardware.node_latency.origin = QUANTITY_PRIOR;
    given.hardware.gpus_per_node       = node;
    for (int64_t i = 0; i < size; i++) {
        ranks[i] = i * distance;
    }
    return seconds_of(&op);
}

static void expect_unmeasured(enum op_kind kind, int64_t size, int64_t elements, double expected)
{
    expect_seconds(cost_among(kind, size, 1, 8, elements), expected);
}

Test(cost_protocol, takes_the_protocol_of_least_time)
{
    // 512 ranks on 64 nodes have 448 hops within nodes and 63 between nodes. Latencies within and between nodes are 3.4
    // and 14 us (Simple), 1.9 and 4 us (LL128), 1 and 2.7 us (LL). A collective starts in 15 us, within a node in 5 us.
    expect_unmeasured(OP_ALL_GATHER, 512, 1, 2.0 / 512 * 511 / (0.5 * 3.67e10) + 15e-6 + 448 * 1e-6 + 63 * 2.7e-6);
    expect_unmeasured(OP_ALL_GATHER, 512, 100000000,
                      2e8 / 512 * 511 / (0.92 * 8e10) + 15e-6 + 448 * 1.9e-6 + 63 * 4e-6);
    expect_unmeasured(OP_ALL_GATHER, 512, 10000000000, 2e10 / 512 * 511 / 8e10 + 15e-6 + 448 * 3.4e-6 + 63 * 14e-6);
    expect_unmeasured(OP_ALL_GATHER, 8, 10000000000, 2e10 / 8 * 7 / 1e11 + 5e-6 + 7 * 3.4e-6);
    expect_unmeasured(OP_ALL_GATHER, 8, 1, 2.0 / 8 * 7 / (0.5 * 3.67e10) + 5e-6 + 7 * 0.6e-6);
}

// LL moves at most 20.4e9 bytes/s over many nodes and 39e9 over two. Half of the link bandwidth would be 4e10.
Test(cost_protocol, bounds_what_the_protocol_of_least_latency_moves)
{
    expect_unmeasured(OP_ALL_GATHER, 512, 2000000, 4e6 / 512 * 511 / 20.4e9 + 15e-6 + 448 * 1e-6 + 63 * 2.7e-6);
}

// Each of 8 nodes has one rank, so no hops within nodes hide the network latency: 5 us with LL, 14 us with Simple.
Test(cost_protocol, has_the_latency_of_a_tree_where_each_node_has_one_rank)
{
    expect_seconds(cost_among(OP_ALL_GATHER, 8, 8, 8, 1), 2.0 / 8 * 7 / (0.5 * 1e10) + 15e-6 + 7 * 5e-6);
    expect_seconds(cost_among(OP_ALL_GATHER, 8, 8, 8, 1000000000), 2e9 / 8 * 7 / 1e10 + 15e-6 + 7 * 14e-6);
}

// 512 ranks on 64 nodes. A tree has chains of 7 hops within nodes and 6 levels between nodes, up and down. A ring goes
// around twice. NCCL corrects the bandwidth of trees by size: 0.9 at 2e7 bytes with LL128, 1 at 2e8.
Test(cost_protocol, sums_by_a_tree_with_latencies_of_its_own_or_by_a_ring)
{
    const double share = 2.0 * 511 / 512;
    expect_unmeasured(OP_ALL_REDUCE, 512, 1,
                      share * 2.0 / (0.92 / 3.8 * 3.67e10) + 15e-6 + 2 * (7 * 0.6e-6 + 6 * 5.0e-6));
    expect_unmeasured(OP_ALL_REDUCE, 512, 10000000,
                      share * 2e7 / (0.9 * 0.92 * 120 / 128 * 8e10) + 15e-6 + 2 * (7 * 1.25e-6 + 6 * 8.5e-6));
    expect_unmeasured(OP_ALL_REDUCE, 512, 100000000,
                      share * 2e8 / (0.92 * 120 / 128 * 8e10) + 15e-6 + 2 * (7 * 1.25e-6 + 6 * 8.5e-6));
    expect_unmeasured(OP_ALL_REDUCE, 512, 10000000000,
                      share * 2e10 / 8e10 + 15e-6 + 1.4 * 2 * (448 * 3.4e-6 + 63 * 14e-6));
    expect_unmeasured(OP_ALL_REDUCE, 8, 10000000000, 2 * 2e10 / 8 * 7 / 1e11 + 5e-6 + 14 * 3.4e-6);
}

// All 1,152 ranks are on one node. A tree with LL128 reaches 7/9 of the bandwidth.
Test(cost_protocol, sums_by_a_tree_on_one_node)
{
    expect_seconds(cost_among(OP_ALL_REDUCE, 1152, 1, 1152, 75000000),
                   2.0 * 1151 / 1152 * 1.5e8 / (0.92 * 7 / 9 * 1e11) + 5e-6 + 2 * 1151 * 1.25e-6);
}

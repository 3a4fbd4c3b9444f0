// SPDX-License-Identifier: MIT
// Tests which NCCL connections the collectives of a plan open, and the memory and SMs of these connections.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "gswbench/connection.h"

enum { MIB = 1 << 20, NODE = 8, RANKS = 64 };

// The plan of a test, with collectives of fp32 elements only, and the connections found for it.
static struct {
    struct plan       plan;
    struct op         ops[8];
    struct tensor     tensors[8];
    struct plan_group groups[2];
    int64_t           ranks[2][RANKS];
} communications;
static struct plan_connections connections;

static void free_list(void)
{
    free(connections.list);
}

TestSuite(connection, .fini = free_list);

static void set_group(int group, int64_t size, int64_t stride)
{
    communications.groups[group] = (struct plan_group){.size = size, .ranks = communications.ranks[group]};
    for (int64_t i = 0; i < size; i++) {
        communications.ranks[group][i] = i * stride;
    }
    communications.plan.groups      = communications.groups;
    communications.plan.group_count = group + 1;
}

static void append(enum op_kind kind, enum stream stream, int group, int64_t elements, int peer)
{
    struct plan *plan             = &communications.plan;
    int32_t      index            = plan->op_count++;
    plan->ops                     = communications.ops;
    plan->tensors                 = communications.tensors;
    communications.tensors[index] = (struct tensor){.format = FORMAT_F32, .elements = elements};
    communications.ops[index]     = (struct op){.kind = (uint8_t)kind, .stream = (uint8_t)stream, .operand_count = 2};
    communications.ops[index].operand[0] = kind == OP_RECEIVE ? -1 : index;
    communications.ops[index].operand[1] = kind == OP_SEND ? -1 : index;
    communications.ops[index].shape.communication =
        (struct communication_shape){.elements = elements, .group = group, .peer = peer};
}

Test(connection, takes_fewer_processors_for_small_communications_and_for_pipelines)
{
    static const struct {
        int     stream;
        int64_t bytes;
        int     processors;
    } cases[] = {
        {STREAM_GRADIENT_REDUCE, 4, 1},          {STREAM_GRADIENT_REDUCE, 64 << 10, 1},
        {STREAM_TENSOR, (64 << 10) + 1, 2},      {STREAM_WEIGHT_GATHER, 1 << 30, 16},
        {STREAM_EXPERT, 16 * (64 << 10), 16},    {STREAM_PIPELINE_SEND, 1 << 30, 2},
        {STREAM_PIPELINE_RECEIVE, 128 << 10, 2}, {STREAM_PIPELINE_SEND, 0, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(plan_connection_processors(cases[i].stream, cases[i].bytes), cases[i].processors, "case %zu", i);
    }
}

// NCCL needs 10 MiB to receive and 2 MiB to send for each channel on one node, and 10 MiB for each direction over the
// network.
Test(connection, has_buffers_for_both_ways_of_each_channel)
{
    set_group(0, 8, 1);
    set_group(1, 8, 8);
    append(OP_ALL_REDUCE, STREAM_GRADIENT_REDUCE, 0, 64 << 20, 0);
    append(OP_ALL_GATHER, STREAM_WEIGHT_GATHER, 1, 64 << 20, 0);
    plan_connections(&connections, &communications.plan, NODE);
    cr_assert_eq(connections.count, 2);
    cr_expect_eq(connections.list[0].stream, STREAM_WEIGHT_GATHER);
    cr_expect_eq(connections.list[0].nodes, 8);
    cr_expect_eq(connections.list[0].bytes, 16LL * 20 * MIB);
    cr_expect_eq(connections.list[1].nodes, 1);
    cr_expect_eq(connections.list[1].bytes, 16LL * 12 * MIB);
    cr_expect_eq(connections.bytes, 512LL * MIB);
    cr_expect_eq(connections.processors, 32);
    free(connections.list);

    plan_connections(&connections, &communications.plan, 64);    // 64 ranks per node, so all ranks are on one
    cr_expect_eq(connections.list[0].bytes, 16LL * 12 * MIB);
}

// NCCL 2.26 allocated 3.28 GB on each of 8 H100 GPUs for the first all-to-all, with 32 channels.
Test(connection, of_all_pairs_has_buffers_for_each_member_of_the_node)
{
    set_group(0, 8, 1);
    append(OP_ALL_TO_ALL, STREAM_EXPERT, 0, 64 << 20, 0);
    plan_connections(&connections, &communications.plan, NODE);
    cr_assert_eq(connections.count, 1);
    cr_expect_eq(connections.list[0].bytes, 16LL * 7 * 12 * MIB);
    double published = 3.28e9 / 32, modelled = (double)connections.list[0].bytes / 16;
    cr_expect(modelled > 0.8 * published && modelled < published, "%g of %g", modelled, published);
}

Test(connection, of_one_group_on_one_stream_is_one_whatever_it_carries)
{
    set_group(0, 8, 1);
    append(OP_ALL_REDUCE, STREAM_TENSOR, 0, 1, 0);
    append(OP_ROTATE, STREAM_TENSOR, 0, 32 << 10, 1);
    append(OP_ALL_REDUCE, STREAM_GRADIENT_REDUCE, 0, 1, 0);
    plan_connections(&connections, &communications.plan, NODE);
    cr_assert_eq(connections.count, 2);
    cr_expect_eq(connections.list[0].stream, STREAM_GRADIENT_REDUCE);
    cr_expect_eq(connections.list[0].processors, 1);
    cr_expect_eq(connections.list[1].largest_bytes, 128 << 10);
    cr_expect_eq(connections.list[1].processors, 2);
    cr_expect_eq(connections.list[1].bytes, 2LL * 2 * 12 * MIB);    // one ring, and one send/receive between neighbours
    cr_expect_eq(connections.processors, 3);
}

// A reduction and a gather, each with 16 SMs, may run at the same time. A pipeline stage may send and receive in both
// directions at once.
Test(connection, leaves_a_device_something_to_compute_with_or_says_what_would)
{
    char text[192];
    set_group(0, 8, 1);
    append(OP_ALL_REDUCE, STREAM_GRADIENT_REDUCE, 0, 64 << 20, 0);
    append(OP_ALL_GATHER, STREAM_WEIGHT_GATHER, 0, 64 << 20, 0);
    plan_connections(&connections, &communications.plan, NODE);
    cr_expect_null(plan_connections_excess(&connections, 0, 0, text, sizeof(text)));    // number of SMs unknown
    cr_expect_null(plan_connections_excess(&connections, 33, 0, text, sizeof(text)));
    cr_expect_str_eq(plan_connections_excess(&connections, 32, 0, text, sizeof(text)),
                     "collectives may use 32 SMs at a time, and the device has 32: none is left to compute; "
                     "run.sm_margin = 15 would do");
    cr_expect_null(plan_connections_excess(&connections, 32, 15, text, sizeof(text)));
    cr_expect_null(plan_connections_excess(&connections, 3, 1, text, sizeof(text)));
    cr_expect_str_eq(plan_connections_excess(&connections, 2, 1, text, sizeof(text)),
                     "collectives may use 2 SMs at a time, and the device has 2: none is left to compute");
}

Test(connection, of_a_pipeline_is_one_for_each_neighbour_and_way)
{
    set_group(0, 4, 4);    // two stages on each node
    communications.groups[0].index = 1;
    append(OP_SEND, STREAM_PIPELINE_SEND, 0, 1 << 20, 2);
    append(OP_SEND, STREAM_PIPELINE_SEND, 0, 1 << 20, 0);
    append(OP_RECEIVE, STREAM_PIPELINE_RECEIVE, 0, 1 << 20, 0);
    append(OP_SEND, STREAM_PIPELINE_SEND, 0, 1 << 20, 2);
    plan_connections(&connections, &communications.plan, NODE);
    cr_assert_eq(connections.count, 3);
    cr_expect_eq(connections.list[0].peer, 2);
    cr_expect_eq(connections.list[0].bytes, 2LL * 10 * MIB);    // over the network
    cr_expect_eq(connections.list[1].peer, 0);
    cr_expect_eq(connections.list[1].bytes, 2LL * 2 * MIB);
    cr_expect_eq(connections.list[2].stream, STREAM_PIPELINE_RECEIVE);
    cr_expect_eq(connections.list[2].bytes, 2LL * 10 * MIB);
    cr_expect_eq(connections.processors, 6);    // all may run at the same time
}

// SPDX-License-Identifier: MIT
// Prices of transfers against calculations by hand.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/config.h"
#include "round_machine.h"

enum { ELEMENTS = 2000000 };

Test(price_transfer, prices_transfers_as_the_program_makes_them)
{
    int64_t                ranks[]  = {0, 1, 2, 3, 4, 5, 6, 7};
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan_group      group    = {.size = 8, .ranks = ranks};
    struct plan            plan     = {.tensors = &tensor, .groups = &group};
    struct hardware_config hardware = round_machine();
    struct software_config software;
    option_set_defaults(software_options, &software);
    struct machine machine = {.hardware = &hardware, .software = &software};
    const double   moved = 2.0 * ELEMENTS * 7 / 8 / 1e11, latency = 15e-6 + 7 * 3.4e-6;

    // In seven parts there are seven beginnings, for which FP8 GEMMs wait.
    struct op op = {.kind = OP_REDUCE_SCATTER, .lane = LANE_GRADIENT_REDUCE, .shape.transfer = {.elements = ELEMENTS}};
    software.reduction_parts.value     = 7;
    software.fp8_reduction_stall.value = 0.5;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, moved + 7 * latency);
    cr_expect_eq(predict_price_op(&machine, &plan, &op).stall_seconds, 0.0);
    plan.precision.narrow_linears = 0xf;
    expect_seconds(predict_price_op(&machine, &plan, &op).stall_seconds, 3.5 * latency);
    op.tag.layer = -1;    // of no layer: the gradient norm
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, moved + latency);

    // What is copied is read and written; of tensor parallelism by a share of its own, and nothing of a ring's pieces.
    software.fsdp_copies.value = 1.5;
    cr_expect_eq(predict_price_op(&machine, &plan, &op).stall_seconds, 0.0);    // of replicas: nothing is copied
    group.axes = 1u << AXIS_FSDP;
    expect_seconds(predict_price_op(&machine, &plan, &op).stall_seconds, 1.5 * 2 * 2.0 * ELEMENTS / 1e12);
    op.lane = LANE_TENSOR;
    cr_expect_eq(predict_price_op(&machine, &plan, &op).stall_seconds, 0.0);
    software.tensor_copies.value = 1.0;
    expect_seconds(predict_price_op(&machine, &plan, &op).stall_seconds, 2 * 2.0 * ELEMENTS / 1e12);
    op.kind = OP_ROTATE;
    cr_expect_eq(predict_price_op(&machine, &plan, &op).stall_seconds, 0.0);
}

Test(price_transfer, sends_a_token_once_to_each_node_where_the_program_does)
{
    int64_t                ranks[16];
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan_group      group    = {.size = 16, .ranks = ranks};
    struct plan            plan     = {.tensors = &tensor, .groups = &group, .model.top_k = 8};
    struct hardware_config hardware = round_machine();
    struct software_config software;
    struct machine         machine = {.hardware = &hardware, .software = &software};
    struct op op = {.kind = OP_ALL_TO_ALL, .lane = LANE_EXPERT, .shape.transfer = {.elements = 100 * ELEMENTS}};
    option_set_defaults(software_options, &software);
    for (int64_t i = 0; i < 16; i++) {
        ranks[i] = i;
    }
    double bytes = 2.0 * 100 * ELEMENTS, latency = 15e-6 + 14e-6;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, bytes / 2 / 1e10 + latency);
    software.expert_nodes = true;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, bytes / 8 * (255.0 / 256) / 1e10 + latency);
    op.lane = LANE_CONTEXT;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, bytes / 2 / 1e10 + latency);
}

static double price_gather(int64_t size, int64_t elements)
{
    int64_t                ranks[512];
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan_group      group    = {.size = size, .ranks = ranks};
    struct plan            plan     = {.tensors = &tensor, .groups = &group};
    struct hardware_config hardware = round_machine();
    struct op              op       = {.kind = OP_ALL_GATHER, .shape.transfer = {.elements = elements}};
    hardware.node_latency.origin    = QUANTITY_PRIOR;
    for (int64_t i = 0; i < size; i++) {
        ranks[i] = i;
    }
    return predict_price_op(&(struct machine){.hardware = &hardware}, &plan, &op).seconds;
}

Test(price_transfer, takes_the_protocol_of_least_time)
{
    // 512 ranks of 64 nodes: 448 hops within nodes and 64 between them, of 3.4 and 14 us, 1.9 and 4, or 0.6 and 2.7.
    expect_seconds(price_gather(512, 1), 2.0 / 512 * 511 / (0.5 * 3.66e10) + 15e-6 + 448 * 0.6e-6 + 64 * 2.7e-6);
    expect_seconds(price_gather(512, 100000000), 2e8 / 512 * 511 / (0.92 * 8e10) + 15e-6 + 448 * 1.9e-6 + 64 * 4e-6);
    expect_seconds(price_gather(512, 10000000000), 2e10 / 512 * 511 / 8e10 + 15e-6 + 448 * 3.4e-6 + 64 * 14e-6);
    expect_seconds(price_gather(8, 10000000000), 2e10 / 8 * 7 / 1e11 + 15e-6 + 7 * 3.4e-6);
}

Test(price_transfer, carries_no_more_than_the_multiprocessors_of_a_transfer_do)
{
    int64_t                ranks[]  = {0, 1, 2, 3, 4, 5, 6, 7};
    struct plan_group      group    = {.size = 8, .ranks = ranks};
    struct tensor          tensor   = {.format = FORMAT_BF16, .elements = ELEMENTS};
    struct plan            plan     = {.tensors = &tensor, .groups = &group};
    struct hardware_config hardware = round_machine();
    struct machine         machine  = {.hardware = &hardware};
    struct op              op       = {.kind           = OP_ALL_GATHER,
                                       .lane           = LANE_WEIGHT_GATHER,
                                       .operand_count  = 2,
                                       .operand        = {0, 0},
                                       .shape.transfer = {.elements = ELEMENTS}};
    const double           latency = 15e-6 + 7 * 3.4e-6, bytes = 2.0 * ELEMENTS * 7 / 8;
    struct price           price = predict_price_op(&machine, &plan, &op);
    cr_expect_eq(price.processors, 16);
    expect_seconds(price.seconds, bytes / 1e11 + latency);
    hardware.channel_bandwidth.value = 5e9;    // 8e10 on 16 of them
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, bytes / 8e10 + latency);
    machine.spared_processors = 4;
    price                     = predict_price_op(&machine, &plan, &op);
    cr_expect_eq(price.processors, 4);
    expect_seconds(price.seconds, bytes / 2e10 + latency);
    hardware.channel_bandwidth.value = 0.0;    // nothing is known of them
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, bytes / 1e11 + latency);
    machine.zero_cta                 = true;    // copy engines: no multiprocessor, and no bound by them
    hardware.channel_bandwidth.value = 5e9;
    cr_expect_eq(predict_price_op(&machine, &plan, &op).processors, 0);
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, bytes / 1e11 + latency);
    op.kind = OP_REDUCE_SCATTER;    // which adds up
    cr_expect_eq(predict_price_op(&machine, &plan, &op).processors, 4);
    machine.zero_cta = false;
    op.kind          = OP_ALL_GATHER;
    hardware.cores   = 2;
    cr_expect_eq(predict_price_op(&machine, &plan, &op).processors, 0);
}

static struct price price_transfer(enum op_kind kind, int64_t size, int64_t distance)
{
    int64_t                ranks[64];
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan_group      group    = {.size = size, .ranks = ranks};
    struct plan            plan     = {.tensors = &tensor, .groups = &group};
    struct hardware_config hardware = round_machine();
    struct op              op       = {.kind = (uint8_t)kind, .shape.transfer = {.elements = ELEMENTS, .peer = 1}};
    for (int64_t i = 0; i < size; i++) {
        ranks[i] = i * distance;
    }
    return predict_price_op(&(struct machine){.hardware = &hardware}, &plan, &op);
}

Test(price_transfer, prices_a_collective_by_how_its_group_lies_on_the_nodes)
{
    const double bytes = 2.0 * ELEMENTS;
    // 8 ranks of a node; 16 of two, each with its own link to the network, 8e10 bytes/s together; 8 of 8 nodes.
    expect_seconds(price_transfer(OP_ALL_GATHER, 8, 1).seconds, bytes * 7 / 8 / 1e11 + 15e-6 + 7 * 3.4e-6);
    expect_seconds(price_transfer(OP_REDUCE_SCATTER, 16, 1).seconds,
                   bytes * 15 / 16 / 8e10 + 15e-6 + 14 * 3.4e-6 + 2 * 14e-6);
    expect_seconds(price_transfer(OP_ALL_GATHER, 8, 8).seconds, bytes * 7 / 8 / 1e10 + 15e-6 + 8 * 14e-6);
    expect_seconds(price_transfer(OP_ALL_REDUCE, 16, 1).seconds,
                   2 * bytes * 15 / 16 / 8e10 + 15e-6 + 6 * 3.4e-6 + 2 * 14e-6);
    expect_seconds(price_transfer(OP_ALL_TO_ALL, 16, 1).seconds, bytes * 8 / 16 / 1e10 + 15e-6 + 14e-6);
    expect_seconds(price_transfer(OP_ALL_TO_ALL, 8, 1).seconds, bytes * 7 / 8 / 1e11 + 15e-6 + 3.4e-6);
    cr_expect_eq(price_transfer(OP_ALL_GATHER, 8, 1).links, LINK_NODE_OUT | LINK_NODE_IN);
    cr_expect_eq(price_transfer(OP_ALL_GATHER, 8, 8).links, LINK_NETWORK_OUT | LINK_NETWORK_IN);
}

static struct price price_in_domain(int64_t size, int64_t distance, int64_t world)
{
    int64_t                ranks[256];
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan_group      group    = {.size = size, .ranks = ranks};
    struct plan            plan     = {.tensors = &tensor, .groups = &group, .mesh.world = world};
    struct hardware_config hardware = round_machine();
    struct op              op       = {.kind = OP_ALL_GATHER, .shape.transfer = {.elements = ELEMENTS}};
    hardware.gpus_per_node          = 4;
    hardware.link_domain            = 72;
    for (int64_t i = 0; i < size; i++) {
        ranks[i] = i * distance;
    }
    return predict_price_op(&(struct machine){.hardware = &hardware}, &plan, &op);
}

Test(price_transfer, takes_a_domain_of_links_for_a_node)
{
    const double bytes = 2.0 * ELEMENTS;
    // 16 ranks of 4 nodes, 72 of 18, all in one domain; 128 ranks take 64 of two domains each, 144 take 72.
    expect_seconds(price_in_domain(16, 1, 64).seconds, bytes * 15 / 16 / 1e11 + 15e-6 + 15 * 3.4e-6);
    expect_seconds(price_in_domain(72, 1, 72).seconds, bytes * 71 / 72 / 1e11 + 15e-6 + 71 * 3.4e-6);
    expect_seconds(price_in_domain(128, 1, 128).seconds, bytes * 127 / 128 / 1e11 + 15e-6 + 126 * 3.4e-6 + 2 * 14e-6);
    expect_seconds(price_in_domain(2, 64, 128).seconds, bytes / 2 / 1e10 + 15e-6 + 2 * 14e-6);
    expect_seconds(price_in_domain(2, 64, 144).seconds, bytes / 2 / 1e11 + 15e-6 + 3.4e-6);
}

Test(price_transfer, takes_single_nodes_where_a_job_fills_none_evenly)
{
    struct hardware_config hardware = round_machine();
    hardware.gpus_per_node          = 4;
    hardware.link_domain            = 72;
    cr_expect_eq(hardware_domain(&hardware, 74), 4);
    cr_expect_eq(hardware_domain(&hardware, 90), 4);
    cr_expect_eq(hardware_domain(&hardware, 96), 48);
}

Test(price_transfer, prices_what_two_ranks_send_each_other_as_one_hop)
{
    const double bytes = 2.0 * ELEMENTS;
    expect_seconds(price_transfer(OP_SEND, 4, 1).seconds, bytes / 1e11 + 3.4e-6);
    expect_seconds(price_transfer(OP_RECEIVE, 4, 8).seconds, bytes / 1e10 + 14e-6);
    expect_seconds(price_transfer(OP_ROTATE, 16, 1).seconds, bytes / 1e10 + 14e-6);
    cr_expect_eq(price_transfer(OP_SEND, 4, 1).links, LINK_NODE_OUT);
    cr_expect_eq(price_transfer(OP_RECEIVE, 4, 8).links, LINK_NETWORK_IN);
}

// SPDX-License-Identifier: MIT
// Compares costs of collectives with calculations by hand. Also compares costs of cp attention with calculations by
// hand. The framework all-gathers keys and values. It then computes attention in one part per cp rank, over the keys
// and values from that rank.
#include <criterion/criterion.h>
#include <math.h>

#include "round_machine.h"

enum { ELEMENTS = 2000000 };

// One collective of BF16 elements over a group whose ranks have a constant distance.
static struct op         collective;
static int64_t           ranks[256];
static struct plan_group group = {.ranks = ranks};

static void set_up(enum op_kind kind, int stream, int64_t size, int64_t distance)
{
    init_round();
    given.plan.groups      = &group;
    given.plan.model.top_k = 8;
    group.size             = size;
    collective             = (struct op){
                    .kind = (uint8_t)kind, .stream = (uint8_t)stream, .shape.communication = {.elements = ELEMENTS, .peer = 1}};
    for (int64_t i = 0; i < size; i++) {
        ranks[i] = i * distance;
    }
}

static struct cost cost(void)
{
    return cost_of(&collective);
}

static void expect_duration(double expected)
{
    expect_cost(&collective, expected);
}

Test(cost_communication, computes_the_cost_of_communications_as_the_program_makes_them)
{
    const double moved = 2.0 * ELEMENTS * 7 / 8 / 1e11, latency = 15e-6 + 7 * 3.4e-6;
    set_up(OP_REDUCE_SCATTER, STREAM_GRADIENT_REDUCE, 8, 1);

    // The reduction is split into seven parts with one latency each. They stall only GEMMs in FP8 or FP4.
    given.software.reduction_parts.value     = 7;
    given.software.fp8_reduction_stall.value = 0.5;
    expect_duration(moved + 7 * latency);
    cr_expect_eq(cost().stall_seconds, 0.0);
    given.plan.precision.low_precision_linears = 0xf;
    expect_seconds(cost().stall_seconds, 3.5 * latency);
    collective.tag.layer = -1;    // the gradient norm, which belongs to no layer
    expect_duration(moved + latency);

    // Frameworks copy gathered and reduced data between buffers, which reads and writes memory. tp has its own number
    // of copies, and ring steps have none.
    given.software.fsdp_copies.value = 1.5;
    cr_expect_eq(cost().stall_seconds, 0.0);    // replicas: no copies
    group.axes = 1u << AXIS_FSDP;
    expect_seconds(cost().stall_seconds, 1.5 * 2 * 2.0 * ELEMENTS / 1e12);
    collective.stream = STREAM_TENSOR;
    cr_expect_eq(cost().stall_seconds, 0.0);
    given.software.tensor_copies.value = 1.0;
    expect_seconds(cost().stall_seconds, 2 * 2.0 * ELEMENTS / 1e12);
    collective.kind = OP_ROTATE;
    cr_expect_eq(cost().stall_seconds, 0.0);
}

// Buckets of 1e7 elements contain this parameter group of 2e6. So it takes a fifth of the time of a bucket and a fifth
// of its latency.
Test(cost_communication, reduces_small_groups_in_buckets)
{
    const double     moved = 2.0 * ELEMENTS * 7 / 8 / 1e11, latency = 15e-6 + 7 * 3.4e-6;
    struct plan_unit units[] = {{.elements = 9 * ELEMENTS}, {.elements = 90 * ELEMENTS, .is_frozen = true}};
    set_up(OP_REDUCE_SCATTER, STREAM_GRADIENT_REDUCE, 8, 1);
    given.plan.units      = units;
    given.plan.unit_count = 2;

    given.software.bucket_elements = 5 * ELEMENTS;
    expect_duration(moved + latency / 5);
    given.software.bucket_elements = 50 * ELEMENTS;    // all trained elements fit into one bucket
    expect_duration(moved + latency / 9);
    given.software.bucket_elements = ELEMENTS;
    expect_duration(moved + latency);
    given.software.bucket_elements = 5 * ELEMENTS;
    collective.tag.layer           = -1;    // the gradient norm
    expect_duration(moved + latency);
}

// With delayed scaling, scales are known before the Ulysses all-to-all, so it can send FP8.
Test(cost_communication, exchanges_heads_in_fp8_where_attention_is)
{
    set_up(OP_ALL_TO_ALL, STREAM_CONTEXT, 8, 1);
    given.plan.precision.low_precision_linears = 0xf;
    double wide                                = cost().seconds;
    given.software.fp8_attention               = true;
    double half                                = 2.0 * ELEMENTS / 2 * 7 / 8 / 1e11;
    given.plan.precision.recipe                = RECIPE_CURRENT;
    expect_duration(wide);
    given.plan.precision.recipe = RECIPE_DELAYED;
    expect_duration(wide - half);
}

Test(cost_communication, sends_a_token_once_to_each_node_where_the_program_does)
{
    double bytes = 2.0 * 100 * ELEMENTS, latency = 15e-6 + 14e-6;
    set_up(OP_ALL_TO_ALL, STREAM_EXPERT, 16, 1);
    collective.shape.communication.elements = 100 * ELEMENTS;
    expect_duration(bytes / 2 / 1e10 + latency);
    given.software.expert_nodes = true;
    // A token chooses 8 experts. Each of the two nodes has at least one of them in 255 of 256 cases. One of the nodes
    // is the rank's own, and gets nothing over the network.
    expect_duration(bytes / 8 * (255.0 / 256) / 1e10 + latency);
    group.size = 8;    // on one node, 8 experts are on 5.25 ranks on average; an eighth is local
    expect_duration(bytes * (1 - pow(7.0 / 8, 8)) * 7 / 8 / 0.685e11 + 15e-6 + 3.4e-6);
    group.size        = 16;
    collective.stream = STREAM_CONTEXT;
    expect_duration(bytes / 2 / 1e10 + latency);
}

// Over two nodes, expert-parallel kernels forward tokens at 0.61 of the links of a node. On one node they reach 0.685
// of them, or less if the rate of their SMs is lower.
Test(cost_communication, forwards_tokens_at_a_share_of_the_links)
{
    double bytes = 2.0 * 100 * ELEMENTS;
    set_up(OP_ALL_TO_ALL, STREAM_EXPERT, 16, 1);
    collective.shape.communication.elements = 100 * ELEMENTS;
    given.software.expert_nodes             = true;
    given.hardware.network_bandwidth.value  = 1e12;
    double reached                          = 16 * (1 - pow(15.0 / 16, 8));
    expect_duration(2 * reached / 8 * bytes * 7 / 16 / 0.61e11 + 15e-6 + 14e-6);
    group.size                            = 8;
    given.software.expert_bandwidth.value = 4e10;    // includes the eighth that stays on the rank
    expect_duration(bytes * (1 - pow(7.0 / 8, 8)) * 7 / 8 / 3.5e10 + 15e-6 + 3.4e-6);
    given.software.expert_bandwidth.value = 4e11;
    expect_duration(bytes * (1 - pow(7.0 / 8, 8)) * 7 / 8 / 0.685e11 + 15e-6 + 3.4e-6);
}

// 8 experts are on 6.45 of 16 ranks on average, however many ranks a node has.
Test(cost_communication, reorders_the_tokens_that_a_rank_receives)
{
    double reached = 16 * (1 - pow(15.0 / 16, 8)), bytes = 2.0 * 100 * ELEMENTS;
    for (int64_t distance = 1; distance <= 8; distance *= 8) {
        set_up(OP_ALL_TO_ALL, STREAM_EXPERT, 16, distance);
        collective.shape.communication.elements = 100 * ELEMENTS;
        given.software.expert_nodes             = true;
        double sent                             = cost().seconds;
        given.software.expert_exchange.value    = 1e-9;
        expect_duration(sent + reached / 8 * bytes * 1e-9);
    }
}

// Returns the bandwidth in DeepEP's convention (table of normal kernels, docs/legacy.md). It counts a token once per
// node, or once per rank on a single node. 4,096 tokens of 7,168 elements go to 8 experts. Nodes have 8 devices with
// this link bandwidth (H800: 200 GB/s) and 50 GB/s of network per device.
static double deepep_bandwidth(int64_t nodes, double node_bandwidth, double byte_seconds)
{
    const int64_t elements = 4096 * 7168;
    set_up(OP_ALL_TO_ALL, STREAM_EXPERT, 8 * nodes, 1);
    collective.shape.communication.elements = 8 * elements;
    given.software.expert_nodes             = true;
    given.software.expert_exchange.value    = byte_seconds;
    given.hardware.node_bandwidth.value     = node_bandwidth;
    given.hardware.network_bandwidth.value  = 0.85 * 50e9;
    double counted = nodes == 1 ? 8.0 : (double)nodes, places = counted * (1.0 - pow(1.0 - 1.0 / counted, 8.0));
    return places * 2.0 * (double)elements / cost().seconds;
}

Test(cost_communication, takes_as_long_as_published_for_tokens_that_go_once_to_each_node)
{
    static const struct {
        int64_t nodes;
        double  node_bandwidth, byte_seconds, published;
    } cases[] = {
        {2, 200e9, 0.0, 43e9},
        {4, 200e9, 0.0, 57.5e9},
        {8, 200e9, 0.0, 50.5e9},
        {1, 200e9, 0.0, 155.5e9},
        // HybridEP on B200, both directions: only kernels, then the complete call
        {1, 900e9, 0.0, 704e9},
        {1, 900e9, 0.46e-12, 533e9},
    };
    for (int i = 0; i < 6; i++) {
        double found = deepep_bandwidth(cases[i].nodes, cases[i].node_bandwidth, cases[i].byte_seconds);
        cr_expect_float_eq(found, cases[i].published, 0.1 * cases[i].published, "%d: %g", i, found);
    }
}

// SimuMax measured an all-to-all at 577 GB/s on 8 B200 with NCCL of 2026 (configs/system/b200_bf16_ceperm.json,
// all2all).
Test(cost_communication, exchanges_all_with_all_at_a_rate_of_its_own)
{
    const double moved = 2.0 * ELEMENTS * 7 / 8, latency = 15e-6 + 3.4e-6;
    set_up(OP_ALL_TO_ALL, STREAM_EXPERT, 8, 1);
    given.hardware.exchange_efficiency.value = 0.64;
    expect_duration(moved / 64e9 + latency);
    given.hardware.node_efficiency.value = 0.5;    // limits all collectives, and now also this all-to-all
    expect_duration(moved / 50e9 + latency);
    given.hardware.node_efficiency.value = 1.0;
    collective.kind                      = OP_ALL_GATHER;
    expect_duration(moved / 1e11 + 15e-6 + 7 * 3.4e-6);
}

Test(cost_communication, tells_how_many_tokens_there_are_by_an_exchange_of_its_own)
{
    set_up(OP_ALL_TO_ALL, STREAM_EXPERT, 8, 1);
    given.tensors[0].format      = FORMAT_I32;
    given.plan.model.experts     = 32;
    given.software.expert_serial = given.software.expert_nodes = true;
    cr_expect_not(cost().is_alone);
    expect_duration(4.0 * ELEMENTS * 7 / 8 / 1e11 + 15e-6 + 3.4e-6);
}

Test(cost_communication, computes_the_cost_of_a_part_of_an_exchange_that_compute_waits_for)
{
    const double moved = 2.0 * ELEMENTS * 7 / 8 / 1e11, latency = 15e-6 + 3.4e-6;
    set_up(OP_ALL_TO_ALL, STREAM_EXPERT, 8, 1);
    given.plan.model.experts = 32;
    cr_expect_not(cost().is_alone);
    expect_duration(moved + latency);
    given.software.expert_serial = true;    // 4 local experts make four parts, each with a quarter of the latency
    cr_expect(cost().is_alone);
    expect_duration(moved + latency / 4);
    collective.stream = STREAM_CONTEXT;
    cr_expect_not(cost().is_alone);
}

Test(cost_communication, lets_compute_wait_for_the_reduction_of_summed_input_gradients)
{
    set_up(OP_REDUCE_SCATTER, STREAM_TENSOR, 8, 1);
    collective.tag.phase = PHASE_BACKWARD;
    cr_expect_not(cost().is_alone);
    given.software.separate_linears = true;
    cr_expect(cost().is_alone);
    collective.tag.phase = PHASE_FORWARD;
    cr_expect_not(cost().is_alone);
    collective.tag.phase = PHASE_BACKWARD;
    collective.stream    = STREAM_GRADIENT_REDUCE;
    cr_expect_not(cost().is_alone);
}

Test(cost_communication, gathers_in_fp8_what_the_program_casts_before)
{
    struct tensor tensors[] = {{.format = FORMAT_BF16, .first_op = -1}, {.format = FORMAT_BF16, .last_op = 1}};
    struct op     ops[]     = {{.kind                = OP_ROTATE,
                                .stream              = STREAM_TENSOR,
                                .operand             = {0, 1},
                                .operand_count       = 2,
                                .shape.communication = {.elements = ELEMENTS, .peer = 1}},
                               {.kind = OP_QUANTIZE, .operand = {1}}};
    const double  whole = 2.0 * ELEMENTS / 1e11, latency = 3.4e-6;
    set_up(OP_ROTATE, STREAM_TENSOR, 4, 1);
    given.plan.tensors                         = tensors;
    given.plan.ops                             = ops;
    given.plan.model.experts                   = 8;
    given.plan.precision.low_precision_linears = 0xf;
    expect_cost(&ops[0], whole + latency);
    given.software.fp8_gathers = true;
    expect_cost(&ops[0], whole / 2 + latency);
    given.plan.precision.recipe                           = RECIPE_NVFP4;    // 9 bytes per 16 elements
    given.plan.precision.low_precision_format[ROLE_INPUT] = FORMAT_E2M1;
    expect_cost(&ops[0], whole * 4.5 / 16 + latency);
    given.plan.precision.recipe = RECIPE_CURRENT;
    ops[1].kind                 = OP_GEMM;    // the GEMM reads BF16
    expect_cost(&ops[0], whole + latency);
    ops[1].kind                                = OP_QUANTIZE;
    given.plan.precision.low_precision_linears = 0;
    expect_cost(&ops[0], whole + latency);
    given.plan.precision.low_precision_linears = 0xf;
    ops[0].kind                                = OP_ALL_GATHER;
    expect_cost(&ops[0], whole / 2 * 3 / 4 + 15e-6 + 3 * 3.4e-6);
    tensors[0].first_op = 0;    // a part of the rows received by experts
    expect_cost(&ops[0], whole * 3 / 4 + 15e-6 + 3 * 3.4e-6);
    tensors[0].first_op = 1;    // received by an all-to-all
    ops[1].kind         = OP_ALL_TO_ALL;
    expect_cost(&ops[0], whole * 3 / 4 + 15e-6 + 3 * 3.4e-6);
}

Test(cost_communication, carries_no_more_than_the_multiprocessors_of_a_communication_do)
{
    const double latency = 15e-6 + 7 * 3.4e-6, bytes = 2.0 * ELEMENTS * 7 / 8;
    set_up(OP_ALL_GATHER, STREAM_WEIGHT_GATHER, 8, 1);
    given.tensors[0].elements           = ELEMENTS;
    collective.operand_count            = 2;
    collective.shape.communication.peer = 0;
    cr_expect_eq(cost().processors, 16);
    expect_duration(bytes / 1e11 + latency);
    given.hardware.channel_bandwidth.value = 5e9;    // 8e10 with 16 SMs
    expect_duration(bytes / 8e10 + latency);
    given.machine.sm_margin = 4;
    cr_expect_eq(cost().processors, 4);
    expect_duration(bytes / 2e10 + latency);
    given.hardware.channel_bandwidth.value = 0.0;    // unknown
    expect_duration(bytes / 1e11 + latency);
    given.machine.zero_cta                 = true;    // copy engines have no limit by SMs
    given.hardware.channel_bandwidth.value = 5e9;
    cr_expect_eq(cost().processors, 0);
    expect_duration(bytes / 1e11 + latency);
    collective.kind                     = OP_ROTATE;
    collective.shape.communication.peer = 1;
    cr_expect_eq(cost().processors, 0);
    collective.kind = OP_REDUCE_SCATTER;    // reductions need SMs
    cr_expect_eq(cost().processors, 4);
    given.machine.zero_cta = false;
    collective.kind        = OP_ALL_GATHER;
    given.hardware.cores   = 2;
    cr_expect_eq(cost().processors, 0);
}

static struct cost cost_communication(enum op_kind kind, int64_t size, int64_t distance)
{
    set_up(kind, STREAM_COMPUTE, size, distance);
    return cost();
}

Test(cost_communication, computes_the_cost_of_a_collective_by_how_its_group_lies_on_the_nodes)
{
    const double bytes = 2.0 * ELEMENTS;
    // 8 ranks on one node; 16 on two nodes, which have 8 network links with 8e10 bytes/s together; 8 ranks on 8 nodes.
    expect_seconds(cost_communication(OP_ALL_GATHER, 8, 1).seconds, bytes * 7 / 8 / 1e11 + 15e-6 + 7 * 3.4e-6);
    expect_seconds(cost_communication(OP_REDUCE_SCATTER, 16, 1).seconds,
                   bytes * 15 / 16 / 8e10 + 15e-6 + 14 * 3.4e-6 + 14e-6);
    expect_seconds(cost_communication(OP_ALL_GATHER, 8, 8).seconds, bytes * 7 / 8 / 1e10 + 15e-6 + 7 * 14e-6);
    expect_seconds(cost_communication(OP_ALL_REDUCE, 16, 1).seconds,
                   2 * bytes * 15 / 16 / 8e10 + 15e-6 + 14 * 3.4e-6 + 2 * 14e-6);
    expect_seconds(cost_communication(OP_ALL_TO_ALL, 16, 1).seconds, bytes * 8 / 16 / 1e10 + 15e-6 + 14e-6);
    expect_seconds(cost_communication(OP_ALL_TO_ALL, 8, 1).seconds, bytes * 7 / 8 / 1e11 + 15e-6 + 3.4e-6);
    cr_expect_eq(cost_communication(OP_ALL_GATHER, 8, 1).links, LINK_NODE_OUT | LINK_NODE_IN);
    cr_expect_eq(cost_communication(OP_ALL_GATHER, 8, 8).links, LINK_NETWORK_OUT | LINK_NETWORK_IN);
}

static struct cost cost_in_domain(int64_t size, int64_t distance, int64_t world)
{
    set_up(OP_ALL_GATHER, STREAM_COMPUTE, size, distance);
    given.plan.mesh.world        = world;
    given.hardware.gpus_per_node = 4;
    given.hardware.link_domain   = 72;
    return cost();
}

Test(cost_communication, takes_a_domain_of_links_for_a_node)
{
    const double bytes = 2.0 * ELEMENTS;
    // 16 ranks on 4 nodes, and 72 on 18 nodes, are in one NVLink domain. 128 ranks use 64 devices of each of two
    // domains, and 144 ranks use 72 of each.
    expect_seconds(cost_in_domain(16, 1, 64).seconds, bytes * 15 / 16 / 1e11 + 15e-6 + 15 * 3.4e-6);
    expect_seconds(cost_in_domain(72, 1, 72).seconds, bytes * 71 / 72 / 1e11 + 15e-6 + 71 * 3.4e-6);
    expect_seconds(cost_in_domain(128, 1, 128).seconds, bytes * 127 / 128 / 1e11 + 15e-6 + 126 * 3.4e-6 + 14e-6);
    expect_seconds(cost_in_domain(2, 64, 128).seconds, bytes / 2 / 1e10 + 15e-6 + 14e-6);
    expect_seconds(cost_in_domain(2, 64, 144).seconds, bytes / 2 / 1e11 + 15e-6 + 3.4e-6);
}

Test(cost_communication, takes_single_nodes_where_a_job_fills_none_evenly)
{
    struct hardware_config hardware = round_machine();
    hardware.gpus_per_node          = 4;
    hardware.link_domain            = 72;
    cr_expect_eq(hardware_domain(&hardware, 74), 4);
    cr_expect_eq(hardware_domain(&hardware, 90), 4);
    cr_expect_eq(hardware_domain(&hardware, 96), 48);
}

Test(cost_communication, computes_the_cost_of_what_two_ranks_send_each_other_as_one_hop)
{
    const double bytes = 2.0 * ELEMENTS;
    expect_seconds(cost_communication(OP_SEND, 4, 1).seconds, bytes / 1e11 + 3.4e-6);
    expect_seconds(cost_communication(OP_RECEIVE, 4, 8).seconds, bytes / 1e10 + 14e-6);
    expect_seconds(cost_communication(OP_ROTATE, 16, 1).seconds, bytes / 1e10 + 14e-6);
    cr_expect_eq(cost_communication(OP_SEND, 4, 1).links, LINK_NODE_OUT);
    cr_expect_eq(cost_communication(OP_RECEIVE, 4, 8).links, LINK_NETWORK_IN);
}

enum { HEADS = 8, KEY_HEADS = 2, SEQUENCE = 1024, WIDTH = 128 };

// Four cp ranks on the machine of round numbers.
static void set_four_ranks(void)
{
    set_up(OP_ALL_GATHER, STREAM_CONTEXT, 4, 1);
    given.plan.model.heads        = HEADS;
    given.plan.model.kv_heads     = KEY_HEADS;
    given.plan.context            = CONTEXT_GATHER;
    given.plan.mesh.size[AXIS_CP] = 4;
}

TestSuite(cost_context, .init = set_four_ranks);

Test(cost_context, merges_the_parts_of_attention_in_single_precision)
{
    struct op op                 = ATTENTION(1, SEQUENCE, HEADS, KEY_HEADS, WIDTH, .causal = true);
    double    forward            = seconds_of(&op);
    op.kind                      = OP_ATTENTION_BACKWARD;
    double backward              = seconds_of(&op);
    given.software.context_parts = true;
    expect_cost(&op, backward + 4 * 60.0 * SEQUENCE * HEADS * WIDTH / 1e12);
    op.kind = OP_ATTENTION_FORWARD;
    expect_cost(&op, forward + 3 * 46.0 * SEQUENCE * HEADS * WIDTH / 1e12);
    given.plan.context = CONTEXT_RING;
    expect_cost(&op, forward);
    given.plan.context            = CONTEXT_GATHER;
    given.plan.mesh.size[AXIS_CP] = 1;
    expect_cost(&op, forward);
}

// The all-gather moves 3 of 4 parts, four times as large since keys are repeated for each query head. Gradients in fp32
// need a fourth step.
Test(cost_context, moves_keys_for_each_head_of_queries_and_gradients_round_all_ranks)
{
    enum { GATHERED = 40000000 };
    struct op    op = {.kind = OP_ALL_GATHER, .stream = STREAM_CONTEXT, .shape.communication = {.elements = GATHERED}};
    const double latency = 15e-6 + 3 * 3.4e-6, share = 2.0 * GATHERED / 4 / 1e11;
    expect_cost(&op, 3 * share + latency);
    given.software.context_parts = true;
    expect_cost(&op, 4 * 3 * share + latency);
    op.kind = OP_REDUCE_SCATTER;
    expect_cost(&op, 4 * 2 * 4 * share + latency);
    op.stream = STREAM_TENSOR;
    expect_cost(&op, 3 * share + latency);
}

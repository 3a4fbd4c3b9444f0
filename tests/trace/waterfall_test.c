// SPDX-License-Identifier: MIT
// Tests waterfalls of short timelines. All times are sums of powers of two, so expected values are exact. Also tests
// the trace files that viewers read.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/waterfall.h"

enum { OPS_MAX = 11 };

// The groups of the plan, each with its mesh axes.
enum { SHARDS, REPLICAS, SHARDS_OF_EXPERTS, TENSOR, STAGES, ALL, GROUPS };
static const uint32_t group_axes[GROUPS] = {
    [SHARDS]            = 1u << AXIS_FSDP,
    [REPLICAS]          = 1u << AXIS_DP | 1u << AXIS_CP,
    [SHARDS_OF_EXPERTS] = 1u << AXIS_EP | 1u << AXIS_FSDP,
    [TENSOR]            = 1u << AXIS_TP,
    [STAGES]            = 1u << AXIS_PP,
    [ALL]               = (1u << AXIS_COUNT) - 1,
};

struct timed_op {
    struct op      op;
    struct op_time time;
    double         cost, launch;
};

struct sample {
    struct timed_op ops[OPS_MAX];
    int64_t         stages;
    bool            is_simulated;    // has costs, and launch times of the host
    double          launch_alone, step_seconds, ideal_seconds, attention_share;
    double          expected[WATERFALL_PARTS];
};

#define COMPUTE(what, when)         .kind = what, .stream = STREAM_COMPUTE, .tag = {.phase = when}
#define COMMUNICATION(what, on, of) .kind = what, .stream = on, .shape.communication = {.group = of, .elements = 64}
#define AFTER(index)                .wait = {index}, .wait_count = 1

static void expect_waterfall(const struct sample *sample)
{
    struct plan_group groups[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        groups[i] = (struct plan_group){.axes = group_axes[i], .size = 2};
    }
    struct tensor  tensors[] = {{.format = FORMAT_BF16}, {.format = FORMAT_F32}};
    struct op      ops[OPS_MAX];
    struct op_time times[OPS_MAX];
    double         costs[OPS_MAX], launches[OPS_MAX];
    struct plan    plan = {.ops = ops, .groups = groups, .group_count = GROUPS, .tensors = tensors, .tensor_count = 2};
    struct waterfall waterfall;
    for (; plan.op_count < OPS_MAX && sample->ops[plan.op_count].time.end > 0; plan.op_count++) {
        const struct timed_op *from = &sample->ops[plan.op_count];
        ops[plan.op_count]          = from->op;
        times[plan.op_count]        = from->time;
        costs[plan.op_count]        = from->cost;
        launches[plan.op_count]     = from->launch;
    }
    plan.mesh.size[AXIS_PP] = sample->stages > 0 ? sample->stages : 1;
    waterfall_compute(&waterfall, &(struct waterfall_step){.plan            = &plan,
                                                           .times           = times,
                                                           .costs           = sample->is_simulated ? costs : NULL,
                                                           .launches        = sample->is_simulated ? launches : NULL,
                                                           .launch_alone    = sample->launch_alone,
                                                           .step_seconds    = sample->step_seconds,
                                                           .ideal_seconds   = sample->ideal_seconds,
                                                           .attention_share = sample->attention_share});
    double sum = 0.0;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        cr_expect_eq(waterfall.seconds[part], sample->expected[part], "%s is %g instead of %g",
                     waterfall_part_names[part], waterfall.seconds[part], sample->expected[part]);
        sum += waterfall.seconds[part];
    }
    cr_expect_eq(sum, sample->step_seconds);
}
#define EXPECT_WATERFALL(...) expect_waterfall(&(struct sample){__VA_ARGS__})

Test(waterfall, tells_kinds_of_compute_apart)
{
    EXPECT_WATERFALL(.ops          = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, .time = {0, 1}},
                                      {{COMPUTE(OP_ATTENTION_BACKWARD, PHASE_BACKWARD)}, .time = {1, 3}},
                                      {{COMPUTE(OP_NORM_FORWARD, PHASE_FORWARD)}, .time = {3, 7}},
                                      {{COMPUTE(OP_QUANTIZE, PHASE_FORWARD)}, .time = {7, 7.5}},
                                      {{COMPUTE(OP_CAST, PHASE_BACKWARD), .operand = {0, 1}, .accumulates = true},
                                       .time = {8, 16}},
                                      {{COMPUTE(OP_GEMM, PHASE_RECOMPUTE)}, .time = {16, 32}},
                                      {{COMPUTE(OP_SQUARE_SUM, PHASE_REDUCE)}, .time = {32, 33}},
                                      {{COMPUTE(OP_ADAMW, PHASE_OPTIMIZER)}, .time = {33, 35}},
                                      {{COMPUTE(OP_CAST, PHASE_FORWARD), .operand = {0, 1}}, .time = {35, 36}},
                                      {{COMPUTE(OP_CAST, PHASE_FORWARD), .operand = {1, 1}}, .time = {36, 68}},
                                      {{COMPUTE(OP_TRANSPOSE, PHASE_BACKWARD)}, .time = {68, 132}}},
                     .step_seconds = 132,
                     .expected     = {[WATERFALL_GEMM]        = 1,
                                      [WATERFALL_ATTENTION]   = 2,
                                      [WATERFALL_MEMORY]      = 4 + 8 + 32,
                                      [WATERFALL_CAST]        = 0.5 + 1 + 64,
                                      [WATERFALL_RECOMPUTE]   = 16,
                                      [WATERFALL_OPTIMIZER]   = 1 + 2,
                                      [WATERFALL_UNEXPLAINED] = 0.5});
}

// At peak the step would take 4 s, a quarter of it in attention. So 1 s of attention's 3 s and 3 s of the GEMMs' 8 s
// are ideal.
Test(waterfall, takes_the_ideal_out_of_gemms_and_attention)
{
    EXPECT_WATERFALL(.ops          = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, .time = {0, 8}},
                                      {{COMPUTE(OP_ATTENTION_FORWARD, PHASE_FORWARD)}, .time = {8, 11}}},
                     .step_seconds = 11, .ideal_seconds = 4, .attention_share = 0.25,
                     .expected = {[WATERFALL_IDEAL] = 4, [WATERFALL_GEMM] = 5, [WATERFALL_ATTENTION] = 2});
}

// The ideal time of a part is at most its measured time. First, the convention counts the full square of attention: 1 s
// ideal, but the executed half took 0.5 s. Then a wrong peak makes the ideal of GEMMs 12 s, but they took 8 s.
Test(waterfall, takes_no_more_ideal_out_of_a_part_than_it_took)
{
    struct sample sample = {.ops             = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, .time = {0, 8}},
                                                {{COMPUTE(OP_ATTENTION_FORWARD, PHASE_FORWARD)}, .time = {8, 8.5}}},
                            .step_seconds    = 9,
                            .ideal_seconds   = 4,
                            .attention_share = 0.25,
                            .expected = {[WATERFALL_IDEAL] = 3.5, [WATERFALL_GEMM] = 5, [WATERFALL_STRAGGLERS] = 0.5}};
    expect_waterfall(&sample);
    sample.ideal_seconds             = 16;
    sample.expected[WATERFALL_IDEAL] = 8.5;
    sample.expected[WATERFALL_GEMM]  = 0;
    expect_waterfall(&sample);
}

// The clock of the step says that it ended half a second before its last op. No part may become negative.
Test(waterfall, has_no_part_below_zero_where_clocks_differ)
{
    EXPECT_WATERFALL(.ops          = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, .time = {0, 6}},
                                      {{COMPUTE(OP_ADAMW, PHASE_OPTIMIZER)}, .time = {6, 8.5}}},
                     .step_seconds = 8, .expected = {[WATERFALL_GEMM] = 6, [WATERFALL_OPTIMIZER] = 2});
}

// The first GEMM hides one gather except for its last 2 s. Another gather starts after that GEMM and is fully exposed.
Test(waterfall, counts_only_what_compute_waits_for)
{
    EXPECT_WATERFALL(.ops          = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, .time = {0, 4}},
                                      {{COMMUNICATION(OP_ALL_GATHER, STREAM_WEIGHT_GATHER, SHARDS)}, .time = {0, 6}},
                                      {{COMPUTE(OP_GEMM, PHASE_FORWARD), AFTER(1)}, .time = {6, 7}},
                                      {{COMMUNICATION(OP_REDUCE_SCATTER, STREAM_TENSOR, TENSOR), AFTER(0)}, .time = {4, 9}},
                                      {{COMMUNICATION(OP_REDUCE_SCATTER, STREAM_GRADIENT_REDUCE, REPLICAS), AFTER(3)},
                                       .time = {9, 13}},
                                      {{COMPUTE(OP_NORM_FORWARD, PHASE_FORWARD), AFTER(4)}, .time = {13, 14}}},
                     .step_seconds = 14,
                     .expected     = {[WATERFALL_GEMM]         = 4 + 1,
                                      [WATERFALL_EXPOSED_FSDP] = 2,
                                      [WATERFALL_EXPOSED_TP]   = 2,    // from 7 s to 9 s
                                      [WATERFALL_EXPOSED_DP]   = 4,
                                      [WATERFALL_MEMORY]       = 1});
}

// Two collectives run one after the other on a stream, and compute waits for both. The gap between the second one and
// the next compute op belongs to no collective.
Test(waterfall, goes_back_along_a_stream)
{
    EXPECT_WATERFALL(.ops = {{{COMMUNICATION(OP_ALL_TO_ALL, STREAM_EXPERT, SHARDS_OF_EXPERTS)}, .time = {1, 3}},
                             {{COMMUNICATION(OP_ALL_GATHER, STREAM_EXPERT, SHARDS)}, .time = {3, 7}},
                             {{COMPUTE(OP_GEMM, PHASE_FORWARD), AFTER(1)}, .time = {8, 10}}},
                     .step_seconds = 12,
                     .expected     = {[WATERFALL_EXPOSED_FSDP] = 2 + 4,
                                      [WATERFALL_GEMM]         = 2,
                                      [WATERFALL_STRAGGLERS]   = 2,
                                      [WATERFALL_UNEXPLAINED]  = 2});
}

Test(waterfall, counts_exchanges_between_experts_on_ranks_of_tp_for_ep)
{
    EXPECT_WATERFALL(.ops          = {{{COMMUNICATION(OP_ALL_TO_ALL, STREAM_EXPERT, TENSOR)}, .time = {0, 2}},
                                      {{COMPUTE(OP_GEMM, PHASE_FORWARD), AFTER(0)}, .time = {2, 3}},
                                      {{COMMUNICATION(OP_ALL_GATHER, STREAM_TENSOR, TENSOR), AFTER(1)}, .time = {3, 7}},
                                      {{COMPUTE(OP_GEMM, PHASE_FORWARD), AFTER(2)}, .time = {7, 8}}},
                     .step_seconds = 8,
                     .expected     = {[WATERFALL_GEMM] = 2, [WATERFALL_EXPOSED_EP] = 2, [WATERFALL_EXPOSED_TP] = 4});
}

// In a simulation a receive starts when the sender has sent, so the time before its start is a pipeline bubble.
Test(waterfall, tells_a_bubble_from_a_communication_between_stages)
{
    EXPECT_WATERFALL(
            .ops    = {{{COMMUNICATION(OP_RECEIVE, STREAM_PIPELINE_RECEIVE, STAGES)}, .time = {5, 6}, .cost = 1},
                       {{COMPUTE(OP_GEMM, PHASE_FORWARD), AFTER(0)}, .time = {6, 8}, .cost = 2},
                       {{COMMUNICATION(OP_SEND, STREAM_PIPELINE_SEND, STAGES), AFTER(1)}, .time = {10, 11}, .cost = 1}},
            .stages = 2, .is_simulated = true, .step_seconds = 16,
            .expected = {[WATERFALL_BUBBLE] = 5 + 2 + 5, [WATERFALL_EXPOSED_PP] = 1 + 1, [WATERFALL_GEMM] = 2});
}

// In a measured run a receive starts as soon as its stream reaches it, and includes the bubble. The shortest receive of
// the same size, 1 s, is the estimated time of communication. Sends and smaller receives do not count.
Test(waterfall, estimates_the_bubble_of_a_run_by_the_shortest_communication)
{
    EXPECT_WATERFALL(.ops    = {{{COMMUNICATION(OP_RECEIVE, STREAM_PIPELINE_RECEIVE, STAGES)}, .time = {0, 6}},
                                {{COMPUTE(OP_GEMM, PHASE_FORWARD), AFTER(0)}, .time = {6, 8}},
                                {{COMMUNICATION(OP_RECEIVE, STREAM_PIPELINE_RECEIVE, STAGES), AFTER(0)}, .time = {8, 9}},
                                {{COMPUTE(OP_GEMM, PHASE_FORWARD), AFTER(2)}, .time = {9, 10}},
                                {{COMMUNICATION(OP_SEND, STREAM_PIPELINE_SEND, STAGES)}, .time = {8, 8.5}},
                                {{.kind                = OP_RECEIVE,
                                  .stream              = STREAM_PIPELINE_RECEIVE,
                                  .shape.communication = {.group = STAGES, .elements = 32}},
                                 .time = {9, 9.5}}},
                     .stages = 2, .step_seconds = 10,
                     .expected = {[WATERFALL_BUBBLE] = 5, [WATERFALL_EXPOSED_PP] = 1 + 1, [WATERFALL_GEMM] = 2 + 1});
}

Test(waterfall, knows_contention_where_costs_are_known)
{
    struct sample sample = {.ops          = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, .time = {0, 5}, .cost = 4},
                                             {{COMPUTE(OP_NORM_FORWARD, PHASE_RECOMPUTE)}, .time = {5, 8}, .cost = 1}},
                            .is_simulated = true,
                            .step_seconds = 8,
                            .expected = {[WATERFALL_GEMM] = 4, [WATERFALL_RECOMPUTE] = 1, [WATERFALL_CONTENTION] = 3}};
    expect_waterfall(&sample);
    sample.is_simulated                   = false;
    sample.expected[WATERFALL_GEMM]       = 5;
    sample.expected[WATERFALL_RECOMPUTE]  = 3;
    sample.expected[WATERFALL_CONTENTION] = 0;
    expect_waterfall(&sample);
}

// The host launches the first GEMM and the norm late. The second GEMM was launched together with the first and starts
// late for an unknown reason. A measured run has no launch times.
Test(waterfall, knows_gaps_of_the_host_where_it_is_simulated)
{
    struct sample sample = {
        .ops          = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, {1, 3}, 2, 1},
                         {{COMPUTE(OP_GEMM, PHASE_FORWARD)}, {3.5, 4}, 0.5, 0},
                         {{COMPUTE(OP_NORM_FORWARD, PHASE_FORWARD)}, {8, 9}, 1, 7}},
        .is_simulated = true,
        .step_seconds = 9,
        .expected     = {
                [WATERFALL_GEMM] = 2.5, [WATERFALL_MEMORY] = 1, [WATERFALL_LAUNCH] = 1 + 4, [WATERFALL_UNEXPLAINED] = 0.5}};
    expect_waterfall(&sample);
    sample.is_simulated                    = false;
    sample.expected[WATERFALL_LAUNCH]      = 0;
    sample.expected[WATERFALL_UNEXPLAINED] = 5.5;
    expect_waterfall(&sample);
}

// The all-to-all could start at 2 s, but the host launches it at 3 s. It ends at 7 s, and the dispatch is launched at 8
// s. The tp gather and the norm after it are launched in time.
Test(waterfall, tells_the_host_from_the_communications_that_compute_waits_for)
{
    EXPECT_WATERFALL(.ops          = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, {0, 2}, 2, 0},
                                      {{COMMUNICATION(OP_ALL_TO_ALL, STREAM_EXPERT, SHARDS_OF_EXPERTS), AFTER(0)}, {3, 7}, 4, 1},
                                      {{COMPUTE(OP_DISPATCH, PHASE_FORWARD), AFTER(1)}, {8, 10}, 2, 1},
                                      {{COMMUNICATION(OP_ALL_GATHER, STREAM_TENSOR, TENSOR), AFTER(2)}, {10, 12}, 2, 0.5},
                                      {{COMPUTE(OP_NORM_FORWARD, PHASE_FORWARD), AFTER(3)}, {12, 13}, 1, 0}},
                     .is_simulated = true, .step_seconds = 13,
                     .expected = {[WATERFALL_GEMM]         = 2,
                                  [WATERFALL_EXPOSED_FSDP] = 4,
                                  [WATERFALL_MEMORY]       = 2 + 1,
                                  [WATERFALL_EXPOSED_TP]   = 2,
                                  [WATERFALL_LAUNCH]       = 1 + 1});
}

// The host needs 2 s to launch the GEMM and 4 s to launch the all-to-all. Half of each launch (launch_alone) is part of
// the cost of the op, which has started and waits for the host. The GEMM hides 1 s of the 2 s of the all-to-all.
Test(waterfall, counts_for_the_host_what_ops_that_have_begun_wait_for)
{
    EXPECT_WATERFALL(.ops          = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, {0, 4}, 3, 2},
                                      {{COMMUNICATION(OP_ALL_TO_ALL, STREAM_EXPERT, SHARDS_OF_EXPERTS)}, {3, 9}, 6, 4},
                                      {{COMPUTE(OP_NORM_FORWARD, PHASE_FORWARD), AFTER(1)}, {9, 10}, 1, 0}},
                     .launch_alone = 0.5, .is_simulated = true, .step_seconds = 10,
                     .expected = {[WATERFALL_GEMM]         = 2,
                                  [WATERFALL_LAUNCH]       = 1 + 1,
                                  [WATERFALL_EXPOSED_FSDP] = 4,
                                  [WATERFALL_MEMORY]       = 1,
                                  [WATERFALL_CONTENTION]   = 1});
}

// A send waits for the next stage to receive. This is a bubble, even if the host also launches late.
Test(waterfall, counts_no_bubble_for_the_host)
{
    EXPECT_WATERFALL(.ops    = {{{COMPUTE(OP_GEMM, PHASE_FORWARD)}, {0, 2}, 2, 0},
                                {{COMMUNICATION(OP_SEND, STREAM_PIPELINE_SEND, STAGES), AFTER(0)}, {5, 6}, 1, 1}},
                     .stages = 2, .is_simulated = true, .step_seconds = 6,
                     .expected = {[WATERFALL_GEMM] = 2, [WATERFALL_BUBBLE] = 3, [WATERFALL_EXPOSED_PP] = 1});
}

// Collectives over all axes count as fsdp. Time after the last compute op is exposed, too.
Test(waterfall, explains_the_time_after_the_last_gemm)
{
    EXPECT_WATERFALL(.ops          = {{{COMPUTE(OP_ADAMW, PHASE_OPTIMIZER)}, .time = {0, 2}},
                                      {{COMMUNICATION(OP_ALL_REDUCE, STREAM_TENSOR, ALL), AFTER(0)}, .time = {2, 6}}},
                     .step_seconds = 6, .expected = {[WATERFALL_OPTIMIZER] = 2, [WATERFALL_EXPOSED_FSDP] = 4});
}

Test(waterfall, finds_a_rank_busy_while_its_compute_stream_is)
{
    struct op      ops[]   = {{COMPUTE(OP_GEMM, PHASE_FORWARD)}, {COMMUNICATION(OP_ALL_GATHER, STREAM_TENSOR, TENSOR)}};
    struct op_time times[] = {{1, 5}, {0, 9}};
    cr_expect_eq(waterfall_compute_seconds(&(struct plan){.ops = ops, .op_count = 2}, times), 4);
}

Test(timeline, has_a_process_a_rank_a_thread_a_stream_and_an_event_an_op)
{
    struct op ops[] = {
        {.kind   = OP_GEMM,
         .stream = STREAM_COMPUTE,
         .tag    = {.role = "qkv", .phase = PHASE_BACKWARD, .layer = 3, .chunk = 0, .microbatch = 7}},
        {.kind   = OP_ALL_REDUCE,
         .stream = STREAM_GRADIENT_REDUCE,
         .tag    = {.role = "gradient norm", .phase = PHASE_REDUCE, .layer = -1, .chunk = -1, .microbatch = -1}}};
    struct op_time    times[] = {{0.001, 0.0035}, {1.25, 1.5}};
    struct plan_group group   = {.size = 1};
    struct plan       first = {.rank = 4, .ops = ops, .op_count = 2, .groups = &group}, second = first;
    char             *text  = NULL;
    size_t            bytes = 0;
    FILE             *file  = open_memstream(&text, &bytes);

    second.rank = 16;
    timeline_begin(file);
    timeline_write_rank(&first, times, NULL, true, file);
    timeline_write_rank(&second, times, NULL, false, file);
    timeline_end(&(struct timeline_source){"cupti", 3}, file);
    fclose(file);

    json_error_t error;
    json_t      *trace = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    cr_assert(trace != NULL, "%s at %d of %s", error.text, error.position, text);
    json_t *events = json_object_get(trace, "traceEvents");
    size_t  names  = 1 + STREAM_COUNT;
    cr_assert_eq(json_array_size(events), 2 * (names + 2));
    const struct {
        size_t      index;
        const char *expected;
    } cases[] = {
        {0, "{'ph': 'M', 'name': 'process_name', 'pid': 4, 'tid': 0, 'args': {'name': 'rank 4'}}"},
        {1, "{'ph': 'M', 'name': 'thread_name', 'pid': 4, 'tid': 0, 'args': {'name': 'compute'}}"},
        {names, "{'ph': 'X', 'name': 'qkv', 'cat': 'backward', 'pid': 4, 'tid': 0, 'ts': 1000.0, 'dur': 2500.0, "
                "'args': {'op': 0, 'kind': 'gemm', 'part': 'gemm', 'layer': 3, 'chunk': 0, 'microbatch': 7}}"},
        {2 * names + 3, "{'ph': 'X', 'name': 'gradient norm', 'cat': 'reduce', 'pid': 16, 'tid': 2, 'ts': 1250000.0, "
                        "'dur': 250000.0, 'args': {'op': 1, 'kind': 'all_reduce', 'part': 'unexplained'}}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[512];
        snprintf(expected, sizeof(expected), "%s", cases[i].expected);
        for (char *quote = strchr(expected, '\''); quote != NULL; quote = strchr(quote, '\'')) {
            *quote = '"';
        }
        json_t *parsed = json_loads(expected, 0, &error);
        cr_expect(json_equal(parsed, json_array_get(events, cases[i].index)), "event %zu of %s", cases[i].index, text);
        json_decref(parsed);
    }
    json_t *source = json_object_get(trace, "otherData");
    cr_expect_str_eq(json_string_value(json_object_get(source, "timed_by")), "cupti");
    cr_expect_eq(json_integer_value(json_object_get(source, "lost_records")), 3);
    json_decref(trace);
    free(text);
}

// SPDX-License-Identifier: MIT
// Tests handmade plans: sends must match receives, and each deadlock must be found and named.
#include "gswbench/verify.h"
#include "success.h"

#include <criterion/criterion.h>
#include <string.h>

// A line of a handmade plan is an op with its own operand, in the only group, which has all ranks. A line without a
// role ends the plan.
struct line {
    const char  *role;
    enum op_kind kind;
    enum stream  stream;
    int32_t      peer;
    int64_t      elements;
    int32_t      wait;    // number of the line to wait for, counted from 1; 0: none
    int32_t      channel;
    enum format  format;
};
enum { SCRIPT_RANKS = 4, SCRIPT_LINES = 8 };
struct script {
    enum axis   axis;
    int64_t     ranks;
    struct line lines[SCRIPT_RANKS][SCRIPT_LINES];
};

static void script_append(struct plan *plan, const struct line *line)
{
    int32_t        index  = plan->op_count++;
    struct tensor *tensor = &plan->tensors[plan->tensor_count];
    struct op     *op     = &plan->ops[index];
    *tensor               = (struct tensor){.name     = line->role,
                                            .layer    = -1,
                                            .format   = line->format,
                                            .storage  = STORAGE_INPUT,
                                            .elements = line->elements,
                                            .bytes    = line->elements * 4,
                                            .offset   = index * 4096,
                                            .whole    = plan->tensor_count,
                                            .first_op = index,
                                            .last_op  = index};
    *op                   = (struct op){.kind          = (uint8_t)line->kind,
                                        .stream        = (uint8_t)line->stream,
                                        .operand_count = line->kind == OP_CLEAR ? 1 : 2,
                                        .operand       = {-1, -1},
                                        .tag           = {.role = line->role, .layer = -1, .chunk = -1, .microbatch = -1}};
    if (line->wait > 0) {
        op->wait[op->wait_count++] = line->wait - 1;
    }
    int slot          = line->kind == OP_SEND || line->kind == OP_CLEAR ? 0 : COMMUNICATION_OUT;
    op->operand[slot] = plan->tensor_count++;
    op->access[slot]  = (uint8_t)op_operand_access(op, slot);
    if (op_is_communication(line->kind)) {
        op->shape.communication =
            (struct communication_shape){.elements = line->elements, .peer = line->peer, .channel = line->channel};
    }
}

static status script_build(const void *state, int64_t rank, struct plan *plan)
{
    const struct script *script = state;
    *plan                       = (struct plan){.rank = rank, .mesh = {.world = script->ranks}};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        plan->mesh.size[axis] = axis == (int)script->axis ? script->ranks : 1;
    }
    plan->tensors                      = memory_allocate(SCRIPT_LINES * sizeof(*plan->tensors));
    plan->ops                          = memory_allocate(SCRIPT_LINES * sizeof(*plan->ops));
    plan->groups                       = memory_allocate(sizeof(*plan->groups));
    plan->storage_bytes[STORAGE_INPUT] = SCRIPT_LINES * 4096;
    plan->groups[0]       = (struct plan_group){.axes = 1u << script->axis, .size = script->ranks, .index = rank};
    plan->group_count     = 1;
    plan->groups[0].ranks = arena_allocate(&plan->arena, (size_t)script->ranks * sizeof(int64_t));
    for (int64_t i = 0; i < script->ranks; i++) {
        plan->groups[0].ranks[i] = i;
    }
    for (const struct line *line = script->lines[rank]; line->role != NULL; line++) {
        script_append(plan, line);
    }
    return OK;
}

static status script_verify(const struct script *script, struct job_proof *proof)
{
    return job_verify_plans(&(struct job_plans){.build = script_build, .state = script}, proof);
}

static void expect_fault(const struct script *script, const char *words)
{
    struct job_proof proof;
    status           result = script_verify(script, &proof);
    cr_expect_geq(proof.findings, 1);
    cr_expect_not_null(strstr(result.text, words), "\"%s\" lacks \"%s\"", result.text, words);
}

static struct job_proof expect_sound(const struct script *script, int64_t built, int64_t distinct)
{
    struct job_proof proof;
    EXPECT_SUCCESS(script_verify(script, &proof));
    cr_expect_eq(proof.findings, 0);
    cr_expect_eq(proof.built, built, "%d built", (int)proof.built);
    cr_expect_eq(proof.classes, distinct, "%d distinct", (int)proof.classes);
    return proof;
}

// A communication op of 8 elements. wait is the number of the line that it waits for, counted from 1; 0 means none.
// clang-format off
#define CALL(role, kind, stream, peer, wait) {role, kind, stream, peer, 8, wait, 0, FORMAT_F32}
#define SEND(peer, elements, wait, channel) \
    {"forward", OP_SEND, STREAM_PIPELINE_SEND, peer, elements, wait, channel, FORMAT_F32}
#define RECEIVE(peer, elements, channel) \
    {"arrival", OP_RECEIVE, STREAM_PIPELINE_RECEIVE, peer, elements, 0, channel, FORMAT_F32}
#define WORK(wait) {"work", OP_CLEAR, STREAM_COMPUTE, -1, 0, wait, 0, FORMAT_F32}

static const struct script pipeline = {AXIS_PP, 3, {
    {WORK(0), SEND(1, 64, 1, 0), WORK(0), SEND(1, 32, 3, 0), RECEIVE(1, 64, 1), WORK(5)},
    {RECEIVE(0, 64, 0), WORK(1), SEND(2, 64, 2, 0), RECEIVE(0, 32, 0), RECEIVE(2, 64, 1), WORK(5), SEND(0, 64, 6, 1)},
    {RECEIVE(1, 64, 0), WORK(1), SEND(1, 64, 2, 1)},
}};
// clang-format on

Test(verify_links, follows_a_pipeline)
{
    struct job_proof proof = expect_sound(&pipeline, 3, 3);
    cr_expect_eq(proof.communications, 10);
    cr_expect_eq(proof.ops, 16);
}

Test(verify_links, finds_a_send_without_a_receive)
{
    struct script script = pipeline;
    script.lines[1][3]   = (struct line)WORK(0);
    expect_fault(&script, "rank 0: op 3 send \"forward\", forward: 32 elements of f32 on stream pipeline-send meet "
                          "nothing on rank 1");
}

Test(verify_links, finds_a_receive_without_a_send)
{
    struct script script    = pipeline;
    script.lines[2][2].role = NULL;
    expect_fault(&script, "rank 1: op 4 receive \"arrival\", forward: 64 elements of f32 on stream pipeline-receive "
                          "meet nothing on rank 2");
}

Test(verify_links, finds_the_wrong_peer)
{
    struct script script    = pipeline;
    script.lines[1][2].peer = 0;
    expect_fault(&script, "rank 1: op 2 send \"forward\", forward: 64 elements of f32 on stream pipeline-send meet "
                          "nothing on rank 0");
    expect_fault(&script, "rank 2: op 0 receive \"arrival\"");
    script.lines[1][2].peer = 1;
    expect_fault(&script, "rank 1: op 2 send \"forward\", forward: its peer is the rank itself");
    script.lines[1][2].peer = 3;
    expect_fault(&script, "rank 1: op 2 send \"forward\", forward: its peer 3 is not in the group of 3");
}

Test(verify_links, finds_receives_in_the_wrong_order)
{
    struct script script        = pipeline;
    script.lines[1][0].elements = 32;
    script.lines[1][3].elements = 64;
    expect_fault(&script, "rank 0: op 1 send \"forward\", forward: 64 elements of f32 meet those of rank 1: op 0 "
                          "receive \"arrival\", forward: 32 elements of f32");
}

Test(verify_links, finds_a_receive_of_another_type)
{
    struct script script      = pipeline;
    script.lines[2][0].format = FORMAT_BF16;
    expect_fault(&script, "rank 1: op 2 send \"forward\", forward: 64 elements of f32 meet those of rank 2: op 0 "
                          "receive \"arrival\", forward: 64 elements of bf16");
}

Test(verify_links, finds_a_pair_on_different_channels)
{
    struct script script       = pipeline;
    script.lines[2][0].channel = 5;
    expect_fault(&script, "rank 2: op 0 receive \"arrival\", forward: 64 elements of f32 on stream "
                          "pipeline-receive meet nothing on rank 1");
}

Test(verify_links, finds_receives_whose_order_blocks_the_sender)
{
    // The receiver first receives from the second channel, but the sender's stream sends on the first channel first.
    // clang-format off
    static const struct script script = {AXIS_PP, 2, {
        {SEND(1, 64, 0, 0), SEND(1, 64, 0, 1)},
        {RECEIVE(0, 64, 1), RECEIVE(0, 64, 0)},
    }};
    // clang-format on
    expect_fault(&script, "the job deadlocks: rank ");
    expect_fault(&script, "rank 0: op 0 send \"forward\", forward on stream pipeline-send");
    expect_fault(&script, "rank 1: op 0 receive \"arrival\", forward on stream pipeline-receive");
}

Test(verify_links, finds_two_ranks_that_both_send_first)
{
    // clang-format off
    static const struct script script = {AXIS_PP, 2, {
        {CALL("out", OP_SEND, STREAM_CONTEXT, 1, 0), CALL("in", OP_RECEIVE, STREAM_CONTEXT, 1, 0)},
        {CALL("out", OP_SEND, STREAM_CONTEXT, 0, 0), CALL("in", OP_RECEIVE, STREAM_CONTEXT, 0, 0)},
    }};
    // clang-format on
    expect_fault(&script, "op 0 send \"out\", forward on stream context waits for rank ");
    struct script sound = script;
    sound.lines[1][0]   = script.lines[1][1];
    sound.lines[1][1]   = script.lines[1][0];
    expect_sound(&sound, 2, 2);
}

Test(verify_links, finds_a_circle_through_compute)
{
    // Rank 0 sends a value that depends on the result of rank 1, which needs this value.
    struct script script    = pipeline;
    script.lines[0][0].wait = 0;
    script.lines[0][0]      = (struct line)RECEIVE(1, 64, 1);
    script.lines[0][4]      = (struct line)WORK(0);
    script.lines[0][5].wait = 0;
    expect_fault(&script, "the job deadlocks: ");
    expect_fault(&script, "rank 0: op 0 receive \"arrival\"");
    expect_fault(&script, "rank 0: op 1 send \"forward\"");
}

Test(verify_links, finds_collectives_that_streams_hold_up_crosswise)
{
    // clang-format off
    static const struct script script = {AXIS_TP, 2, {
        {CALL("sum", OP_ALL_REDUCE, STREAM_TENSOR, -1, 0), CALL("max", OP_ALL_REDUCE, STREAM_CONTEXT, -1, 1)},
        {CALL("max", OP_ALL_REDUCE, STREAM_CONTEXT, -1, 0), CALL("sum", OP_ALL_REDUCE, STREAM_TENSOR, -1, 1)},
    }};
    // clang-format on
    expect_fault(&script, "rank 0: op 0 all_reduce \"sum\", forward on stream tensor");
    expect_fault(&script, "rank 1: op 0 all_reduce \"max\", forward on stream context");
    struct script sound    = script;
    sound.lines[1][1].wait = 0;
    expect_sound(&sound, 2, 2);
}

Test(verify_links, finds_different_roots)
{
    // clang-format off
    static const struct script script = {AXIS_TP, 3, {
        {CALL("share", OP_BROADCAST, STREAM_TENSOR, 0, 0)},
        {CALL("share", OP_BROADCAST, STREAM_TENSOR, 1, 0)},
        {CALL("share", OP_BROADCAST, STREAM_TENSOR, 0, 0)},
    }};
    // clang-format on
    expect_fault(&script, "rank 0: op 0 broadcast \"share\", forward: 8 elements of f32 from member 0 meet "
                          "those of rank 1: op 0 broadcast \"share\", forward: 8 elements of f32 from member 1");
    struct script sound    = script;
    sound.lines[1][0].peer = 0;
    expect_sound(&sound, 3, 1);
}

// A ring in which every rank does the same. Verification may represent all ranks by one, whose sends match its own
// receives.
// clang-format off
#define RING_RANK(next, previous, stream) \
    {{"out", OP_SEND, STREAM_CONTEXT, next, 8, 0, 0, 0}, {"in", OP_RECEIVE, stream, previous, 8, 0, 0, 0}}
#define RING(stream) {AXIS_CP, 3, {RING_RANK(1, 2, stream), RING_RANK(2, 0, stream), RING_RANK(0, 1, stream)}}
// clang-format on

Test(verify_links, folds_a_ring)
{
    static const struct script blocked = RING(STREAM_CONTEXT);
    expect_fault(&blocked,
                 "rank 0: op 0 send \"out\", forward on stream context waits for the context stream of rank 1");

    struct script sound = RING(STREAM_PIPELINE_RECEIVE);
    for (int rank = 0; rank < 3; rank++) {
        sound.lines[rank][0].stream = STREAM_PIPELINE_SEND;
    }
    expect_sound(&sound, 3, 1);

    sound.lines[2][0].peer = 1;
    expect_fault(&sound, "rank 2: op 0 send \"out\", forward: 8 elements of f32 on stream pipeline-send meet nothing "
                         "on rank 1");
}

// SPDX-License-Identifier: MIT
// Tests communication (step_test_communications): runs the step with all its streams and dependencies, but without
// compute ops, on small integers. Their sums are exact in every format, so the expected results are exact.
#include "internal.h"

#include "gswbench/format.h"

// POISON fills outputs; PIECE: elements per copy; bf16 represents all integers up to EXACT
enum { SMALL_GROUP = 64, EXACT = 256, POISON = 7, PIECE = 1 << 22 };

// All elements have the same value, so the expected result does not depend on the order of the elements. Communication
// ops that may run at the same time never have overlapping inputs (tests/step/isolated_test.c), so each op can have its
// own values.
int isolated_value(const struct op *op, const struct plan_group *group, int64_t member)
{
    bool adds = op->kind == OP_ALL_REDUCE || op->kind == OP_REDUCE_SCATTER;
    return adds && group->size > SMALL_GROUP ? member % (8 + group->size / EXACT) == 0
                                             : (int)(1 + group->ranks[member] % 3);
}

static int sum_of(const struct op *op, const struct plan_group *group)
{
    int sum = 0, maximum = 0;
    for (int64_t i = 0; i < group->size; i++) {
        int value = isolated_value(op, group, i);
        sum += value;
        maximum = value > maximum ? value : maximum;
    }
    return op->kind == OP_ALL_REDUCE_MAXIMUM ? maximum : sum;
}

// Returns the member whose value is expected in this part of the output; -1: the sum or maximum over the group.
static int64_t source_of(const struct op *op, const struct plan_group *group, int64_t part)
{
    int64_t peer = op->shape.communication.peer;
    if (op->kind == OP_ALL_GATHER || op->kind == OP_ALL_TO_ALL) {
        return part;
    }
    if (op->kind == OP_ROTATE) {
        return ((group->index - peer) % group->size + group->size) % group->size;
    }
    return op->kind == OP_BROADCAST || op->kind == OP_RECEIVE ? peer : -1;
}

static void fill(const struct streams *streams, const struct buffer *buffer, float number)
{
    int64_t count = buffer->elements < PIECE ? buffer->elements : PIECE;
    void   *data  = memory_allocate((size_t)format_bytes(buffer->format, count));
    for (int64_t i = 0; i < count; i++) {
        element_write(buffer->format, data, i, number);
    }
    for (int64_t first = 0; first < buffer->elements; first += count) {
        int64_t more = buffer->elements - first < count ? buffer->elements - first : count;
        streams->backend->ops->upload(streams->backend, (char *)buffer->data + format_offset(buffer->format, first),
                                      data, format_bytes(buffer->format, more));
    }
    free(data);
}

static bool find_wrong(const struct streams *streams, const struct queued_op *queued, const struct plan_group *group,
                       struct step_finding *finding)
{
    const struct op     *op       = queued->op;
    const struct buffer *out      = &queued->buffers[COMMUNICATION_OUT];
    int64_t              parts    = op->kind == OP_ALL_GATHER || op->kind == OP_ALL_TO_ALL ? group->size : 1;
    int64_t              part     = out->elements / parts;
    bool                 is_wrong = false;
    for (int64_t i = 0; i < parts && !is_wrong; i++) {
        int64_t source   = source_of(op, group, i);
        int     expected = source < 0 ? sum_of(op, group) : isolated_value(op, group, source);
        is_wrong         = finding_search(finding, streams->backend, out, i * part, (i + 1) * part, (float)expected);
    }
    return is_wrong;
}

struct isolated_test {
    const struct plan   *plan;
    bool                *is_chosen;    // [ops]: whether to check the op
    struct step_finding *finding;
};

// Called before an op. Skips a compute op, or fills the buffers of a communication op that the test checks.
static bool prepare(struct streams *streams, const struct queued_op *queued, void *state)
{
    const struct isolated_test *test = state;
    const struct op            *op   = queued->op;
    const struct buffer        *in = &queued->buffers[COMMUNICATION_IN], *out = &queued->buffers[COMMUNICATION_OUT];
    if (queued->group == NULL || !test->is_chosen[queued->number - 1]) {
        return queued->group != NULL;
    }
    const struct plan_group *group    = &test->plan->groups[op->shape.communication.group];
    float                    own      = (float)isolated_value(op, group, group->index);
    bool                     in_place = in->data == NULL;
    bool                     is_root  = op->kind == OP_BROADCAST && op->shape.communication.peer == group->index;
    streams_synchronize(streams, op->stream);    // waits also for the op's dependencies
    if (out->data != NULL) {
        fill(streams, out, in_place && (op->kind != OP_BROADCAST || is_root) ? own : POISON);
    }
    if (!in_place) {
        fill(streams, in, own);
    }
    return true;
}

static void check(struct streams *streams, const struct queued_op *queued, void *state)
{
    const struct isolated_test *test    = state;
    const struct op            *op      = queued->op;
    struct step_finding         finding = {.op = queued->number - 1, .tensor = op->operand[COMMUNICATION_OUT]};
    if (!test->is_chosen[finding.op]) {
        return;
    }
    streams_synchronize(streams, op->stream);
    if (queued->buffers[COMMUNICATION_OUT].data != NULL &&
        find_wrong(streams, queued, &test->plan->groups[op->shape.communication.group], &finding)) {
        finding_note(test->finding, &finding);
    }
}

int64_t step_test_communications(struct step *step, struct step_finding *finding)
{
    static const struct op_hooks hooks = {.before = prepare, .after = check};
    struct isolated_test         test  = {.plan      = step->plan,
                                          .is_chosen = memory_allocate((size_t)step->plan->op_count * sizeof(bool)),
                                          .finding   = finding};
    int64_t                      count = distinct_choose(step->plan, test.is_chosen);
    *finding                           = (struct step_finding){.op = -1, .tensor = -1};
    check_set(step, NULL);    // skipped compute ops write no outputs that could be checked
    row_counts_forget(step->streams.row_counts);
    observers_set(&step->streams, OBSERVER_TEST, &hooks, &test);
    step_run(step);
    observers_set(&step->streams, OBSERVER_TEST, NULL, NULL);
    check_set(step, step->check);
    free(test.is_chosen);
    storages_clear(step);    // gradient reductions include padding, which no op rewrites
    return count;
}

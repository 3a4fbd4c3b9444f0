// SPDX-License-Identifier: MIT
// Tests communication with small integers, whose sums are exact in every format, so results are known to the bit. The
// step runs with all its streams and dependencies, but without compute ops.
#include <stdlib.h>

#include "check.h"
#include "distinct.h"
#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/element.h"
#include "opening.h"

enum { SMALL_GROUP = 64, SPARSE = 8, POISON = 7 };
enum { TOGETHER = 1 << 22 };    // elements per copy

// A rank's input: 1 to 3. In sums over large groups only every 8th rank contributes 1, because bf16 is exact only up to
// 256. The value depends on the rank alone, since several ops may read the same memory at once.
static int value_of(const struct op *op, int64_t rank, int64_t size)
{
    bool adds = op->kind == OP_ALL_REDUCE || op->kind == OP_REDUCE_SCATTER;
    return adds && size > SMALL_GROUP ? rank % SPARSE == 0 : (int)(1 + rank % 3);
}

static int sum_of(const struct op *op, const struct plan_group *group)
{
    int sum = 0, most = 0;
    for (int64_t i = 0; i < group->size; i++) {
        int value = value_of(op, group->ranks[i], group->size);
        sum += value;
        most = value > most ? value : most;
    }
    return op->kind == OP_ALL_REDUCE_MAXIMUM ? most : sum;
}

// The member whose value is expected in this part of the output; -1: the sum or maximum over the group.
static int64_t source_of(const struct op *op, const struct plan_group *group, int64_t part)
{
    int64_t peer = op->shape.transfer.peer;
    switch ((enum op_kind)op->kind) {
    case OP_ALL_GATHER:
    case OP_ALL_TO_ALL:
        return part;
    case OP_ROTATE:
        return ((group->index - peer) % group->size + group->size) % group->size;
    case OP_BROADCAST:
    case OP_RECEIVE:
        return peer;
    case OP_ALL_REDUCE:
    case OP_ALL_REDUCE_MAXIMUM:
    case OP_REDUCE_SCATTER:
    case OP_SEND:
    case OP_ANY_COMPUTE:
        return -1;
    }
    return -1;
}

static void fill(const struct lanes *lanes, const struct buffer *buffer, float number)
{
    int64_t count = buffer->elements < TOGETHER ? buffer->elements : TOGETHER;
    void   *data  = memory_allocate((size_t)format_bytes(buffer->format, count));
    for (int64_t i = 0; i < count; i++) {
        element_write(buffer->format, data, i, number);
    }
    for (int64_t first = 0; first < buffer->elements; first += count) {
        int64_t more = buffer->elements - first < count ? buffer->elements - first : count;
        lanes->backend->ops->upload(lanes->backend, (char *)buffer->data + format_offset(buffer->format, first), data,
                                    format_bytes(buffer->format, more));
    }
    free(data);
}

// Finds the first element in [first, end) that differs from expected.
static bool find_other(const struct lanes *lanes, const struct buffer *out, int64_t first, int64_t end, float expected,
                       struct step_finding *finding)
{
    void *data     = memory_allocate((size_t)format_bytes(out->format, TOGETHER));
    bool  is_wrong = false;
    for (; first < end && !is_wrong; first += TOGETHER) {
        int64_t count = end - first < TOGETHER ? end - first : TOGETHER;
        lanes->backend->ops->download(lanes->backend, data, (char *)out->data + format_offset(out->format, first),
                                      format_bytes(out->format, count));
        for (int64_t i = 0; i < count && !is_wrong; i++) {
            finding->element = first + i;
            finding->value   = element_read(out->format, data, i);
            is_wrong         = finding->value != expected;
        }
    }
    free(data);
    return is_wrong;
}

static bool find_wrong(const struct lanes *lanes, const struct queue_entry *entry, const struct plan_group *group,
                       struct step_finding *finding)
{
    const struct op     *op       = entry->op;
    const struct buffer *out      = &entry->buffers[TRANSFER_OUT];
    int64_t              parts    = op->kind == OP_ALL_GATHER || op->kind == OP_ALL_TO_ALL ? group->size : 1;
    int64_t              part     = out->elements / parts;
    bool                 is_wrong = false;
    for (int64_t i = 0; i < parts && !is_wrong; i++) {
        int64_t source   = source_of(op, group, i);
        int     expected = source < 0 ? sum_of(op, group) : value_of(op, group->ranks[source], group->size);
        is_wrong         = find_other(lanes, out, i * part, (i + 1) * part, (float)expected, finding);
    }
    return is_wrong;
}

void exam_run(struct lanes *lanes, const struct queue_entry *entry)
{
    struct exam         *exam = lanes->exam;
    const struct buffer *in = &entry->buffers[TRANSFER_IN], *out = &entry->buffers[TRANSFER_OUT];
    if (entry->group == NULL || (lanes->fault != NULL && !fault_before(lanes, entry))) {
        return;
    }
    int32_t                  number    = entry->number - 1;
    const struct plan_group *group     = &exam->plan->groups[entry->op->shape.transfer.group];
    float                    own       = (float)value_of(entry->op, group->ranks[group->index], group->size);
    bool                     is_device = lanes->streams != NULL;
    if (!exam->is_chosen[number]) {
        entry_transfer(lanes, entry);
        return;
    }
    if (is_device) {
        lanes->streams->synchronize(lanes->backend, entry->op->lane);    // includes its dependencies
    }
    bool in_place = in->data == NULL;
    bool is_root  = entry->op->kind == OP_BROADCAST && entry->op->shape.transfer.peer == group->index;
    if (out->data != NULL) {
        fill(lanes, out, in_place && (entry->op->kind != OP_BROADCAST || is_root) ? own : POISON);
    }
    if (!in_place) {
        fill(lanes, in, own);
    }
    entry_transfer(lanes, entry);
    if (is_device) {
        lanes->streams->synchronize(lanes->backend, entry->op->lane);
    }
    if (lanes->fault != NULL) {
        fault_after(lanes, entry, clock_seconds());
    }
    struct step_finding finding = {.op = number};
    if (out->data != NULL && find_wrong(lanes, entry, group, &finding)) {
        finding.tensor = entry->op->operand[TRANSFER_OUT];
        pthread_mutex_lock(&exam->mutex);
        if (exam->finding->tensor < 0 || finding.op < exam->finding->op) {
            *exam->finding = finding;
        }
        pthread_mutex_unlock(&exam->mutex);
    }
}

int64_t step_examine_transfers(struct step *step, struct step_finding *finding)
{
    struct exam exam  = {.plan      = step->plan,
                         .is_chosen = memory_allocate((size_t)step->plan->op_count * sizeof(bool)),
                         .finding   = finding};
    int64_t     count = distinct_choose(step->plan, exam.is_chosen);
    *finding          = (struct step_finding){.op = -1, .tensor = -1};
    pthread_mutex_init(&exam.mutex, NULL);
    step->lanes.exam = &exam;
    step_run(step);
    step->lanes.exam = NULL;
    pthread_mutex_destroy(&exam.mutex);
    free(exam.is_chosen);
    storages_clear(step);    // gradient reductions include padding, which no op rewrites
    return count;
}

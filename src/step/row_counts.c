// SPDX-License-Identifier: MIT
// Reads row counts that are known only in the step: how many tokens the router sent to each expert. One op copies the
// counts to the host and waits for them. The ops of experts then run with the actual number of rows instead of the
// expected one.
#include <inttypes.h>
#include <time.h>

#include "gswbench/fatal.h"
#include "gswbench/number.h"
#include "internal.h"

// A row count, as read in the current step.
struct known {
    bool     is_read;
    int64_t  begin, rows;    // begin: first row of the expert in the packed buffer of the local experts
    int64_t *parts;          // [owners]: rows from or to each member of the expert-parallel group
};

struct row_counts {
    const struct plan *plan;
    struct known      *known;         // [plan->row_count_total]
    int64_t           *parts;         // memory of known[].parts
    int32_t           *numbers[2];    // pinned host copies of own and received counts; NULL: no device
    struct backend    *backend;
};

static const struct routing_shape *shape_of(const struct plan *plan, const struct row_count *row_count)
{
    return &plan->ops[row_count->reader].shape.routing;
}

struct row_counts *row_counts_open(const struct plan *plan, struct backend *backend)
{
    if (plan->row_count_total == 0) {
        return NULL;
    }
    struct row_counts *row_counts = memory_allocate(sizeof(*row_counts));
    int64_t            owners     = shape_of(plan, plan->row_counts)->owners;    // the same for all layers
    *row_counts =
        (struct row_counts){.plan    = plan,
                            .backend = backend,
                            .known   = memory_allocate((size_t)plan->row_count_total * sizeof(*row_counts->known)),
                            .parts   = memory_allocate((size_t)(plan->row_count_total * owners) * sizeof(int64_t))};
    for (int32_t i = 0; i < plan->row_count_total; i++) {
        row_counts->known[i].parts = row_counts->parts + i * owners;
    }
    for (int i = 0; i < 2 && backend->ops->streams != NULL; i++) {
        int64_t bytes          = format_bytes(FORMAT_I32, shape_of(plan, plan->row_counts)->experts);
        row_counts->numbers[i] = backend->ops->streams->allocate_host(backend, bytes);
    }
    return row_counts;
}

void row_counts_close(struct row_counts *row_counts)
{
    if (row_counts == NULL) {
        return;
    }
    for (int i = 0; i < 2 && row_counts->numbers[i] != NULL; i++) {
        row_counts->backend->ops->streams->release_host(row_counts->backend, row_counts->numbers[i]);
    }
    free(row_counts->known);
    free(row_counts->parts);
    free(row_counts);
}

void row_counts_forget(struct row_counts *row_counts)
{
    for (int32_t i = 0; row_counts != NULL && i < row_counts->plan->row_count_total; i++) {
        row_counts->known[i].is_read = false;
    }
}

const struct row_count *row_counts_of(const struct plan *plan, const struct op *op)
{
    if (op->kind != OP_READ_TOKEN_COUNTS) {
        return plan_op_row_count(plan, op);
    }
    int32_t i = 0;
    while (i < plan->row_count_total && &plan->ops[plan->row_counts[i].reader] != op) {
        i++;
    }
    return i < plan->row_count_total ? &plan->row_counts[i] : NULL;
}

// Checks the sum of this rank's counts: top_k per token, since none is dropped, plus the padding of each expert. Other
// ranks receive only a part of these counts, so they could not detect a damaged count by its sum.
static void check_own(const struct row_counts *row_counts, const struct queued_op *queued, const int32_t *numbers)
{
    const struct routing_shape *shape  = &queued->op->shape.routing;
    int64_t                     needed = shape->rows * shape->top_k, sum = 0;
    char                        name[240];
    for (int64_t i = 0; i < shape->experts; i++) {
        sum += numbers[i];
    }
    if (sum < needed || sum > needed + shape->experts * (shape->multiple - 1)) {
        DAMAGE("%.80s: experts have %" PRId64 " rows of this rank, not %" PRId64,
               plan_op_name(row_counts->plan, queued->number - 1, name, sizeof(name)), sum, needed);
    }
}

static void check_count(const struct row_counts *row_counts, const struct queued_op *queued, int64_t owner, bool is_own,
                        int64_t rows)
{
    const struct routing_shape *shape   = &queued->op->shape.routing;
    int64_t                     maximum = number_round_up(shape->rows, shape->multiple);
    char                        name[240];
    if (rows >= 0 && rows <= maximum && rows % shape->multiple == 0) {
        return;
    }
    if (!is_own) {    // wait: the rank with the damaged counts should report them first
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    }
    DAMAGE("%.80s: %" PRId64 " rows %s owner %" PRId64 " of experts: at most %" PRId64 ", in multiples of %" PRId64,
           plan_op_name(row_counts->plan, queued->number - 1, name, sizeof(name)), rows, is_own ? "for" : "of", owner,
           maximum, shape->multiple);
}

// Records the row count with this index, which belongs to one local expert. numbers: counts [expert-parallel
// ranks][local experts], from this expert on. *begin: first row of the expert; advances to the next expert.
static void note(const struct row_counts *row_counts, const struct queued_op *queued, int32_t index,
                 const int32_t *numbers, bool is_own, int64_t *begin)
{
    const struct routing_shape *shape = &queued->op->shape.routing;
    struct known               *known = &row_counts->known[index];
    *known                            = (struct known){.is_read = true, .begin = *begin, .parts = known->parts};
    for (int64_t i = 0; i < shape->owners; i++) {
        known->parts[i] = numbers[i * (shape->experts / shape->owners)];
        known->rows += known->parts[i];
        check_count(row_counts, queued, i, is_own, known->parts[i]);
    }
    *begin += known->rows;
}

void row_counts_read(const struct streams *streams, const struct queued_op *queued)
{
    const struct row_counts      *row_counts     = streams->row_counts;
    const struct routing_shape   *shape          = &queued->op->shape.routing;
    const struct backend_streams *device_streams = streams->device_streams;
    const int32_t                *numbers[2];
    int32_t                       index     = (int32_t)(queued->row_count - row_counts->plan->row_counts);
    int64_t                       begins[2] = {0, 0};
    int                           sides     = shape->owners > 1 ? 2 : 1;
    for (int side = 0; side < sides; side++) {
        const struct buffer *from = &queued->buffers[side == 0 ? READ_TOKEN_COUNTS_OWN : READ_TOKEN_COUNTS_RECEIVED];
        numbers[side]             = device_streams != NULL ? row_counts->numbers[side] : from->data;
        if (device_streams != NULL) {
            device_streams->copy(streams->backend, queued->op->stream, row_counts->numbers[side], from->data,
                                 format_bytes(from->format, from->elements));
        }
    }
    if (device_streams != NULL) {
        device_streams->synchronize(streams->backend, queued->op->stream);
    }
    check_own(row_counts, queued, numbers[0]);
    for (int64_t expert = 0; expert < shape->experts / shape->owners; expert++) {
        for (int side = 0; side < sides; side++) {
            note(row_counts, queued, index++, numbers[side] + expert, side == 0, &begins[side]);
        }
    }
}

static struct buffer find_rows(const struct row_counts *row_counts, const struct queued_op *queued, int slot)
{
    const struct plan   *plan   = row_counts->plan;
    const struct tensor *tensor = &plan->tensors[queued->op->operand[slot]];
    const struct known  *known  = &row_counts->known[tensor->row_count - 1];
    int64_t              width  = plan_row_elements(plan, queued->op->operand[slot]);
    struct buffer        buffer = queued->buffers[slot];
    buffer.elements             = known->rows * width;
    if (tensor->is_packed) {
        buffer.data = (char *)buffer.data - (tensor->offset - plan->tensors[tensor->whole].offset) +
                      format_offset(tensor->format, known->begin * width);
    }
    return buffer;
}

bool row_counts_apply(const struct streams *streams, const struct queued_op *queued, struct known_rows *now)
{
    const struct row_counts *row_counts = streams->row_counts;
    const struct op         *op         = queued->op;
    const struct known      *known =
        queued->row_count != NULL ? &row_counts->known[queued->row_count - row_counts->plan->row_counts] : NULL;
    if (known == NULL || op->kind == OP_READ_TOKEN_COUNTS || !known->is_read) {
        return false;
    }
    now->op        = plan_op_of_rows(row_counts->plan, op, known->rows);
    now->queued    = *queued;
    now->queued.op = &now->op;
    now->rows      = known->rows;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0 && row_counts->plan->tensors[op->operand[slot]].row_count > 0) {
            now->queued.buffers[slot] = find_rows(row_counts, queued, slot);
        }
    }
    if (queued->group != NULL) {
        const struct tensor *tensors = row_counts->plan->tensors;
        now->parts                   = (struct communication_parts){
                              .in  = row_counts->known[tensors[op->operand[COMMUNICATION_IN]].row_count - 1].parts,
                              .out = row_counts->known[tensors[op->operand[COMMUNICATION_OUT]].row_count - 1].parts,
                              .row = plan_row_elements(row_counts->plan, op->operand[COMMUNICATION_IN]),
        };
        now->op.shape.communication =
            op->shape.communication;    // `elements` must be equal in the group; `parts` has the actual rows
        now->op.shape.communication.parts = &now->parts;
    }
    return true;
}

void row_counts_clear(const struct streams *streams, const struct known_rows *now)
{
    int           out                  = now->op.kind == OP_GEMM ? (int)GEMM_C : (int)COLUMN_SUM_OUT;
    struct buffer buffers[OP_OPERANDS] = {[CLEAR_OUT] = now->queued.buffers[out]};
    struct op     clear                = {.kind = OP_CLEAR, .stream = now->op.stream, .tag = now->op.tag};
    clear.shape.elements.elements      = buffers[CLEAR_OUT].elements;
    streams->backend->ops->run[OP_CLEAR](streams->backend, &clear, buffers);
}

void row_counts_align(const struct plan *plan, const struct op *op, struct buffer buffers[OP_OPERANDS])
{
    for (int slot = 0; slot < op->operand_count; slot++) {
        const struct tensor *tensor = op->operand[slot] >= 0 ? &plan->tensors[op->operand[slot]] : NULL;
        if (tensor != NULL && tensor->is_packed) {
            int64_t row = format_offset(tensor->format, plan_row_elements(plan, op->operand[slot]));
            buffers[slot].data =
                (char *)buffers[slot].data - (tensor->offset - plan->tensors[tensor->whole].offset) + row;
        }
    }
}

// SPDX-License-Identifier: MIT
// Row counts known only in the step. One op copies tokens per expert to the host and waits. Ops that depend on the
// counts then run with the real number of rows instead of the expected one.
#include <inttypes.h>
#include <time.h>

#include "gswbench/fatal.h"
#include "internal.h"

// A row count as last read.
struct known {
    bool     is_read;
    int64_t  begin, rows;    // begin: first row in the packed buffer of the local experts
    int64_t *parts;          // [owners]: rows from or to each member of the expert-parallel group
};

struct tallies {
    const struct plan *plan;
    struct known      *known;         // [plan->tally_count]
    int64_t           *parts;         // backs known[].parts
    int32_t           *numbers[2];    // pinned host memory for the copies; NULL: not a device
    struct backend    *backend;
};

static const struct routing_shape *shape_of(const struct plan *plan, const struct tally *tally)
{
    return &plan->ops[tally->reader].shape.routing;
}

struct tallies *tallies_open(const struct plan *plan, struct backend *backend)
{
    if (plan->tally_count == 0) {
        return NULL;
    }
    struct tallies *tallies = memory_allocate(sizeof(*tallies));
    int64_t         owners  = shape_of(plan, plan->tallies)->owners;    // the same for all layers
    *tallies                = (struct tallies){.plan    = plan,
                                               .backend = backend,
                                               .known   = memory_allocate((size_t)plan->tally_count * sizeof(*tallies->known)),
                                               .parts   = memory_allocate((size_t)(plan->tally_count * owners) * sizeof(int64_t))};
    for (int32_t i = 0; i < plan->tally_count; i++) {
        tallies->known[i].parts = tallies->parts + i * owners;
    }
    for (int i = 0; i < 2 && backend->ops->streams != NULL; i++) {
        int64_t bytes       = format_bytes(FORMAT_I32, shape_of(plan, plan->tallies)->experts);
        tallies->numbers[i] = backend->ops->streams->allocate_host(backend, bytes);
    }
    return tallies;
}

void tallies_close(struct tallies *tallies)
{
    if (tallies == NULL) {
        return;
    }
    for (int i = 0; i < 2 && tallies->numbers[i] != NULL; i++) {
        tallies->backend->ops->streams->release_host(tallies->backend, tallies->numbers[i]);
    }
    free(tallies->known);
    free(tallies->parts);
    free(tallies);
}

void tallies_forget(struct tallies *tallies)
{
    for (int32_t i = 0; tallies != NULL && i < tallies->plan->tally_count; i++) {
        tallies->known[i].is_read = false;
    }
}

const struct tally *tallies_of(const struct plan *plan, const struct op *op)
{
    if (op->kind != OP_READ_TALLIES) {
        return plan_op_tally(plan, op);
    }
    int32_t i = 0;
    while (i < plan->tally_count && &plan->ops[plan->tallies[i].reader] != op) {
        i++;
    }
    return i < plan->tally_count ? &plan->tallies[i] : NULL;
}

// Each row of this rank chooses top_k experts and none is dropped; counts per expert are rounded up. A count that was
// damaged before the exchange is wrong on other ranks too, but only this rank knows the sum.
static void check_own(const struct tallies *tallies, const struct queued_op *queued, const int32_t *numbers)
{
    const struct routing_shape *shape  = &queued->op->shape.routing;
    int64_t                     needed = shape->rows * shape->top_k, sum = 0;
    char                        name[240];
    for (int64_t i = 0; i < shape->experts; i++) {
        sum += numbers[i];
    }
    if (sum < needed || sum > needed + shape->experts * (shape->quantum - 1)) {
        DAMAGE("%.80s: experts have %" PRId64 " rows of this rank, not %" PRId64,
               plan_op_name(tallies->plan, queued->number - 1, name, sizeof(name)), sum, needed);
    }
}

static void check_count(const struct tallies *tallies, const struct queued_op *queued, int64_t owner, bool is_own,
                        int64_t rows)
{
    const struct routing_shape *shape = &queued->op->shape.routing;
    int64_t                     most  = (shape->rows + shape->quantum - 1) / shape->quantum * shape->quantum;
    char                        name[240];
    if (rows >= 0 && rows <= most && rows % shape->quantum == 0) {
        return;
    }
    if (!is_own) {    // lets the rank whose own counts are damaged report first
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    }
    DAMAGE("%.80s: %" PRId64 " rows %s owner %" PRId64 " of experts: at most %" PRId64 ", in multiples of %" PRId64,
           plan_op_name(tallies->plan, queued->number - 1, name, sizeof(name)), rows, is_own ? "for" : "of", owner,
           most, shape->quantum);
}

// Records one count; rows follow the previous expert's. numbers: [owners][local experts].
static void note(const struct tallies *tallies, const struct queued_op *queued, int32_t index, const int32_t *numbers,
                 bool is_own, int64_t *begin)
{
    const struct routing_shape *shape = &queued->op->shape.routing;
    struct known               *known = &tallies->known[index];
    *known                            = (struct known){.is_read = true, .begin = *begin, .parts = known->parts};
    for (int64_t i = 0; i < shape->owners; i++) {
        known->parts[i] = numbers[i * (shape->experts / shape->owners)];
        known->rows += known->parts[i];
        check_count(tallies, queued, i, is_own, known->parts[i]);
    }
    *begin += known->rows;
}

void tallies_read(const struct lanes *lanes, const struct queued_op *queued)
{
    const struct tallies         *tallies = lanes->tallies;
    const struct routing_shape   *shape   = &queued->op->shape.routing;
    const struct backend_streams *streams = lanes->streams;
    const int32_t                *numbers[2];
    int32_t                       index     = (int32_t)(queued->tally - tallies->plan->tallies);
    int64_t                       begins[2] = {0, 0};
    int                           sides     = shape->owners > 1 ? 2 : 1;
    for (int side = 0; side < sides; side++) {
        const struct buffer *from = &queued->buffers[side == 0 ? READ_TALLIES_OWN : READ_TALLIES_RECEIVED];
        numbers[side]             = streams != NULL ? tallies->numbers[side] : from->data;
        if (streams != NULL) {
            streams->copy(lanes->backend, queued->op->lane, tallies->numbers[side], from->data,
                          format_bytes(from->format, from->elements));
        }
    }
    if (streams != NULL) {
        streams->synchronize(lanes->backend, queued->op->lane);
    }
    check_own(tallies, queued, numbers[0]);
    for (int64_t expert = 0; expert < shape->experts / shape->owners; expert++) {
        for (int side = 0; side < sides; side++) {
            note(tallies, queued, index++, numbers[side] + expert, side == 0, &begins[side]);
        }
    }
}

static struct buffer find_rows(const struct tallies *tallies, const struct queued_op *queued, int slot)
{
    const struct plan   *plan   = tallies->plan;
    const struct tensor *tensor = &plan->tensors[queued->op->operand[slot]];
    const struct known  *known  = &tallies->known[tensor->tally - 1];
    int64_t              width  = plan_row_elements(plan, queued->op->operand[slot]);
    struct buffer        buffer = queued->buffers[slot];
    buffer.elements             = known->rows * width;
    if (tensor->is_packed) {
        buffer.data = (char *)buffer.data - (tensor->offset - plan->tensors[tensor->whole].offset) +
                      format_offset(tensor->format, known->begin * width);
    }
    return buffer;
}

bool tallies_apply(const struct lanes *lanes, const struct queued_op *queued, struct tallied *now)
{
    const struct tallies *tallies = lanes->tallies;
    const struct op      *op      = queued->op;
    const struct known *known = queued->tally != NULL ? &tallies->known[queued->tally - tallies->plan->tallies] : NULL;
    if (known == NULL || op->kind == OP_READ_TALLIES || !known->is_read) {
        return false;
    }
    now->op        = plan_op_of_rows(tallies->plan, op, known->rows);
    now->queued    = *queued;
    now->queued.op = &now->op;
    now->rows      = known->rows;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0 && tallies->plan->tensors[op->operand[slot]].tally > 0) {
            now->queued.buffers[slot] = find_rows(tallies, queued, slot);
        }
    }
    if (queued->group != NULL) {
        const struct tensor *tensors = tallies->plan->tensors;
        now->parts                   = (struct transfer_parts){
                              .in  = tallies->known[tensors[op->operand[TRANSFER_IN]].tally - 1].parts,
                              .out = tallies->known[tensors[op->operand[TRANSFER_OUT]].tally - 1].parts,
                              .row = plan_row_elements(tallies->plan, op->operand[TRANSFER_IN]),
        };
        now->op.shape.transfer = op->shape.transfer;    // elements must agree in the group; parts has the real rows
        now->op.shape.transfer.parts = &now->parts;
    }
    return true;
}

void tallies_clear(const struct lanes *lanes, const struct tallied *now)
{
    int           out                  = now->op.kind == OP_GEMM ? (int)GEMM_C : (int)COLUMN_SUM_OUT;
    struct buffer buffers[OP_OPERANDS] = {[CLEAR_OUT] = now->queued.buffers[out]};
    struct op     clear                = {.kind = OP_CLEAR, .lane = now->op.lane, .tag = now->op.tag};
    clear.shape.elements.elements      = buffers[CLEAR_OUT].elements;
    lanes->backend->ops->run[OP_CLEAR](lanes->backend, &clear, buffers);
}

void tallies_align(const struct plan *plan, const struct op *op, struct buffer buffers[OP_OPERANDS])
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

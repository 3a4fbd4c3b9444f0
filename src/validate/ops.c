// SPDX-License-Identifier: MIT
// The step's own ops on numbers that are the same on every rank. A GEMM's outcome follows from its operands; of other
// ops, all ranks that run one of the same shape with the same means have to find the same bits, and a minority names
// the device that is wrong.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/op_table.h"
#include "internal.h"
#include "numbers.h"

// What a rank tells the others of an op: what it was to compute, with which means, and the bits that it found.
struct outcome {
    uint64_t task, bits;    // task 0: there is none
    int32_t  rank, op;
};

// What the outcome depends on, and all in which ops of a kind differ.
struct task {
    uint64_t kin;    // of ranks that compute alike
    int64_t  elements[OP_OPERANDS];
    uint8_t  formats[OP_OPERANDS], access[OP_OPERANDS];
    uint8_t  kind, accumulates, sums_fast, fused_scaling;
};

// Choices of experts follow from each other, in ways that drawn numbers do not.
static bool can_examine(const struct plan *plan, const struct op *op)
{
    if (op_is_transfer((enum op_kind)op->kind)) {
        return false;
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        bool is_index = op->operand[slot] >= 0 && plan->tensors[op->operand[slot]].format == FORMAT_I32;
        if (is_index && op_table[op->kind].shape != rows_fields) {
            return false;
        }
    }
    return true;
}

static uint64_t task_of(const struct plan *plan, const struct op *op, uint64_t kin)
{
    struct task task;
    memset(&task, 0, sizeof(task));
    task.kin           = kin;
    task.kind          = op->kind;
    task.accumulates   = op->accumulates;
    task.sums_fast     = op->sums_fast;
    task.fused_scaling = op->fused_scaling;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            task.elements[slot] = plan->tensors[op->operand[slot]].elements;
            task.formats[slot]  = (uint8_t)(1 + (int)plan->tensors[op->operand[slot]].format);
            task.access[slot]   = op->access[slot];
        }
    }
    return XXH3_64bits_withSeed(&op->shape, sizeof(op->shape), XXH3_64bits(&task, sizeof(task))) | 1;
}

// For any operand on the host, by which one goes after the other.
static void *open_space(const struct plan *plan)
{
    int64_t most = 1;
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        most = plan->tensors[i].bytes > most ? plan->tensors[i].bytes : most;
    }
    return memory_allocate((size_t)most);
}

static void fill_operands(const struct validation_setup *setup, const struct op *op, void *space)
{
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            const struct tensor *tensor  = &setup->plan->tensors[op->operand[slot]];
            struct numbers       numbers = numbers_of_operand(op, slot, tensor->format, tensor->elements);
            numbers_fill(&numbers, tensor->format, tensor->elements, space);
            step_write(setup->step, op->operand[slot], space);
            numbers_free(&numbers);
        }
    }
}

// The bits of all that the op wrote. wrong: what is wrong with a GEMM.
static uint64_t read_outcome(const struct validation_setup *setup, int32_t index, void *space, struct complaint *wrong)
{
    const struct op *op   = &setup->plan->ops[index];
    uint64_t         hash = 0;
    enum format      formats[OP_OPERANDS];
    for (int slot = 0; slot < op->operand_count; slot++) {
        formats[slot] = op->operand[slot] >= 0 ? setup->plan->tensors[op->operand[slot]].format : FORMAT_F32;
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] < 0 || !(op->access[slot] & ACCESS_WRITE)) {
            continue;
        }
        const struct tensor *tensor = &setup->plan->tensors[op->operand[slot]];
        step_read(setup->step, op->operand[slot], space);
        hash        = XXH3_64bits_withSeed(space, (size_t)tensor->bytes, hash);
        int64_t row = op->kind == OP_GEMM ? gemm_find_wrong_row(op, formats, space) : -1;
        if (row >= 0) {
            char name[240];
            snprintf(wrong->text, sizeof(wrong->text), "%.120s: row %" PRId64 " is not the product of its operands",
                     plan_op_name(setup->plan, index, name, sizeof(name)), row);
        }
    }
    return hash;
}

static bool is_known(const struct outcome *outcomes, int64_t count, uint64_t task)
{
    for (int64_t i = 0; i < count; i++) {
        if (outcomes[i].task == task) {
            return true;
        }
    }
    return false;
}

// One op of each shape. wrong: of the first GEMM that is.
static int64_t examine(const struct validation_setup *setup, struct outcome **outcomes, struct complaint *wrong)
{
    const struct plan *plan  = setup->plan;
    int64_t            count = 0;
    void              *space = open_space(plan);
    *outcomes                = NULL;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op   = &plan->ops[i];
        uint64_t         task = task_of(plan, op, setup->kin);
        if (!can_examine(plan, op) || is_known(*outcomes, count, task)) {
            continue;
        }
        struct complaint own = {.text = ""};
        fill_operands(setup, op, space);
        step_run_op(setup->step, i);
        uint64_t bits        = read_outcome(setup, i, space, &own);
        *outcomes            = memory_resize(*outcomes, (size_t)(count + 1) * sizeof(**outcomes));
        (*outcomes)[count++] = (struct outcome){task, bits, setup->comm->place.rank, i};
        if (wrong->text[0] == '\0') {
            *wrong = own;
        }
    }
    free(space);
    return count;
}

static int compare(const void *one, const void *other)
{
    const struct outcome *a = one, *b = other;
    if (a->task != b->task) {
        return a->task < b->task ? -1 : 1;
    }
    if (a->bits != b->bits) {
        return a->bits < b->bits ? -1 : 1;
    }
    return a->rank - b->rank;
}

// Of the ranks that had one task, in the order of their bits.
struct vote {
    const struct outcome *rarest, *common;    // the first of those with the rarest bits, and with the most common ones
    int64_t               most, count;        // how many have these; of so many
};

// Returns false when all have the same.
static bool take_vote(struct vote *vote, const struct outcome *outcomes, int64_t count)
{
    int64_t fewest = INT64_MAX;
    *vote          = (struct vote){.count = count};
    for (int64_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && outcomes[end].bits == outcomes[begin].bits; end++) {
        }
        if (end - begin < fewest) {
            fewest       = end - begin;
            vote->rarest = &outcomes[begin];
        }
        if (end - begin > vote->most) {
            vote->most   = end - begin;
            vote->common = &outcomes[begin];
        }
    }
    return vote->most < count;
}

// Whoever is not of the majority is wrong; where there is none, one of the rarest speaks for all.
static bool is_wrong(const struct vote *vote, const struct outcome *outcome)
{
    return 2 * vote->most > vote->count ? outcome->bits != vote->common->bits : outcome == vote->rarest;
}

// All ranks', of which each has room for as many as the one with the most: [*count].
static struct outcome *gather(struct comm *comm, const struct outcome *own, int64_t own_count, int64_t *count)
{
    int      ranks  = comm->place.ranks;
    int64_t *counts = memory_allocate((size_t)ranks * sizeof(*counts)), most = 0;
    comm->ops->gather_all(comm, &own_count, counts, sizeof(own_count));
    for (int rank = 0; rank < ranks; rank++) {
        most = counts[rank] > most ? counts[rank] : most;
    }
    struct outcome *padded = memory_allocate((size_t)most * sizeof(*padded));
    struct outcome *all    = memory_allocate((size_t)(ranks * most) * sizeof(*all));
    if (own_count > 0) {
        memcpy(padded, own, (size_t)own_count * sizeof(*own));
    }
    comm->ops->gather_all(comm, padded, all, most * (int64_t)sizeof(*padded));
    *count = ranks * most;
    free(padded);
    free(counts);
    return all;
}

// The first task whose ranks differ; own: what this rank says of it, if it is wrong.
static void judge(const struct validation_setup *setup, struct outcome *all, int64_t count, struct complaint *own)
{
    qsort(all, (size_t)count, sizeof(*all), compare);
    for (int64_t begin = 0, end; begin < count; begin = end) {
        struct vote vote;
        for (end = begin + 1; end < count && all[end].task == all[begin].task; end++) {
        }
        if (all[begin].task == 0 || !take_vote(&vote, all + begin, end - begin)) {
            continue;
        }
        for (int64_t i = begin; i < end; i++) {
            char name[240];
            if (all[i].rank == setup->comm->place.rank && is_wrong(&vote, &all[i])) {
                snprintf(own->text, sizeof(own->text), "%.100s: other bits than %" PRId64 " of %" PRId64 " ranks%s",
                         plan_op_name(setup->plan, all[i].op, name, sizeof(name)), vote.most, vote.count,
                         2 * vote.most > vote.count ? "" : ", which are no majority");
            }
        }
        return;
    }
}

// A reason for each rank that has something to say.
static bool complain(struct validation *validation, const char *id, int64_t step, const struct complaint *own)
{
    struct comm      *comm  = validation->setup.comm;
    int               ranks = comm->place.ranks, count = 0;
    struct complaint *all = memory_allocate((size_t)ranks * sizeof(*all));
    comm->ops->gather_all(comm, own, all, sizeof(*own));
    for (int rank = 0; rank < ranks; rank++) {
        if (all[rank].text[0] != '\0') {
            char message[256];
            snprintf(message, sizeof(message), "rank %d, given numbers %s the steps: %.200s", rank,
                     step < 0 ? "before" : "after", all[rank].text);
            validation_add_reason(validation, id, rank, step, message);
            count++;
        }
    }
    free(all);
    return count > 0;
}

bool validation_examine_ops(struct validation *validation, int64_t step)
{
    const struct validation_setup *setup = &validation->setup;
    struct outcome                *own;
    struct complaint               wrong = {.text = ""};
    int64_t                        count = examine(setup, &own, &wrong), all_count;
    struct outcome                *all   = gather(setup->comm, own, count, &all_count);
    for (int64_t i = 0; i < all_count; i++) {
        setup->result->examined_ops += all[i].task != 0;
    }
    bool has_complaint = complain(validation, "gemm-wrong", step, &wrong);
    if (!has_complaint) {
        judge(setup, all, all_count, &wrong);
        has_complaint = complain(validation, "device-differs", step, &wrong);
    }
    free(all);
    free(own);
    return !has_complaint;
}

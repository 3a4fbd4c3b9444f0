// SPDX-License-Identifier: MIT
// Runs the step's own compute ops on the same inputs on every rank (numbers.c). GEMM outputs are known. For other ops,
// all ranks that run the same shape on the same hardware and libraries must produce the same bits; a minority
// identifies the faulty device (vote.c). Nondeterministic ops must agree within their allowed difference.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/op_table.h"
#include "internal.h"

// Everything that determines an op's output.
struct task {
    uint64_t fingerprint;    // equal on ranks that compute the same bits
    int64_t  elements[OP_OPERANDS];
    uint8_t  formats[OP_OPERANDS], access[OP_OPERANDS];
    uint8_t  kind, accumulates, sums_fast, fused_scaling;
};

// Excludes communication, and ops whose index inputs depend on each other, such as MoE routing: random indices would be
// invalid.
static bool can_test(const struct plan *plan, const struct op *op)
{
    if (op_is_communication((enum op_kind)op->kind)) {
        return false;
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        bool is_index = op->operand[slot] >= 0 && (plan->tensors[op->operand[slot]].format == FORMAT_I32 ||
                                                   op_operand_content(op, slot) != OP_HOLDS_VALUES);
        if (is_index && op_table[op->kind].shape != rows_fields) {
            return false;
        }
    }
    return true;
}

uint64_t ops_task(const struct plan *plan, const struct op *op, uint64_t fingerprint)
{
    struct task task;
    if (!can_test(plan, op)) {
        return 0;
    }
    memset(&task, 0, sizeof(task));
    task.fingerprint   = fingerprint;
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

// Large operands repeat the drawn numbers, one piece at a time.
static void fill_operand(const struct validation_setup *setup, const struct op *op, int slot)
{
    const struct tensor *tensor  = &setup->plan->tensors[op->operand[slot]];
    struct numbers       numbers = numbers_of_operand(op, slot, tensor->format, tensor->elements);
    char                *piece   = memory_allocate((size_t)format_bytes(tensor->format, numbers.count));
    numbers_write(&numbers, tensor->format, piece);
    for (int64_t done = 0; done < tensor->elements; done += numbers.count) {
        int64_t more = tensor->elements - done < numbers.count ? tensor->elements - done : numbers.count;
        step_write_run(setup->step, op->operand[slot], format_offset(tensor->format, done),
                       format_bytes(tensor->format, more), piece);
    }
    free(piece);
    numbers_free(&numbers);
}

static void check_product(const struct validation_setup *setup, int32_t index, struct complaint *wrong)
{
    char    name[240];
    int64_t row = gemm_find_wrong_row(setup, &setup->plan->ops[index]);
    if (row >= 0 && wrong->text[0] == '\0') {
        snprintf(wrong->text, sizeof(wrong->text), "%.120s: row %" PRId64 " is not the product of its operands",
                 plan_op_name(setup->plan, index, name, sizeof(name)), row);
    }
}

// Runs the op and records the hash of its outputs, and sketches if it is nondeterministic. wrong: error of a GEMM.
static void test_op(const struct validation_setup *setup, struct outcome *outcome, struct sketches *sketches,
                    struct complaint *wrong)
{
    const struct op *op      = &setup->plan->ops[outcome->op];
    int              written = 0;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            fill_operand(setup, op, slot);
        }
    }
    step_run_op(setup->step, outcome->op);
    for (int slot = 0; slot < op->operand_count; slot++) {
        struct digest digest;
        if (op->operand[slot] >= 0 && (op->access[slot] & ACCESS_WRITE)) {
            step_digest(setup->step, op->operand[slot], &digest);
            outcome->bits = digest_mix(outcome->bits) + digest.hash;
            if (outcome->bound > 0 && written < OUTCOME_SKETCHES) {
                sketches->of[written++] = digest;
            }
        }
    }
    if (op->kind == OP_GEMM) {
        check_product(setup, outcome->op, wrong);
    }
    validation_beat(setup);
}

static bool is_known(const struct outcomes *outcomes, uint64_t task)
{
    for (int64_t i = 0; i < outcomes->count; i++) {
        if (outcomes->list[i].task == task) {
            return true;
        }
    }
    return false;
}

// Runs one op of each shape. wrong: the first GEMM error.
static struct outcomes test_all(const struct validation_setup *setup, struct complaint *wrong)
{
    const struct plan *plan     = setup->plan;
    struct outcomes    outcomes = {.list = NULL};
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op  = &plan->ops[i];
        struct outcome   one = {
              .task = ops_task(plan, op, setup->fingerprint), .rank = setup->comm->topology.rank, .op = i};
        struct sketches both = {.of = {{.hash = 0}}};
        if (one.task == 0 || is_known(&outcomes, one.task)) {
            continue;
        }
        bool varies = step_op_varies(setup->step, i, false);
        one.bound   = varies ? spread_of_op(plan, op) : 0;
        one.number  = varies ? outcomes.sketch_count++ : -1;
        test_op(setup, &one, &both, wrong);
        LIST_APPEND(outcomes.list, outcomes.count, one);
        if (varies) {
            outcomes.sketches = memory_resize(outcomes.sketches, (size_t)outcomes.sketch_count * sizeof(both));
            outcomes.sketches[one.number] = both;
        }
    }
    return outcomes;
}

// Describes this rank's minority result.
static void describe(const struct validation_setup *setup, const struct vote *vote, const struct outcome *own,
                     struct complaint *complaint)
{
    char        name[240];
    const char *doubt = 2 * vote->maximum > vote->count ? "" : ", which are no majority";
    plan_op_name(setup->plan, own->op, name, sizeof(name));
    if (own->bound == 0) {
        snprintf(complaint->text, sizeof(complaint->text),
                 "%.100s: different bits than on %" PRId64 " of %" PRId64 " ranks%s", name, vote->maximum, vote->count,
                 doubt);
    } else {
        snprintf(complaint->text, sizeof(complaint->text),
                 "%.100s: differs from %" PRId64 " of %" PRId64 " ranks by %.2g of the norm, more than %.2g%s", name,
                 vote->maximum, vote->count, outcome_distance(own, vote->common), own->bound, doubt);
    }
}

// Finds the first task whose ranks differ. own: this rank's error, if it is in the minority.
static void judge(const struct validation_setup *setup, const struct outcomes *outcomes, struct complaint *own)
{
    const struct outcome       *all          = outcomes->list;
    int64_t                     count        = outcomes->count;
    struct result_verification *verification = &setup->result->verification;
    for (int64_t begin = 0, end; begin < count; begin = end) {
        struct vote vote;
        for (end = begin + 1; end < count && all[end].task == all[begin].task; end++) {
        }
        if (all[begin].task == 0) {
            continue;
        }
        bool differ                 = vote_take(&vote, all + begin, end - begin);
        verification->op_bound      = fmax(verification->op_bound, all[begin].bound);
        verification->op_difference = fmax(verification->op_difference, vote.difference);
        for (int64_t i = begin; i < end && differ && own->text[0] == '\0'; i++) {
            if (all[i].rank == setup->comm->topology.rank && vote_is_wrong(&vote, &all[i])) {
                describe(setup, &vote, &all[i], own);
            }
        }
        if (differ) {
            return;
        }
    }
}

static bool complain(struct validation *validation, struct result_reason reason, const struct complaint *own)
{
    struct comm      *comm  = validation->setup.comm;
    int               count = 0;
    struct complaint *all   = comm_gather(comm, own, sizeof(*own));
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        if (all[rank].text[0] != '\0') {
            reason.rank = rank;
            result_note(validation->setup.result, reason, "rank %d, isolated tests %s the steps: %.200s", rank,
                        reason.step < 0 ? "before" : "after", all[rank].text);
            count++;
        }
    }
    free(all);
    return count > 0;
}

bool validation_test_ops(struct validation *validation, int64_t step)
{
    const struct validation_setup *setup = &validation->setup;
    struct complaint               wrong = {.text = ""};
    struct outcomes                own = test_all(setup, &wrong), all = outcomes_gather(setup->comm, &own);
    for (int64_t i = 0; i < all.count; i++) {
        setup->result->examined_ops += all.list[i].task != 0;
    }
    bool has_complaint = complain(validation, WRONG("gemm-wrong", -1, step), &wrong);
    if (!has_complaint) {
        judge(setup, &all, &wrong);
        has_complaint = complain(validation, WRONG("device-differs", -1, step), &wrong);
    }
    outcomes_free(&all);
    outcomes_free(&own);
    return !has_complaint;
}

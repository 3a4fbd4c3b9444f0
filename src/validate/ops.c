// SPDX-License-Identifier: MIT
// Runs compute ops of the step on the same inputs on every rank (numbers.c). The right output of a GEMM is known. For
// other ops, all ranks with the same shape, hardware and libraries must produce the same bits; a rank in the minority
// has a faulty device. Outputs of nondeterministic ops may differ within a bound.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "gswbench/op_table.h"
#include "internal.h"

// Everything that determines the output of an op on random inputs. ops_task hashes it.
struct task {
    uint64_t fingerprint;    // equal on ranks with the same hardware and libraries
    int64_t  elements[OP_OPERANDS];
    uint8_t  formats[OP_OPERANDS], access[OP_OPERANDS];
    uint8_t  kind, accumulates, sums_fast, fused_scaling;
};

enum { OUTCOME_SKETCHES = 2 };    // maximum outputs of a nondeterministic op, such as gradients of attention
struct sketches {
    struct digest of[OUTCOME_SKETCHES];
};

// The output of an op on one rank. task is the hash that ops_task returns. All ranks get the same inputs, so the ranks
// with the same task vote on the right output.
struct outcome {
    uint64_t               task, bits;    // bits: hash of the output; task 0: no entry
    double                 bound;         // allowed difference relative to the norm; 0: the bits must be equal
    int32_t                rank, op;
    int64_t                number;      // index of its digests in the rank's list; -1: the op is deterministic
    const struct sketches *sketches;    // set by outcomes_gather
};
struct outcomes {
    struct outcome  *list;    // [count]
    struct sketches *sketches;
    int64_t          count, sketch_count;
};

static void outcomes_free(struct outcomes *outcomes)
{
    free(outcomes->list);
    free(outcomes->sketches);
    *outcomes = (struct outcomes){.list = NULL};
}

// Gathers a list of every rank. All lists are padded to the length of the longest. *count: length of the result.
static void *gather(struct comm *comm, const void *own, int64_t own_count, int64_t size, int64_t *count)
{
    int64_t maximum = (int64_t)comm_largest(comm, (double)own_count);
    char   *padded  = memory_allocate((size_t)(maximum * size)),
         *all       = memory_allocate((size_t)(comm->topology.ranks * maximum * size));
    if (own_count > 0) {
        memcpy(padded, own, (size_t)(own_count * size));
    }
    comm->ops->gather_all(comm, padded, all, maximum * size);
    free(padded);
    *count = comm->topology.ranks * maximum;
    return all;
}

static int order_outcomes(const void *one, const void *other)
{
    const struct outcome *a = one, *b = other;
    if (a->task != b->task) {
        return a->task < b->task ? -1 : 1;
    }
    return a->rank - b->rank;
}

// Returns the outcomes of all ranks, sorted by task and then by rank. Collective.
static struct outcomes outcomes_gather(struct comm *comm, const struct outcomes *own)
{
    struct outcomes all;
    all.list     = gather(comm, own->list, own->count, sizeof(*own->list), &all.count);
    all.sketches = gather(comm, own->sketches, own->sketch_count, sizeof(*own->sketches), &all.sketch_count);
    for (int64_t i = 0; i < all.count; i++) {
        struct outcome *one   = &all.list[i];
        int64_t         begin = all.sketch_count / comm->topology.ranks * one->rank;
        one->sketches         = one->task != 0 && one->number >= 0 ? &all.sketches[begin + one->number] : NULL;
    }
    qsort(all.list, (size_t)all.count, sizeof(*all.list), order_outcomes);
    return all;
}

// Returns the maximum difference between two ranks' outputs of a nondeterministic op, relative to the norm; NaN if an
// element is NaN.
static double outcome_distance(const struct outcome *one, const struct outcome *other)
{
    double distance = 0;
    for (int i = 0; i < OUTCOME_SKETCHES && one->sketches != NULL && other->sketches != NULL; i++) {
        const struct digest *a = &one->sketches->of[i], *b = &other->sketches->of[i];
        double               norm  = fmax(digest_norm(a), digest_norm(b));
        double               share = a->hash == b->hash ? 0 : digest_distance(a, b) / norm;
        distance                   = share <= distance || isnan(distance) ? distance : share;
    }
    return distance;
}

static bool is_within_bound(const struct outcome *one, const struct outcome *other)
{
    return one->bits == other->bits ||
           (one->sketches != NULL && other->sketches != NULL && outcome_distance(one, other) <= one->bound);
}

// The vote of the ranks that ran one task. An output agrees with another if both are equal or within the bound.
struct vote {
    // The outputs with which the fewest and the most ranks agree; the first of several.
    const struct outcome *rarest, *common;
    int64_t               maximum, count;    // maximum: ranks that agree with `common`; count: all ranks that vote
    double                difference;        // maximum difference of an output from the first one
};

// Counts the votes of the ranks that ran one task. Returns false if all agree.
static bool vote_take(struct vote *vote, const struct outcome *outcomes, int64_t count)
{
    int64_t fewest = INT64_MAX, equal = 0;
    *vote = (struct vote){.rarest = outcomes, .common = outcomes, .count = count};
    for (int64_t i = 0; i < count; i++) {
        vote->difference = fmax(vote->difference, outcome_distance(outcomes, &outcomes[i]));
        equal += is_within_bound(outcomes, &outcomes[i]);
    }
    if (equal == count) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t agreeing = 0;
        for (int64_t j = 0; j < count; j++) {
            agreeing += is_within_bound(&outcomes[i], &outcomes[j]);
        }
        if (agreeing > vote->maximum) {
            vote->maximum = agreeing;
            vote->common  = &outcomes[i];
        }
        if (agreeing < fewest) {
            fewest       = agreeing;
            vote->rarest = &outcomes[i];
        }
    }
    return true;
}

// Returns whether an output is wrong: it disagrees with the majority or, if there is no majority, is the rarest.
static bool vote_is_wrong(const struct vote *vote, const struct outcome *outcome)
{
    return 2 * vote->maximum > vote->count ? !is_within_bound(vote->common, outcome) : outcome == vote->rarest;
}

// Returns whether an op can be tested alone. Communication ops cannot. Ops such as expert routing cannot either,
// because their index operands must agree with each other, and random ones do not.
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

// Fills an operand with random numbers. A large operand repeats them.
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

static void check_product(const struct validation_setup *setup, int32_t index, struct rank_error *wrong)
{
    char    name[240];
    int64_t row = gemm_find_wrong_row(setup, &setup->plan->ops[index]);
    if (row >= 0 && wrong->text[0] == '\0') {
        snprintf(wrong->text, sizeof(wrong->text), "%.120s: row %" PRId64 " is not the product of its operands",
                 plan_op_name(setup->plan, index, name, sizeof(name)), row);
    }
}

// Runs an op and stores the hash of its outputs, and their digests if it is nondeterministic. wrong: error of a GEMM.
static void test_op(const struct validation_setup *setup, struct outcome *outcome, struct sketches *sketches,
                    struct rank_error *wrong)
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

// Runs the first op of each task (struct task). wrong: the first error of a GEMM.
static struct outcomes test_all(const struct validation_setup *setup, struct rank_error *wrong)
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

// Describes how the output of this rank, which is in the minority, differs.
static void describe(const struct validation_setup *setup, const struct vote *vote, const struct outcome *own,
                     struct rank_error *rank_error)
{
    char        name[240];
    const char *doubt = 2 * vote->maximum > vote->count ? "" : ", which are no majority";
    plan_op_name(setup->plan, own->op, name, sizeof(name));
    if (own->bound == 0) {
        snprintf(rank_error->text, sizeof(rank_error->text),
                 "%.100s: different bits than on %" PRId64 " of %" PRId64 " ranks%s", name, vote->maximum, vote->count,
                 doubt);
    } else {
        snprintf(rank_error->text, sizeof(rank_error->text),
                 "%.100s: differs from %" PRId64 " of %" PRId64 " ranks by %.2g of the norm, more than %.2g%s", name,
                 vote->maximum, vote->count, outcome_distance(own, vote->common), own->bound, doubt);
    }
}

// Finds the first task whose outputs differ. own: this rank's error, if its output is wrong.
static void judge(const struct validation_setup *setup, const struct outcomes *outcomes, struct rank_error *own)
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

static bool report_errors(struct validation *validation, struct result_reason reason, const struct rank_error *own)
{
    struct comm       *comm  = validation->setup.comm;
    int                count = 0;
    struct rank_error *all   = comm_gather(comm, own, sizeof(*own));
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
    struct rank_error              wrong = {.text = ""};
    struct outcomes                own = test_all(setup, &wrong), all = outcomes_gather(setup->comm, &own);
    for (int64_t i = 0; i < all.count; i++) {
        setup->result->examined_ops += all.list[i].task != 0;
    }
    bool has_error = report_errors(validation, WRONG("gemm-wrong", -1, step), &wrong);
    if (!has_error) {
        judge(setup, &all, &wrong);
        has_error = report_errors(validation, WRONG("device-differs", -1, step), &wrong);
    }
    outcomes_free(&all);
    outcomes_free(&own);
    return !has_error;
}

// SPDX-License-Identifier: MIT
// Runs a step twice and compares both runs. The first run leaves out the optimizer, so that weights need no copy; the
// second is the timed step. Loss, gradient norm and gradients must be equal, and AdamW must produce the same output
// again on a sample (optimizer.c). Tensors that depend on nondeterministic ops are compared by the norm of their
// difference (spread.c). State is saved and restored tensor by tensor, because a storage also has padding that no op
// writes.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

bool state_is_lasting(const struct plan *plan, int32_t tensor)
{
    enum storage storage = plan->tensors[tensor].storage;
    return plan->tensors[tensor].whole == tensor && storage != STORAGE_INPUT && storage != STORAGE_ACTIVATION;
}

// Copies to validation->small the state that state_restore restores, or (is_back) copies it back from there. Copies
// nothing if validation->small is NULL. Returns the size of this state in bytes.
static int64_t copy_small(const struct validation *validation, bool is_back)
{
    const struct plan *plan  = validation->setup.plan;
    int64_t            bytes = 0;
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        if (!state_is_lasting(plan, i) || plan->tensors[i].storage == STORAGE_GRADIENT ||
            step_is_model_state(plan, i)) {
            continue;
        }
        if (validation->small != NULL && is_back) {
            step_write(validation->setup.step, i, validation->small + bytes);
        } else if (validation->small != NULL) {
            step_read(validation->setup.step, i, validation->small + bytes);
        }
        bytes += plan->tensors[i].bytes;
    }
    return bytes;
}

void state_restore(const struct validation *validation)
{
    copy_small(validation, true);
}

// Replaces each rank's error by the error of the lowest rank that has one. Returns that rank, or -1. Collective.
static int share_error(struct comm *comm, struct rank_error *rank_error)
{
    int                ranks = comm->topology.ranks, found = -1;
    struct rank_error *all = comm_gather(comm, rank_error, sizeof(*rank_error));
    for (int rank = ranks - 1; rank >= 0; rank--) {
        found = all[rank].text[0] != '\0' ? rank : found;
    }
    if (found >= 0) {
        *rank_error = all[found];
    }
    free(all);
    return found;
}

struct validation *validation_open(const struct validation_setup *setup)
{
    struct validation *validation = memory_allocate(sizeof(*validation));
    size_t             count      = (size_t)setup->plan->tensor_count;
    *validation                   = (struct validation){.setup   = *setup,
                                                        .first   = memory_allocate(count * sizeof(struct digest *)),
                                                        .hashes  = memory_allocate(count * sizeof(uint64_t)),
                                                        .hashed  = -2,
                                                        .changed = -1};
    return validation;
}

void validation_close(struct validation *validation)
{
    for (int32_t i = 0; i < validation->setup.plan->tensor_count; i++) {
        free(validation->first[i]);
    }
    free(validation->small);
    spread_close(&validation->spread);
    sample_close(&validation->sample, &validation->setup);
    free(validation->first);
    free(validation->hashes);
    free(validation);
}

void validation_beat(const struct validation_setup *setup)
{
    if (setup->beat != NULL) {
        setup->beat(setup->context);
    }
}

static void take_digest(const struct validation_setup *setup, int32_t tensor, struct digest *digest)
{
    step_digest(setup->step, tensor, digest);
    validation_beat(setup);
}

// Returns whether both runs of a step produce the tensor.
static bool is_compared(const struct validation *validation, int32_t tensor)
{
    const struct plan *plan = validation->setup.plan;
    return state_is_lasting(plan, tensor) && !step_is_model_state(plan, tensor) &&
           !validation->spread.is_unknown[tensor];
}

// Returns the first tensor whose bits have changed since the previous step, although no op writes between steps; -1:
// none.
static int32_t find_changed(const struct validation *validation)
{
    const struct validation_setup *setup   = &validation->setup;
    int32_t                        changed = -1;
    for (int32_t i = 0; i < setup->plan->tensor_count && changed < 0; i++) {
        struct digest now;
        if (state_is_lasting(setup->plan, i)) {
            take_digest(setup, i, &now);
            changed = now.hash == validation->hashes[i] ? -1 : i;
        }
    }
    return changed;
}

static void run_first(struct validation *validation)
{
    const struct validation_setup *setup    = &validation->setup;
    bool                           is_mixed = step_is_captured(setup->step);
    if (validation->spread.variance == NULL || validation->spread.is_mixed != is_mixed) {
        spread_close(&validation->spread);
        spread_open(&validation->spread, setup, is_mixed);
    }
    step_rehearse(setup->step);
    for (int32_t i = 0; i < setup->plan->tensor_count; i++) {
        if (is_compared(validation, i)) {
            if (validation->first[i] == NULL) {
                validation->first[i] = memory_allocate(sizeof(struct digest));
            }
            take_digest(setup, i, validation->first[i]);
        }
    }
}

void validation_begin(struct validation *validation, int64_t index, bool is_repeated)
{
    const struct validation_setup *setup = &validation->setup;
    if (validation->small == NULL) {
        validation->small = memory_allocate((size_t)copy_small(validation, false) + 1);
    }
    copy_small(validation, false);
    if (is_repeated) {
        validation->changed = validation->hashed == index - 1 ? find_changed(validation) : -1;
        sample_take(&validation->sample, setup);
        run_first(validation);
        state_restore(validation);
    }
}

static bool check_memory(const struct validation *validation, int64_t index)
{
    struct rank_error found = {.text = ""};
    if (validation->changed >= 0) {
        plan_tensor_name(validation->setup.plan, validation->changed, found.text, sizeof(found.text));
    }
    int rank = share_error(validation->setup.comm, &found);
    if (rank >= 0) {
        result_note(validation->setup.result, WRONG("memory-changed", rank, index),
                    "rank %d: %.120s changed between steps %" PRId64 " and %" PRId64 ", when nothing writes it", rank,
                    found.text, index - 1, index);
    }
    return rank < 0;
}

// Compares a tensor after the second run with its digest after the first.
static void judge(const struct validation *validation, int32_t tensor, const struct digest *now, struct found *found)
{
    const struct digest *first = validation->first[tensor];
    double               bound = spread_bound(&validation->spread, tensor);
    char                 name[160];
    if (bound == 0 && now->hash != first->hash && found->rank_error.text[0] == '\0') {
        snprintf(found->rank_error.text, sizeof(found->rank_error.text), "left different bits, first in %.120s",
                 plan_tensor_name(validation->setup.plan, tensor, name, sizeof(name)));
    }
    if (bound == 0 || now->hash == first->hash) {
        return;
    }
    double share = digest_distance(now, first) / digest_norm(first);
    if (!(share <= bound) && found->rank_error.text[0] == '\0') {
        snprintf(found->rank_error.text, sizeof(found->rank_error.text),
                 "left numbers that differ by %.2g of their norm, more than %.2g, first in %.100s", share, bound,
                 plan_tensor_name(validation->setup.plan, tensor, name, sizeof(name)));
    }
    found->difference = fmax(found->difference, share);
}

static bool check_runs(struct validation *validation, int64_t index)
{
    const struct validation_setup *setup = &validation->setup;
    struct found                   found = {.difference = 0};
    double                         bound = 0;
    for (int32_t i = 0; i < setup->plan->tensor_count; i++) {
        struct digest now;
        if (is_compared(validation, i)) {
            take_digest(setup, i, &now);
            judge(validation, i, &now, &found);
            bound = fmax(bound, spread_bound(&validation->spread, i));
        }
    }
    struct result_verification *verification = &setup->result->verification;
    verification->repeat_bound               = fmax(verification->repeat_bound, comm_largest(setup->comm, bound));
    verification->repeat_difference =
        fmax(verification->repeat_difference, comm_largest(setup->comm, found.difference));
    int rank = share_error(setup->comm, &found.rank_error);
    if (rank >= 0) {
        result_note(setup->result, WRONG("repeat-differs", rank, index),
                    "step %" PRId64 " run twice %.180s of rank %d: one of the two was wrong", index,
                    found.rank_error.text, rank);
    }
    return rank < 0;
}

bool remakes_weights(const struct plan *plan)
{
    bool remakes = false;
    for (int32_t i = 0; i < plan->op_count && !remakes; i++) {
        remakes = !op_is_optimizer((enum op_kind)plan->ops[i].kind) && step_op_updates(plan, i);
    }
    return remakes;
}

// Runs the ops again that compute weights from the optimizer's output, and compares the results. Returns the first
// weight tensor that differs, or -1.
static int32_t find_wrong_weights(const struct validation *validation)
{
    const struct validation_setup *setup = &validation->setup;
    int32_t                        other = -1;
    if (!remakes_weights(setup->plan)) {
        return -1;
    }
    uint64_t *hashes = memory_allocate((size_t)setup->plan->tensor_count * sizeof(*hashes));
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < setup->plan->tensor_count; i++) {
            struct digest digest;
            if (state_is_lasting(setup->plan, i) && setup->plan->tensors[i].storage == STORAGE_WEIGHT) {
                take_digest(setup, i, &digest);
                other     = pass == 1 && other < 0 && digest.hash != hashes[i] ? i : other;
                hashes[i] = digest.hash;
            }
        }
        if (pass == 0) {
            copy_small(validation, false);
            step_remake_weights(setup->step);
            state_restore(validation);
        }
    }
    free(hashes);
    return other;
}

static bool check_optimizer(struct validation *validation, int64_t index)
{
    const struct validation_setup *setup = &validation->setup;
    struct rank_error              found = {.text = ""};
    int32_t op = sample_compare(&validation->sample, setup), other = find_wrong_weights(validation);
    if (op >= 0) {
        plan_op_name(setup->plan, op, found.text, sizeof(found.text));
    } else if (other >= 0) {
        plan_tensor_name(setup->plan, other, found.text, sizeof(found.text));
    }
    int rank = share_error(setup->comm, &found);
    if (rank >= 0) {
        result_note(setup->result, WRONG("optimizer-differs", rank, index),
                    "step %" PRId64 ", rank %d: %.120s differs when the optimizer is repeated", index, rank,
                    found.text);
    }
    return rank < 0;
}

static void keep_hashes(struct validation *validation, int64_t index)
{
    for (int32_t i = 0; i < validation->setup.plan->tensor_count; i++) {
        struct digest digest;
        if (state_is_lasting(validation->setup.plan, i)) {
            take_digest(&validation->setup, i, &digest);
            validation->hashes[i] = digest.hash;
        }
    }
    validation->hashed = index;
}

bool validation_repeat(struct validation *validation, int64_t index)
{
    struct result *result = validation->setup.result;
    bool           is_right =
        check_memory(validation, index) && check_runs(validation, index) && check_optimizer(validation, index);
    result->repeated_steps++;
    result->repeated_equal += is_right;
    if (validation->setup.is_full && is_right) {
        keep_hashes(validation, index);
    }
    return is_right;
}

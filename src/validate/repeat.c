// SPDX-License-Identifier: MIT
// Steps that are run twice. The plan says which tensors outlive a step; that these have the same bits after both runs
// proves both, whatever the model, since no fault that comes and goes strikes twice alike.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

struct validation *validation_open(const struct validation_setup *setup)
{
    struct validation *validation = memory_allocate(sizeof(*validation));
    size_t             bytes      = (size_t)setup->plan->tensor_count * sizeof(uint64_t);
    *validation                   = (struct validation){.setup   = *setup,
                                                        .hashes  = memory_allocate(bytes),
                                                        .again   = memory_allocate(bytes),
                                                        .hashed  = -2,
                                                        .changed = -1};
    return validation;
}

void validation_close(struct validation *validation)
{
    state_close(&validation->results);
    state_close(&validation->begin);
    free(validation->hashes);
    free(validation->again);
    free(validation);
}

// The first tensor whose hashes differ; -1: none.
static int32_t compare(const struct validation *validation)
{
    for (int32_t i = 0; i < validation->setup.plan->tensor_count; i++) {
        if (validation->hashes[i] != validation->again[i]) {
            return i;
        }
    }
    return -1;
}

// The first rank that has found a tensor, with its name, on every rank; -1: none has.
static int share(const struct validation *validation, int32_t tensor, struct complaint *found)
{
    found->text[0] = '\0';
    if (tensor >= 0) {
        plan_tensor_name(validation->setup.plan, tensor, found->text, sizeof(found->text));
    }
    return complaint_share(validation->setup.comm, found);
}

status validation_begin(struct validation *validation, int64_t index, bool is_repeated)
{
    const struct validation_setup *setup = &validation->setup;
    status                         room  = OK;
    if (validation->results.plan == NULL) {
        room = state_open(&validation->results, setup->plan, setup->step, STATE_RESULT);
    }
    if (is_repeated && validation->begin.plan == NULL && !failed(&room)) {
        room = state_open(&validation->begin, setup->plan, setup->step, STATE_LASTING);
    }
    TRY(room);
    state_save(&validation->results);
    if (is_repeated) {
        validation->changed = -1;
        if (validation->hashed == index - 1) {
            state_hash(setup->plan, setup->step, validation->again);
            validation->changed = compare(validation);
        }
        state_save(&validation->begin);
    }
    return OK;
}

static bool check_memory(const struct validation *validation, int64_t index)
{
    struct complaint found;
    int              rank = share(validation, validation->changed, &found);
    char             message[256];
    if (rank >= 0) {
        snprintf(message, sizeof(message),
                 "rank %d: %.120s changed between steps %" PRId64 " and %" PRId64 ", when nothing writes it", rank,
                 found.text, index - 1, index);
        validation_add_reason(validation, "memory-changed", rank, index, message);
    }
    return rank < 0;
}

bool validation_repeat(struct validation *validation, int64_t index)
{
    const struct validation_setup *setup = &validation->setup;
    struct complaint               found;
    char                           message[256];
    if (!check_memory(validation, index)) {
        return false;
    }
    state_hash(setup->plan, setup->step, validation->hashes);
    state_restore(&validation->begin);
    step_run(setup->step);
    state_hash(setup->plan, setup->step, validation->again);
    validation->hashed = index;
    if (!setup->is_full) {
        state_close(&validation->begin);
    }
    int rank = share(validation, compare(validation), &found);
    setup->result->repeated_steps++;
    setup->result->repeated_equal += rank < 0;
    if (rank >= 0) {
        snprintf(message, sizeof(message),
                 "step %" PRId64 " run twice left different bits, first in %.120s of rank %d: one of the two was wrong",
                 index, found.text, rank);
        validation_add_reason(validation, "repeat-differs", rank, index, message);
    }
    return rank < 0;
}

// SPDX-License-Identifier: MIT
// Copies and hashes tensor by tensor, since a storage has bytes between tensors that nobody writes.
#include "state.h"

#include <stdlib.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"

static bool is_held(const struct plan *plan, int32_t tensor, uint32_t storages)
{
    const struct tensor *held = &plan->tensors[tensor];
    return held->whole == tensor && (storages & 1u << held->storage) != 0;
}

status state_open(struct state *state, const struct plan *plan, struct step *step, uint32_t storages)
{
    *state = (struct state){.plan = plan, .step = step, .storages = storages};
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        int64_t bytes = plan->storage_bytes[storage];
        if ((storages & 1u << storage) == 0 || bytes == 0) {
            continue;
        }
        state->data[storage] = malloc((size_t)bytes);
        if (state->data[storage] == NULL) {
            char text[32];
            return fail_as(EXIT_MEMORY,
                           "no %s of host memory to keep what a step begins with, so that it can be repeated: take "
                           "run.verify = off, or fewer ranks on a host",
                           number_bytes(text, sizeof(text), (double)bytes));
        }
    }
    return OK;
}

void state_save(const struct state *state)
{
    for (int32_t i = 0; i < state->plan->tensor_count; i++) {
        const struct tensor *tensor = &state->plan->tensors[i];
        if (is_held(state->plan, i, state->storages)) {
            step_read(state->step, i, state->data[tensor->storage] + tensor->offset);
        }
    }
}

void state_restore(const struct state *state)
{
    for (int32_t i = 0; i < state->plan->tensor_count; i++) {
        const struct tensor *tensor = &state->plan->tensors[i];
        if (is_held(state->plan, i, state->storages)) {
            step_write(state->step, i, state->data[tensor->storage] + tensor->offset);
        }
    }
}

void state_close(struct state *state)
{
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        free(state->data[storage]);
    }
    *state = (struct state){.plan = NULL};
}

void state_hash(const struct plan *plan, const struct step *step, uint64_t *hashes)
{
    int64_t most = 1;
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        if (is_held(plan, i, STATE_LASTING) && plan->tensors[i].bytes > most) {
            most = plan->tensors[i].bytes;
        }
    }
    void *data = memory_allocate((size_t)most);
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        hashes[i] = 0;
        if (is_held(plan, i, STATE_LASTING)) {
            step_read(step, i, data);
            hashes[i] = XXH3_64bits(data, (size_t)plan->tensors[i].bytes);
        }
    }
    free(data);
}

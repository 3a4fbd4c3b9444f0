// SPDX-License-Identifier: MIT
// Saves and restores tensor by tensor, because storages contain padding that no op writes.
#include "state.h"

#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/step_verify.h"

bool state_is_lasting(const struct plan *plan, int32_t tensor)
{
    enum storage storage = plan->tensors[tensor].storage;
    return plan->tensors[tensor].whole == tensor && storage != STORAGE_INPUT && storage != STORAGE_ACTIVATION;
}

bool state_is_small(const struct plan *plan, int32_t tensor)
{
    return state_is_lasting(plan, tensor) && plan->tensors[tensor].storage != STORAGE_GRADIENT &&
           !step_is_model_state(plan, tensor);
}

static int64_t small_bytes(const struct plan *plan)
{
    int64_t bytes = 1;
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        bytes += state_is_small(plan, i) ? plan->tensors[i].bytes : 0;
    }
    return bytes;
}

void state_open(struct state *state, const struct plan *plan, struct step *step)
{
    *state = (struct state){.plan = plan, .step = step, .data = memory_allocate((size_t)small_bytes(plan))};
}

void state_save(const struct state *state)
{
    char *next = state->data;
    for (int32_t i = 0; i < state->plan->tensor_count; i++) {
        if (state_is_small(state->plan, i)) {
            step_read(state->step, i, next);
            next += state->plan->tensors[i].bytes;
        }
    }
}

void state_restore(const struct state *state)
{
    const char *next = state->data;
    for (int32_t i = 0; i < state->plan->tensor_count; i++) {
        if (state_is_small(state->plan, i)) {
            step_write(state->step, i, next);
            next += state->plan->tensors[i].bytes;
        }
    }
}

void state_close(struct state *state)
{
    free(state->data);
    *state = (struct state){.plan = NULL};
}

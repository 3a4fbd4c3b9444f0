// SPDX-License-Identifier: MIT
// State of a step other than weights, gradients and moments: results, FP8 scales, router biases. It is small, and a
// host copy lets a step run again.
#ifndef GSWBENCH_VALIDATE_STATE_H
#define GSWBENCH_VALIDATE_STATE_H

#include "gswbench/plan.h"
#include "gswbench/step.h"

struct state {
    const struct plan *plan;    // NULL: closed
    struct step       *step;
    char              *data;
};

// Whether a whole tensor keeps its content between steps, and whether it belongs to this small part.
bool state_is_lasting(const struct plan *plan, int32_t tensor);
bool state_is_small(const struct plan *plan, int32_t tensor);

void state_open(struct state *state, const struct plan *plan, struct step *step);
void state_save(const struct state *state);
void state_restore(const struct state *state);
void state_close(struct state *state);

#endif

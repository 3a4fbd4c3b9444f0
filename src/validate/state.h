// SPDX-License-Identifier: MIT
// What a step leaves besides weights, gradients and moments: results, scales of FP8, biases of routers. It is little,
// and a copy of it in the host's memory lets a step run again.
#ifndef GSWBENCH_VALIDATE_STATE_H
#define GSWBENCH_VALIDATE_STATE_H

#include "gswbench/plan.h"
#include "gswbench/step.h"

struct state {
    const struct plan *plan;    // NULL: it is not open
    struct step       *step;
    char              *data;
};

// Whether a tensor is of a plan's state, whole and kept between steps; and whether it is of this part of it.
bool state_is_lasting(const struct plan *plan, int32_t tensor);
bool state_is_small(const struct plan *plan, int32_t tensor);

void state_open(struct state *state, const struct plan *plan, struct step *step);
void state_save(const struct state *state);
void state_restore(const struct state *state);
void state_close(struct state *state);

#endif

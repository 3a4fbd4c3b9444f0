// SPDX-License-Identifier: MIT
// A drill: a step that does one op over and over.
#ifndef GSWBENCH_CALIBRATE_INTERNAL_H
#define GSWBENCH_CALIBRATE_INTERNAL_H

#include "gswbench/calibrate.h"
#include "gswbench/step.h"

struct drill {
    struct plan       plan;
    struct plan_group group;
    int32_t           repeats;    // of the op in a step
    struct step      *step;       // NULL until it is open
};

// drill.c: operands hold random values of the kind that a step has. between is what computes from one transfer to the
// next; NULL: the op computes itself. Collective. A failed one is closed, too.
status drill_open(struct drill *drill, const struct sample *sample, const struct sample *between,
                  const struct calibrate_setup *setup, int32_t repeats);
void   drill_close(struct drill *drill);

// operands.c: fills an operand of an op.
void operand_fill(struct step *step, const struct plan *plan, int32_t tensor, const struct op *op, int slot);

// samples.c: adds an op of the plan, if there is none of its key.
void samples_add(struct sample_list *list, const struct plan *plan, const struct op *op);

#endif

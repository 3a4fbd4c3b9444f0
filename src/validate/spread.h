// SPDX-License-Identifier: MIT
// How far apart two runs of one step may be where an op does not repeat bit by bit.
#ifndef GSWBENCH_VALIDATE_SPREAD_H
#define GSWBENCH_VALIDATE_SPREAD_H

#include "gswbench/validate.h"

// The most by which two runs of an op that varies differ, as a share of the norm of what it writes; 0: it repeats.
double spread_of_op(const struct plan *plan, const struct op *op);

struct spread {
    double *variance;      // [tensors]: the square of that share; 0: they have the same bits
    bool   *is_unknown;    // [tensors]: a step without the optimizer leaves something else
    bool    is_mixed;      // one run issues the step, the other replays it
};

// Collective: an op that varies on one rank may change what others receive.
void   spread_open(struct spread *spread, const struct validation_setup *setup, bool is_mixed);
void   spread_close(struct spread *spread);
double spread_bound(const struct spread *spread, int32_t tensor);

#endif

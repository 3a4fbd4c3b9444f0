// SPDX-License-Identifier: MIT
// Bounds on the difference between two runs of a step with nondeterministic ops.
#ifndef GSWBENCH_VALIDATE_SPREAD_H
#define GSWBENCH_VALIDATE_SPREAD_H

#include "gswbench/validate.h"

// Maximum difference between two runs of a nondeterministic op, relative to the norm of its output.
double spread_of_op(const struct plan *plan, const struct op *op);

struct spread {
    double *variance;      // [tensors]: the square of the relative difference; 0: same bits
    bool   *is_unknown;    // [tensors]: a step without the optimizer leaves another value
    bool    is_mixed;      // one run is issued, the other is a graph replay
};

// Collective, because a nondeterministic op affects data that other ranks receive.
void   spread_open(struct spread *spread, const struct validation_setup *setup, bool is_mixed);
void   spread_close(struct spread *spread);
double spread_bound(const struct spread *spread, int32_t tensor);

#endif

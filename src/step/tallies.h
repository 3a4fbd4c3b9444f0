// SPDX-License-Identifier: MIT
// Ops whose number of rows is known only in the step, such as the tokens of an expert.
#ifndef GSWBENCH_STEP_TALLIES_H
#define GSWBENCH_STEP_TALLIES_H

#include "internal.h"

// Returns NULL if the plan has no such row counts.
struct tallies *tallies_open(const struct plan *plan, struct backend *backend);
void            tallies_close(struct tallies *tallies);

// The row count that sizes the op, or the first one that it reads; NULL: none.
const struct tally *tallies_of(const struct plan *plan, const struct op *op);

// Copies the counts from the device, and blocks until they have arrived.
void tallies_read(const struct lanes *lanes, const struct queue_entry *entry);

// Resizes the queued op to the current row count. Returns false if its size is fixed or the count has not been read;
// then all ranks run the planned size.
struct tallied {
    struct queue_entry    entry;
    struct op             op;
    struct transfer_parts parts;
    int64_t               rows;
};
bool tallies_apply(const struct lanes *lanes, const struct queue_entry *entry, struct tallied *now);

// Zeroes a weight gradient of an expert without rows.
void tallies_clear(const struct lanes *lanes, const struct tallied *now);

// Moves packed operands to the worst alignment that a step can give them, for choosing kernels.
void tallies_align(const struct plan *plan, const struct op *op, struct buffer buffers[OP_OPERANDS]);

#endif

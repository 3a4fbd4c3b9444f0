// SPDX-License-Identifier: MIT
// Ops with as many rows as there are.
#ifndef GSWBENCH_STEP_TALLIES_H
#define GSWBENCH_STEP_TALLIES_H

#include "internal.h"

// NULL: the plan has no tallies.
struct tallies *tallies_open(const struct plan *plan, struct backend *backend);
void            tallies_close(struct tallies *tallies);

// What the op's entry keeps: the tally that its rows follow, or the first of those that it reads.
const struct tally *tallies_of(const struct plan *plan, const struct op *op);

// Waits until the device has the numbers, and takes them.
void tallies_read(const struct lanes *lanes, const struct queue_entry *entry);

// The entry as it is to run now. Returns false for ops whose rows follow no tally, or one that nobody has read: then
// the planned op runs in the planned place, all ranks alike.
struct tallied {
    struct queue_entry    entry;
    struct op             op;
    struct transfer_parts parts;
    int64_t               rows;
};
bool tallies_apply(const struct lanes *lanes, const struct queue_entry *entry, struct tallied *now);

// The gradient of a weight that no row has used.
void tallies_clear(const struct lanes *lanes, const struct tallied *now);

// Moves packed operands to where they are aligned no better than in any step, for whoever decides by it.
void tallies_align(const struct plan *plan, const struct op *op, struct buffer buffers[OP_OPERANDS]);

#endif

// SPDX-License-Identifier: MIT
// Ops that are looked at, and ops that go wrong on purpose.
#ifndef GSWBENCH_STEP_CHECK_H
#define GSWBENCH_STEP_CHECK_H

#include "internal.h"

// That ops are checked, one by one.
struct check {
    const struct plan        *plan;
    const struct queue_entry *entries;    // in list order
    int64_t                   step;       // that runs
    struct step_finding      *finding;    // what is found is left here; NULL: it ends the job
    pthread_mutex_t           mutex;      // of finding
};

// check.c: waits for the op, and ends the job, or notes it, where it wrote a NaN or an infinity.
void check_op(const struct lanes *lanes, const struct queue_entry *entry);

// fault.c: what goes wrong before the op, and after it. Returns false when the op is left out.
bool fault_before(const struct lanes *lanes, const struct queue_entry *entry);
void fault_after(const struct lanes *lanes, const struct queue_entry *entry, double began);
void fault_poke(const struct lanes *lanes, const struct buffer *buffer);

#endif

// SPDX-License-Identifier: MIT
// Ops that are looked at, and ops that go wrong on purpose.
#ifndef GSWBENCH_STEP_CHECK_H
#define GSWBENCH_STEP_CHECK_H

#include "internal.h"

// That ops are checked, one by one.
struct check {
    const struct plan   *plan;
    int64_t              step;       // that runs
    struct step_finding *finding;    // what is found is left here; NULL: it ends the job
    pthread_mutex_t      mutex;      // of finding
};

// That transfers are given numbers whose outcome is known, and nothing computes.
struct exam {
    const struct plan   *plan;
    bool                *is_chosen;    // [ops]: which transfers are looked at
    struct step_finding *finding;
    pthread_mutex_t      mutex;    // of finding
};

// exam.c: a transfer with such numbers.
void exam_run(struct lanes *lanes, const struct queue_entry *entry);

// check.c: waits for the op, and ends the job, or notes it, where it wrote a NaN or an infinity.
void check_op(const struct lanes *lanes, const struct queue_entry *entry);

// fault.c: what goes wrong before the op, and after it. Returns false when the op is left out.
bool fault_before(const struct lanes *lanes, const struct queue_entry *entry);
void fault_after(const struct lanes *lanes, const struct queue_entry *entry, double began);
void fault_poke(const struct lanes *lanes, const struct buffer *buffer, int64_t element);

#endif

// SPDX-License-Identifier: MIT
// Checks for NaN and infinity, communication tests, and fault injection.
#ifndef GSWBENCH_STEP_CHECK_H
#define GSWBENCH_STEP_CHECK_H

#include "internal.h"

// Checks the output of each op.
struct check {
    const struct plan   *plan;
    int64_t              step;
    struct step_finding *finding;    // where to record a finding; NULL: end the job
    pthread_mutex_t      mutex;      // protects finding
};

// Tests communication ops with known results; compute ops are skipped.
struct exam {
    const struct plan   *plan;
    bool                *is_chosen;    // [ops]: whether to check the op
    struct step_finding *finding;
    pthread_mutex_t      mutex;    // protects finding
};

// exam.c: runs one communication op with known inputs and checks its output.
void exam_run(struct lanes *lanes, const struct queue_entry *entry);

// check.c: waits for the op. If it wrote a NaN or an infinity, ends the job or records it.
void check_op(const struct lanes *lanes, const struct queue_entry *entry);

// fault.c: injects a fault before or after the op. fault_before returns false to skip the op.
bool fault_before(const struct lanes *lanes, const struct queue_entry *entry);
void fault_after(const struct lanes *lanes, const struct queue_entry *entry, double began);
void fault_poke(const struct lanes *lanes, const struct buffer *buffer, int64_t element);

#endif

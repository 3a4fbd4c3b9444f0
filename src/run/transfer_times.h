// SPDX-License-Identifier: MIT
// The transfers of a traced step: their bus bandwidth, and who is waited for.
#ifndef GSWBENCH_RUN_TRANSFER_TIMES_H
#define GSWBENCH_RUN_TRANSFER_TIMES_H

#include "internal.h"

struct measured_ops;

struct transfer_times_setup {
    const struct config       *config;
    const struct plan         *plan;
    struct step               *step;
    struct comm               *comm;
    const struct op_time      *times;       // of the traced step, in the order of the plan's ops
    const struct measured_ops *measured;    // of the profile
    struct result             *result;
};

// Fills the result's transfer_times, on rank 0. Runs transfers alone, after which nothing of the step's memory may be
// needed. Collective.
void transfer_times_add(const struct transfer_times_setup *setup);

#endif

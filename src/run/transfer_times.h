// SPDX-License-Identifier: MIT
// Bus bandwidth of a traced step's collectives, and the ranks that others wait for.
#ifndef GSWBENCH_RUN_TRANSFER_TIMES_H
#define GSWBENCH_RUN_TRANSFER_TIMES_H

#include "internal.h"

struct measured_ops;

struct transfer_times_setup {
    const struct config       *config;
    const struct plan         *plan;
    struct step               *step;
    struct comm               *comm;
    const struct op_time      *times;       // of the traced step, indexed like the plan's ops
    const struct measured_ops *measured;    // of the profile
    struct result             *result;
};

// Equal collectives or sends/receives, over all ranks.
struct transfer_row {
    int64_t  elements, group_size, count;    // group_size 0: no row
    uint32_t axes;
    int32_t  kind, format, lane;
};

// Rows over all ranks, and NCCL's algorithm for each.
enum { TRANSFER_ROWS = 64 };
struct transfer_rows {
    struct transfer_row rows[TRANSFER_ROWS];
    struct comm_choice  chosen[TRANSFER_ROWS];
};

// Fills the zeroed rows, and transfer_times of rank 0's result. Runs collectives alone, which overwrites the step's
// memory. Collective.
void transfer_times_add(const struct transfer_times_setup *setup, struct transfer_rows *rows);

// Row of a communication op, and the algorithm of an equal row; NULL if the table was full.
struct transfer_row       transfer_describe(const struct plan *plan, const struct op *op);
const struct comm_choice *transfer_chosen(const struct transfer_rows *rows, const struct transfer_row *row);

// Bytes per link over bytes of the collective, as in nccl-tests (busbw / algbw); NaN for others.
double transfer_bus_factor(int32_t kind, double size);

#endif

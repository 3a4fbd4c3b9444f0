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

// Transfers that are alike, on all ranks that have them. No padding: it is compared whole.
struct transfer_row {
    int64_t  elements, group_size, count;    // group_size 0: no row
    uint32_t axes;
    int32_t  kind, format, lane;
};

// Every rank's, and how a library makes each, by the word of the member that knows it.
enum { TRANSFER_ROWS = 64 };
struct transfer_rows {
    struct transfer_row rows[TRANSFER_ROWS];
    struct comm_choice  chosen[TRANSFER_ROWS];
};

// Fills the result's transfer_times, on rank 0, and the zeroed rows. Runs transfers alone, after which nothing of the
// step's memory may be needed. Collective.
void transfer_times_add(const struct transfer_times_setup *setup, struct transfer_rows *rows);

// The row of an op that transfers, and of rows the one like it; NULL: there is no room for it.
struct transfer_row       transfer_describe(const struct plan *plan, const struct op *op);
const struct comm_choice *transfer_chosen(const struct transfer_rows *rows, const struct transfer_row *row);

// Bytes that pass a link, over those of the transfer: as nccl-tests counts them. NaN: it is none.
double transfer_bus_factor(int32_t kind, double size);

#endif

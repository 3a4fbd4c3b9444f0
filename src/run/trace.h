// SPDX-License-Identifier: MIT
// Traced steps: where op times come from, and the tables and files of collectives and sends/receives.
#pragma once

#include "internal.h"

// Fails if the source requested by [trace] is unavailable. peers: [ranks]. Collective.
status trace_source_check(const struct trace_config *config, struct backend *backend, struct comm *comm,
                          const struct environment_peer *peers);

// communication_files.c: appends one rank's text to rank 0's file, without a shared file system. file and its status,
// written, are used on rank 0 only; after an error nothing more is appended. Collective.
void collect_text(struct comm *comm, int rank, const struct text_stream *own, struct output *file, status *written);

// communication_times.c: bus bandwidth of a traced step's collectives, and the ranks that others wait for.
struct measured_ops;

struct communication_times_setup {
    const struct config       *config;
    const struct plan         *plan;
    struct step               *step;
    struct comm               *comm;
    const struct op_time      *times;       // of the traced step, indexed like the plan's ops
    const struct measured_ops *measured;    // of the profile
    struct result             *result;
};

// A row of the table: communication ops of all ranks with the same kind, size, format, group and stream.
struct communication_row {
    int64_t  elements, group_size, count;    // group_size 0: no row
    uint32_t axes;
    int32_t  kind, format, stream;
};

// Rows over all ranks, and NCCL's algorithm for each.
enum { COMMUNICATION_ROWS = 64 };
struct communication_rows {
    struct communication_row rows[COMMUNICATION_ROWS];
    struct comm_choice       chosen[COMMUNICATION_ROWS];
};

// Fills the zeroed rows, and communication_times of rank 0's result. Runs collectives once more without compute, which
// overwrites the memory of the step. Collective.
void communication_times_add(const struct communication_times_setup *setup, struct communication_rows *rows);

// Row of a communication op, and the algorithm of an equal row; NULL if the table was full.
struct communication_row  communication_describe(const struct plan *plan, const struct op *op);
const struct comm_choice *communication_chosen(const struct communication_rows *rows,
                                               const struct communication_row  *row);

// Bytes per link over bytes of the collective, as in nccl-tests (busbw / algbw); NaN for others.
double communication_bus_factor(int32_t kind, double size);

// communication_files.c: CSV files of a traced step's collectives and sends/receives, one per rank. bytes: upper
// estimate of the size of the selected files, as if all ranks had this plan; bytes_of_all: the same for files of every
// rank.
struct communication_files {
    const struct trace_config *trace;
    const struct plan         *plan;
    int64_t                    bytes, bytes_of_all;
    bool                       is_cut;    // with auto: files of every rank would be too large
};
struct communication_files communication_files_of(const struct trace_config *trace, const struct plan *plan);
bool                       communication_files_have(const struct communication_files *files, int64_t rank);

// Writes transfers/RANK.csv of selected ranks into rank 0's folder; its status and is_cut count. Collective.
status communication_files_write(const struct communication_times_setup *setup, const struct communication_rows *rows,
                                 const struct output_folder *folder);

// SPDX-License-Identifier: MIT
// Traced steps: the source of their op times, and the tables and files of their collectives, sends and receives.
#pragma once

#include "internal.h"

// Fails if op times of the source that [trace] requests are not available. peers: [ranks]. Collective.
status trace_source_check(const struct trace_config *config, struct backend *backend, struct comm *comm,
                          const struct environment_peer *peers);

// communication_files.c: appends the text of one rank to rank 0's file, without a shared file system. file and written
// are used on rank 0 only; written is the status of the file, and after an error no text is appended. Collective.
void collect_text(struct comm *comm, int rank, const struct text_stream *own, struct output *file, status *written);

// communication_times.c: finds the bus bandwidth of a traced step's collectives, and the ranks for which others wait.
struct measured_ops;

struct communication_times_setup {
    const struct config          *config;
    const struct plan            *plan;
    struct step                  *step;
    struct comm                  *comm;
    const struct op_time         *times;       // [plan.op_count]: op times of the traced step
    const struct hardware_config *hardware;    // to predict for; NULL: not known
    const struct measured_ops    *measured;    // op times of the hardware profile; NULL: there are none
    struct result                *result;
};

// A row of the result's communication_times: ops of all ranks with equal kind, size, format, axes and stream.
struct communication_row {
    int64_t  elements, group_size, count;    // count: ops per rank (maximum); group_size 0: no row
    uint32_t axes;
    int32_t  kind, format, stream;
};

// The rows of a job, and the algorithm that NCCL chose for each.
enum { COMMUNICATION_ROWS = 64 };
struct communication_rows {
    struct communication_row rows[COMMUNICATION_ROWS];
    struct comm_choice       chosen[COMMUNICATION_ROWS];
};

// Fills the rows, which must be zeroed, and communication_times of rank 0's result. Runs each collective again without
// compute, which overwrites tensors of the step. Collective.
void communication_times_add(const struct communication_times_setup *setup, struct communication_rows *rows);

// communication_describe returns a row for one communication op. communication_chosen returns the algorithm of an equal
// row, or NULL if the op has no row because the table was full.
struct communication_row  communication_describe(const struct plan *plan, const struct op *op);
const struct comm_choice *communication_chosen(const struct communication_rows *rows,
                                               const struct communication_row  *row);

// Returns the bytes that a link moves per byte of the collective, as in nccl-tests (busbw / algbw); NaN for other ops.
double communication_bus_factor(int32_t kind, double size);

// communication_files.c: CSV files with a traced step's collectives, sends and receives, one file per rank. bytes:
// upper limit of their total size, if all ranks have this many ops; bytes_of_all: the same if every rank has a file.
struct communication_files {
    const struct trace_config *trace;
    const struct plan         *plan;
    int64_t                    bytes, bytes_of_all;
    // with trace.communications = auto: not every rank has a file, because all files would be too large
    bool is_cut;
};
struct communication_files communication_files_of(const struct trace_config *trace, const struct plan *plan);
bool                       communication_files_have(const struct communication_files *files, int64_t rank);

// Writes transfers/RANK.csv of the selected ranks into rank 0's folder. Rank 0 decides which ranks have a file, and
// only its status matters. Collective.
status communication_files_write(const struct communication_times_setup *setup, const struct communication_rows *rows,
                                 const struct output_folder *folder);

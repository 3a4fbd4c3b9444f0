// SPDX-License-Identifier: MIT
// CSV files of a traced step's collectives and sends/receives, one per rank.
#ifndef GSWBENCH_RUN_TRANSFER_FILES_H
#define GSWBENCH_RUN_TRANSFER_FILES_H

#include "transfer_times.h"

// Selected ranks, and an upper estimate of their size, which takes all plans to be like this one.
struct transfer_files {
    const struct trace_config *trace;
    const struct plan         *plan;
    int64_t                    bytes, bytes_of_all;
    bool                       is_cut;    // with auto: files of every rank would be too large
};
struct transfer_files transfer_files_of(const struct trace_config *trace, const struct plan *plan);
bool                  transfer_files_have(const struct transfer_files *files, int64_t rank);

// Writes transfers/RANK.csv of selected ranks into rank 0's folder; its status and is_cut count. Collective.
status transfer_files_write(const struct transfer_times_setup *setup, const struct transfer_rows *rows,
                            const struct output_folder *folder);

#endif

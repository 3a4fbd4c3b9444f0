// SPDX-License-Identifier: MIT
// Every transfer of a traced step, in a file for each rank.
#ifndef GSWBENCH_RUN_TRANSFER_FILES_H
#define GSWBENCH_RUN_TRANSFER_FILES_H

#include "transfer_times.h"

// Of which ranks they are, and how large together, rather more than less, were all ranks' plans this one.
struct transfer_files {
    const struct trace_config *trace;
    const struct plan         *plan;
    int64_t                    bytes, bytes_of_all;
    bool                       is_cut;    // auto, where those of all ranks would be too large
};
struct transfer_files transfer_files_of(const struct trace_config *trace, const struct plan *plan);
bool                  transfer_files_have(const struct transfer_files *files, int64_t rank);

// transfers/RANK.csv of every rank that [trace] transfers names, in the folder of rank 0, whose status counts, as does
// its size. Collective.
status transfer_files_write(const struct transfer_times_setup *setup, const struct transfer_rows *rows,
                            const struct output_folder *folder);

#endif

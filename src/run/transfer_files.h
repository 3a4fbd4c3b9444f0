// SPDX-License-Identifier: MIT
// Every transfer of a traced step, in a file for each rank.
#ifndef GSWBENCH_RUN_TRANSFER_FILES_H
#define GSWBENCH_RUN_TRANSFER_FILES_H

#include "transfer_times.h"

// transfers/RANK.csv of every rank that [trace] transfers names, in the folder of rank 0, whose status counts.
// Collective.
status transfer_files_write(const struct transfer_times_setup *setup, const struct transfer_rows *rows,
                            const struct output_folder *folder);

#endif

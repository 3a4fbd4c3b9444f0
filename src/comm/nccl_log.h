// SPDX-License-Identifier: MIT
// What NCCL's log says of how it makes a collective.
#ifndef GSWBENCH_COMM_NCCL_LOG_H
#define GSWBENCH_COMM_NCCL_LOG_H

#include "gswbench/comm.h"

// Makes NCCL write its choices where nccl_log_read finds them; before it is opened. Fails (EXIT_LAUNCH) where its log
// is the user's already. Memory of the process, which goes with it.
status nccl_log_open(int *file);

// The last choice of which a line tells that was written since the call before, which left off at *place; else "".
struct comm_choice nccl_log_read(int file, int64_t *place);

// Whether a line of the log tells of one.
bool nccl_log_parse(const char *line, struct comm_choice *choice);

#endif

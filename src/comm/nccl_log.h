// SPDX-License-Identifier: MIT
// Reads NCCL's choice of algorithm for a collective from its log.
#pragma once

#include "gswbench/comm.h"

// Redirects NCCL's log to an in-memory file; call it before NCCL is loaded. Fails with EXIT_LAUNCH if the user has
// already configured the log. The file is freed with the process.
status nccl_log_open(int *file);

// If NCCL_DEBUG is set, selects and opens the file of NCCL's log. NCCL itself would truncate the target of a symbolic
// link. Fails with EXIT_LAUNCH if the name is a symbolic link or cannot be opened.
status nccl_log_choose_file(void);

// Returns the last choice in the log after *position, and advances *position; "": none.
struct comm_choice nccl_log_read(int file, int64_t *position);

// Parses a log line. Returns false if it contains no choice.
bool nccl_log_parse(const char *line, struct comm_choice *choice);

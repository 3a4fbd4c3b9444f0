// SPDX-License-Identifier: MIT
// Files that rank 0 writes of what others say: hosts need no file system in common.
#ifndef GSWBENCH_RUN_COLLECT_H
#define GSWBENCH_RUN_COLLECT_H

#include "gswbench/comm.h"
#include "gswbench/output.h"
#include "gswbench/text.h"

// Appends unless something has failed before.
void collect_append(struct output *file, const void *data, size_t bytes, status *written);

// Appends one rank's text to rank 0's file; only there file and status count. Collective.
void collect_text(struct comm *comm, int rank, const struct text_stream *own, struct output *file, status *written);

#endif

// SPDX-License-Identifier: MIT
// Collects text from every rank in files of rank 0, without a shared file system.
#ifndef GSWBENCH_RUN_COLLECT_H
#define GSWBENCH_RUN_COLLECT_H

#include "gswbench/comm.h"
#include "gswbench/output.h"
#include "gswbench/text.h"

// Appends unless an earlier call failed.
void collect_append(struct output *file, const void *data, size_t bytes, status *written);

// Appends one rank's text to rank 0's file. file and written matter on rank 0 only. Collective.
void collect_text(struct comm *comm, int rank, const struct text_stream *own, struct output *file, status *written);

#endif

// SPDX-License-Identifier: MIT
// What the files of this folder share.
#ifndef GSWBENCH_CHECKPOINT_INTERNAL_H
#define GSWBENCH_CHECKPOINT_INTERNAL_H

#include "gswbench/checkpoint.h"

// Where weights come from: the present ones of a job's steps, or, without a step, the initial ones of a seed.
struct weight_source {
    const struct plan *plan;
    const struct step *step;
    struct comm       *comm;
    uint64_t           seed;
};

// Writes the folder with at most shard_bytes of tensor data a file; a larger tensor gets a file of its own.
status checkpoint_write_folder(const struct weight_source *source, const char *folder, int64_t shard_bytes);

#endif

// SPDX-License-Identifier: MIT
// What a rank saves: runs of its tensors, under the names of their slices.
#ifndef GSWBENCH_CHECKPOINT_SHARD_H
#define GSWBENCH_CHECKPOINT_SHARD_H

#include "internal.h"
#include "slices.h"

struct shard {
    struct safetensor *entries;    // [count], in the order of the file
    struct shard_run {
        int32_t tensor;
        int64_t first;    // element of it
    } * runs;             // beside them; those of a tensor follow one another
    int32_t count;
    int64_t bytes;
};

struct shard shard_describe(const struct plan *plan);
void         shard_free(struct shard *shard);

#endif

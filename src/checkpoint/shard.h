// SPDX-License-Identifier: MIT
// The slices that one rank saves.
#pragma once

#include "internal.h"
#include "slices.h"

struct shard {
    struct safetensor *entries;    // [count], in file order
    struct shard_run {
        int32_t tensor;
        int64_t first;    // first element in that tensor
    } * runs;             // parallel to entries; runs of the same tensor are consecutive
    int32_t count;
    int64_t bytes;
};

struct shard shard_describe(const struct plan *plan);
void         shard_free(struct shard *shard);

// SPDX-License-Identifier: MIT
// What the files of this folder share.
#ifndef GSWBENCH_CHECKPOINT_INTERNAL_H
#define GSWBENCH_CHECKPOINT_INTERNAL_H

#include "gswbench/checkpoint.h"
#include "gswbench/safetensors.h"

// Where weights come from: the present ones of a job's steps, or, without a step, the initial ones of a seed.
struct weight_source {
    const struct plan *plan;
    const struct step *step;
    struct comm       *comm;
    uint64_t           seed;
};

// Where a part of a weight is: its weight in a plan.
struct part_place {
    const struct weight      *weight;
    const struct weight_part *part;    // NULL: not there
};

// One part of one weight on its way to a file.
struct export
{
    const struct weight_part *part;
    int32_t                   shard;
};

struct export_list {
    struct plan       *holders;    // that the parts belong to; NULL: to the plan that the list was made for
    struct export     *exports;
    struct safetensor *tensors;    // [count], beside exports
    int64_t            holder_count;
    int32_t            count, shards;
    int64_t            total_bytes;
};

// exports.c: the parts of all stages in the order of the model, its experts last; a shard is full when the next part
// would exceed the limit. The same on every rank.
struct export_list exports_list(const struct plan *plan, int64_t shard_bytes);
void               exports_free(struct export_list *list);
struct part_place  exports_find(const struct plan *plan, const struct export *export);

// A safetensors file begins with the length of its header; an element type has a code there, by enum format.
enum { SAFETENSORS_LENGTH_BYTES = 8 };
extern const char *const safetensors_codes[];

// Writes the folder with at most shard_bytes of tensor data a file; a larger tensor gets a file of its own.
status checkpoint_write_folder(const struct weight_source *source, const struct output_folder *folder,
                               int64_t shard_bytes);

#endif

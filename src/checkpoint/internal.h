// SPDX-License-Identifier: MIT
// What the files of this folder share.
#ifndef GSWBENCH_CHECKPOINT_INTERNAL_H
#define GSWBENCH_CHECKPOINT_INTERNAL_H

#include <jansson.h>

#include "gswbench/checkpoint.h"
#include "gswbench/safetensors.h"

// Where weights come from: the present ones of a job's steps, those of a checkpoint, or, without both, the initial ones
// of a seed; and the type that they are to have.
struct weight_source {
    const struct plan *plan;
    const struct step *step;
    struct comm       *comm;
    struct catalogue  *stored;
    uint64_t           seed;
    enum format        format;
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
    bool                      is_narrow;    // a step computes with it in FP8
};

struct export_list {
    struct plan       *holders;    // that the parts belong to; NULL: to the plan that the list was made for
    struct export     *exports;
    struct safetensor *tensors;    // [count], beside exports; behind them those of the routers' biases
    int64_t            holder_count;
    int32_t            count, shards;
    int64_t            total_bytes;
    int32_t            bias_count;    // tensors of routers' biases, in the last file; 0: there are none
};

// exports.c: the parts of all stages in the order of the model, its experts last; a shard is full when the next part
// would exceed the limit. The same on every rank.
struct export_list exports_list(const struct plan *plan, enum format format, int64_t shard_bytes);
void               exports_free(struct export_list *list);
// The name of the biases of a layer with experts, or of all of them where all are one tensor. Returns how many there
// are.
int32_t           exports_name_bias(const struct plan *plan, int32_t index, char name[SAFETENSORS_NAME_BYTES]);
struct part_place exports_find(const struct plan *plan, const struct export *export);

// A safetensors file begins with the length of its header; an element type has a code there, by enum format.
static inline void checkpoint_enter(const struct checkpoint_watch *watch, const char *path)
{
    if (watch->enter != NULL) {
        watch->enter(watch->context, path);
    }
}
static inline void checkpoint_moved(const struct checkpoint_watch *watch)
{
    if (watch->moved != NULL) {
        watch->moved(watch->context);
    }
}

enum { SAFETENSORS_LENGTH_BYTES = 8 };
extern const char *const safetensors_codes[];

// "FILE: tensor 'NAME': PROBLEM", the name made safe to print.
status safetensors_refuse(const char *path, const char *name, const char *problem);

// checksums.c: a checksum as text; the metadata that a file is written with; the header's checksum of its text, which
// changes; what is read set against the metadata, NULL where there are none; and a tensor's data, when they are read.
enum { CHECKSUM_BYTES = 17 };
void     checksum_print(uint64_t checksum, char text[CHECKSUM_BYTES]);
json_t  *checksums_describe(const struct safetensor *tensors, int32_t count, uint64_t header_checksum);
uint64_t checksums_of_header(char *text, size_t bytes);
status   checksums_read(struct safetensors_reader *reader, json_t *metadata, uint64_t header_checksum);
status   checksums_verify(const char *path, const struct safetensor *tensor, const void *data);

// The same of data that come piece by piece, of whole elements: as they are read, while they are near. The end frees.
struct checksum_run {
    const struct safetensor *tensor;
    struct XXH3_state_s     *hash;    // NULL: it has no checksum
    bool                     is_finite;
};
bool   checksum_is_finite(enum format format, const void *data, int64_t bytes);    // no NaN, no infinity
bool   half_is_finite(const void *data, int64_t bytes);                            // likewise of F16
float  half_to_float(uint16_t half);
void   checksum_begin(struct checksum_run *run, const struct safetensor *tensor);
void   checksum_add(struct checksum_run *run, const void *data, int64_t bytes);
status checksum_end(struct checksum_run *run, const char *path);

// describe.c: config.json, by which Hugging Face's classes know the model; and whether one that is read is of another.
// The caller owns the reference.
json_t *describe_model(const struct model_config *model, int64_t sequence, enum format format);
status  describe_compare(const char *path, const json_t *expected, const json_t *found);

// checkpoint.c: a document as text, which the caller frees; it is released.
char *json_text(json_t *json);

// checkpoint.c: the weights of a checkpoint in a new folder.
status checkpoint_write_stored(const struct plan *plan, struct catalogue *stored, const char *folder);

// Writes the folder with at most shard_bytes of tensor data a file; a larger tensor gets a file of its own.
status checkpoint_write_folder(const struct weight_source *source, const struct output_folder *folder,
                               int64_t shard_bytes);

#endif

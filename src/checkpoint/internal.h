// SPDX-License-Identifier: MIT
// Shared by the files of this folder: exports of weights, checksums, and Hugging Face's config.json.
#pragma once

#include <jansson.h>

#include "gswbench/checkpoint.h"
#include "gswbench/safetensors.h"

// Source of exported weights: a running job (step), a checkpoint (stored), or neither: the initial weights of a seed.
// format: type in the file.
struct weight_source {
    const struct plan *plan;
    const struct step *step;
    struct comm       *comm;
    struct catalogue  *stored;
    uint64_t           seed;
    enum format        format;
};

// A part of a weight, found in a plan.
struct part_place {
    const struct weight      *weight;
    const struct weight_part *part;    // NULL: not in this plan
};

// One part of one weight to be written to a file.
struct export
{
    const struct weight_part *part;
    int32_t                   shard;
    bool                      is_low_precision;    // kept in FP8 for compute
    bool                      is_muon;             // without second moments
    bool                      is_frozen;           // without optimizer state
};

struct export_list {
    struct plan       *holders;    // plans that own the parts; NULL: the caller's plan
    struct export     *exports;
    struct safetensor *tensors;    // [count], parallel to exports; then the router biases
    int64_t            holder_count;
    int32_t            count, shards;
    int64_t            total_bytes;
    int32_t            bias_count;    // router bias tensors, in the last file; 0: none
};

// checkpoint.c: lists the weight parts to export of all pipeline stages, in model order, experts last. If a part would
// make a file (shard) larger than shard_bytes, it starts a new file. The list is the same on every rank.
struct export_list exports_list(const struct plan *plan, enum format format, int64_t shard_bytes);
void               exports_free(struct export_list *list);
// Names an expert layer's router bias, or the one tensor of all biases. Returns the number of bias tensors.
int32_t           exports_name_bias(const struct plan *plan, int32_t index, char name[SAFETENSORS_NAME_BYTES]);
struct part_place exports_find(const struct plan *plan, const struct export *export);

// Report progress to the watchdog, if it has callbacks.
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

// A safetensors file starts with its header's length. safetensors_codes: dtype by enum format.
enum { SAFETENSORS_LENGTH_BYTES = 8 };
extern const char *const safetensors_codes[];

// "FILE: tensor 'NAME': PROBLEM"; the name is made printable.
status safetensors_refuse(const char *path, const char *name, const char *problem);

// safetensors.c. checksum_print: as hexadecimal text. checksums_describe: metadata to write. checksums_of_header:
// checksum of the header's text, which it modifies. checksums_read: checks the header and reads the checksums of
// tensors; metadata NULL: there are none. checksums_verify: checks the data of a tensor.
enum { CHECKSUM_BYTES = 17 };
void     checksum_print(uint64_t checksum, char text[CHECKSUM_BYTES]);
json_t  *checksums_describe(const struct safetensor *tensors, int32_t count, uint64_t header_checksum);
uint64_t checksums_of_header(char *text, size_t bytes);
status   checksums_read(struct safetensors_reader *reader, json_t *metadata, uint64_t header_checksum);
status   checksums_verify(const char *path, const struct safetensor *tensor, const void *data);

// Incremental verification of full elements, while they are in the CPU cache. The end frees the state.
struct checksum_run {
    const struct safetensor *tensor;
    struct XXH3_state_s     *hash;    // NULL: no checksum to verify
    bool                     is_finite;
};
bool   checksum_is_finite(enum format format, const void *data, int64_t bytes);    // no NaN, no infinity
void   checksum_begin(struct checksum_run *run, const struct safetensor *tensor);
void   checksum_add(struct checksum_run *run, const void *data, int64_t bytes);
status checksum_end(struct checksum_run *run, const char *path);

// describe.c: builds Hugging Face's config.json, and compares one with it. The caller owns the reference.
json_t *describe_model(const struct model_config *model, int64_t sequence, enum format format);
status  describe_compare(const char *path, const json_t *expected, const json_t *found);

// checkpoint.c: prints a document, which it releases; the caller frees the text. flags: of jansson's json_dumps.
enum { JSON_FLAGS = JSON_INDENT(2) | JSON_REAL_PRECISION(15) };
char *json_text(json_t *json, size_t flags);

// checkpoint.c: exports a checkpoint's weights to a new folder.
status checkpoint_write_stored(const struct plan *plan, struct catalogue *stored, const char *folder);

// Writes a folder with up to shard_bytes of data per file; a larger tensor gets its own file.
status checkpoint_write_folder(const struct weight_source *source, const struct output_folder *folder,
                               int64_t shard_bytes);

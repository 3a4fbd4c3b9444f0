// SPDX-License-Identifier: MIT
// Shared by the files of this folder: the export of weights, checksums, and Hugging Face's config.json.
#pragma once

#include <jansson.h>

#include "gswbench/checkpoint.h"
#include "gswbench/safetensors.h"

// Where exported weights come from: the step of a running job, a stored checkpoint, or, if both are NULL, the initial
// weights of a seed. format: their type in the file.
struct weight_source {
    const struct plan *plan;
    const struct step *step;
    struct comm       *comm;
    struct catalogue  *stored;
    uint64_t           seed;
    enum format        format;

    struct checkpoint_watch watch;
};

// A part of a weight to write to a file. shard: index of the file.
struct export
{
    const struct weight_part *part;
    int32_t                   shard;
    bool                      is_low_precision;    // the model computes with it in FP8
    bool                      is_muon;             // Muon updates it, so it has no second moments
    bool                      is_frozen;           // it is not trained, so it has no optimizer state
};

struct export_list {
    struct plan   *holders;    // plans of the ranks that hold the parts; NULL: the caller's plan holds all
    struct export *exports;
    // [count + bias_count]: tensors of the exports in the same order, then the router biases
    struct safetensor *tensors;
    int64_t            holder_count;
    int32_t            count, shards;
    int64_t            total_bytes;
    int32_t            bias_count;                 // number of router bias tensors, which are in the last file
    enum format        format;                     // of the exports
    int64_t            shard_bytes, last_bytes;    // maximum bytes of data in a file; bytes in the last file
};

// checkpoint.c: lists the parts of every weight of the model, over all pipeline stages, in the order of
// plan_unit.place. A part that would make a file (shard) larger than shard_bytes starts a new file. The list is equal
// on every rank.
struct export_list exports_list(const struct plan *plan, enum format format, int64_t shard_bytes);
void               exports_free(struct export_list *list);
// Names the tensor with the router bias of the expert layer with this index. DeepSeek's layout has one per layer, all
// other layouts have a single one for all layers. Returns the number of these tensors.
int32_t exports_name_bias(const struct plan *plan, int32_t index, char name[SAFETENSORS_NAME_BYTES]);

// Tell the watchdog about progress, if the caller has set the callbacks of `watch`.
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

// A safetensors file starts with the length of its header. safetensors_codes: dtype of each enum format in a file.
enum { SAFETENSORS_LENGTH_BYTES = 8 };
extern const char *const safetensors_codes[];

// Returns the error "FILE: tensor 'NAME': PROBLEM", with a printable name.
status safetensors_refuse(const char *path, const char *name, const char *problem);

// safetensors.c: checksum_print prints a checksum in hexadecimal. checksums_describe returns the metadata of a header,
// which has the checksums. checksums_of_header computes the checksum of a header's text, which it modifies.
enum { CHECKSUM_BYTES = 17 };
void     checksum_print(uint64_t checksum, char text[CHECKSUM_BYTES]);
json_t  *checksums_describe(const struct safetensor *tensors, int32_t count, uint64_t header_checksum);
uint64_t checksums_of_header(char *text, size_t bytes);

// Verifies a tensor piece by piece, so that the data are still in the CPU cache. A piece consists of whole elements.
// checksum_end frees the state.
struct checksum_run {
    const struct safetensor *tensor;
    struct XXH3_state_s     *hash;    // NULL: no checksum to verify
    bool                     is_finite;
};
// Returns whether the data have no NaN and no infinity.
bool   checksum_is_finite(enum format format, const void *data, int64_t bytes);
void   checksum_begin(struct checksum_run *run, const struct safetensor *tensor);
void   checksum_add(struct checksum_run *run, const void *data, int64_t bytes);
status checksum_end(struct checksum_run *run, const char *path);

// describe.c: describe_model builds Hugging Face's config.json, which the caller releases. describe_compare compares a
// config.json with it.
json_t *describe_model(const struct model_config *model, int64_t sequence, enum format format);
status  describe_compare(const char *path, const json_t *expected, const json_t *found);

// checkpoint.c: prints a JSON document and releases it. The caller frees the text. flags: of json_dumps in jansson.
enum { JSON_FLAGS = JSON_INDENT(2) | JSON_REAL_PRECISION(15) };
char *json_text(json_t *json, size_t flags);

// checkpoint.c: exports the weights of a checkpoint to a new folder.
status checkpoint_write_stored(const struct plan *plan, struct catalogue *stored, const char *folder);

// Writes weights to a folder. A file has at most shard_bytes of data, unless a single tensor is larger.
status checkpoint_write_folder(const struct weight_source *source, const struct output_folder *folder,
                               int64_t shard_bytes);

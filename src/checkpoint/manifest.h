// SPDX-License-Identifier: MIT
// The manifest of a checkpoint of our own, with which it becomes whole: where the run was, of which model, and each
// file with its size and checksum.
#ifndef GSWBENCH_CHECKPOINT_MANIFEST_H
#define GSWBENCH_CHECKPOINT_MANIFEST_H

#include "internal.h"

#define MANIFEST_NAME "manifest.json"
#define CONFIG_NAME   "config.json"
#define INDEX_NAME    "model.safetensors.index.json"
#define WEIGHTS_NAME  "model.safetensors"
#define SHARD_NAME    "rank-%05d-of-%05d.safetensors"

struct manifest_file {
    char    name[64];
    char    checksum[CHECKSUM_BYTES];    // of a shard's header, which has those of its slices; else of the whole file
    int64_t bytes;
};

// An option of [model].
struct manifest_option {
    char key[32], value[128];
};

struct manifest {
    char                     format[32], checksum[CHECKSUM_BYTES], program[32];    // checksum: of all of it, zeros here
    struct checkpoint_origin origin;
    int64_t                  sequence;
    struct manifest_option  *model;
    struct manifest_file    *files;
    int64_t                  model_count, file_count;
};

// Fills all but the files, of which it has room for so many.
void manifest_init(struct manifest *manifest, const struct plan *plan, const struct checkpoint_origin *origin,
                   int64_t files);
void manifest_free(struct manifest *manifest);    // a zeroed one has nothing

// Whether two checkpoints are of one run's course: model, sequence, seed and data.
bool manifest_is_same_run(const struct manifest *first, const struct manifest *second);

status manifest_write(struct manifest *manifest, const struct output_folder *folder);

// What it says is checked against its checksum, and for sense; files are not opened. Errors are EXIT_CHECKPOINT with
// the path.
status manifest_read(struct manifest *manifest, const char *path);

// The [model] section that it was saved with. Errors do not name the path.
status manifest_model(const struct manifest *manifest, struct model_config *model);

// A file of a folder, whole; the caller frees it. Errors are EXIT_CHECKPOINT with the path.
status file_load(const char *path, char **text, size_t *bytes);

#endif

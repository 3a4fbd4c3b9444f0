// SPDX-License-Identifier: MIT
// Manifest of a checkpoint: training progress, model, and each file with size and checksum. A checkpoint without its
// manifest is incomplete.
#pragma once

#include "internal.h"

#define MANIFEST_NAME "manifest.json"
#define CONFIG_NAME   "config.json"
#define INDEX_NAME    "model.safetensors.index.json"
#define WEIGHTS_NAME  "model.safetensors"
#define SHARD_NAME    "rank-%05d-of-%05d.safetensors"

struct manifest_file {
    char    name[64];
    char    checksum[CHECKSUM_BYTES];    // of a shard's header, which has its slices' checksums; else of the file
    int64_t bytes;
};

// An option of [model].
struct manifest_option {
    char key[32], value[128];
};

struct manifest {
    char format[32], checksum[CHECKSUM_BYTES],
        program[32];    // checksum: of the whole document with zeros in this field
    struct checkpoint_origin origin;
    int64_t                  sequence;
    struct manifest_option  *model;
    struct manifest_file    *files;
    int64_t                  model_count, file_count;
};

// Fills everything except the files, and allocates room for `files` of them.
void manifest_init(struct manifest *manifest, const struct plan *plan, const struct checkpoint_origin *origin,
                   int64_t files);
void manifest_free(struct manifest *manifest);    // accepts a zeroed one

// Whether two checkpoints belong to the same run: model, sequence, seed and data.
bool manifest_is_same_run(const struct manifest *first, const struct manifest *second);

status manifest_write(struct manifest *manifest, const struct output_folder *folder);

// Reads a manifest and checks its checksum and values. Errors are EXIT_CHECKPOINT with the path.
status manifest_read(struct manifest *manifest, const char *path);

// Restores the saved [model] section. Errors leave out the path.
status manifest_model(const struct manifest *manifest, struct model_config *model);

// Reads a full file; the caller frees it. Errors are EXIT_CHECKPOINT with the path.
status file_load(const char *path, char **text, size_t *bytes);

// Subfolders of [checkpoint] save, one per saved step.
#define FOLDER_NAME "step-%08" PRId64

// Step of the newest complete checkpoint; -1: none.
int64_t folders_newest(const char *path);

// Creates and enters that step's folder, and clears leftovers of an interrupted save. Fails if the checkpoint is
// complete.
status folders_claim(struct output_folder *folder, const char *path, int64_t step,
                     const struct checkpoint_watch *watch);

// Enters the existing folder of that step.
status folders_enter(struct output_folder *folder, const char *path, int64_t step);

// Removes all but the newest `kept` complete checkpoints of this run (same model, seed and data) up to the saved step.
// Checkpoints of other runs and of later steps stay.
status folders_prune(const char *path, int64_t kept, const struct manifest *saved,
                     const struct checkpoint_watch *watch);

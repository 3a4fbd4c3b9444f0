// SPDX-License-Identifier: MIT
// The manifest of a checkpoint: training progress, model, and each file with its size and checksum. A checkpoint
// without manifest is incomplete.
#pragma once

#include "internal.h"

#define MANIFEST_NAME "manifest.json"
#define CONFIG_NAME   "config.json"
#define INDEX_NAME    "model.safetensors.index.json"
#define WEIGHTS_NAME  "model.safetensors"
#define SHARD_NAME    "rank-%05d-of-%05d.safetensors"

struct manifest_file {
    char name[64];
    // Hash of the whole file. For a rank's file, hash of its header only, which has the checksums of its slices.
    char    checksum[CHECKSUM_BYTES];
    int64_t bytes;
};

// An option of [model], as text.
struct manifest_option {
    char key[32], value[128];
};

struct manifest {
    char format[32], checksum[CHECKSUM_BYTES],
        program[32];    // checksum: of the manifest's text, with zeros in this field
    struct checkpoint_origin origin;
    int64_t                  sequence;
    struct manifest_option  *model;
    struct manifest_file    *files;
    int64_t                  model_count, file_count;
};

// Fills a manifest, except the entries of its file list. Allocates `files` such entries, which the caller fills.
void manifest_init(struct manifest *manifest, const struct plan *plan, const struct checkpoint_origin *origin,
                   int64_t files);
void manifest_free(struct manifest *manifest);    // the manifest may be zeroed

// Sets the checksum and writes the manifest into the folder.
status manifest_write(struct manifest *manifest, const struct output_folder *folder);

// Reads a manifest, and checks its checksum and values. Errors are EXIT_CHECKPOINT and name the path.
status manifest_read(struct manifest *manifest, const char *path);

// Sets the model from the options in the manifest. Errors do not name the path.
status manifest_model(const struct manifest *manifest, struct model_config *model);

// Reads a whole file; the caller frees the text. Errors are EXIT_CHECKPOINT and name the path.
status file_load(const char *path, char **text, size_t *bytes);

// Name of the folder of a saved step. It is a subfolder of the folder in the option [checkpoint] save.
#define FOLDER_NAME "step-%08" PRId64

// Returns the step of the newest complete checkpoint; -1: there is none.
int64_t folders_newest(const char *path);

// Creates the folder of a step and opens it. Removes files of an interrupted save. Fails if the folder has a complete
// checkpoint.
status folders_claim(struct output_folder *folder, const char *path, int64_t step,
                     const struct checkpoint_watch *watch);

// Opens the folder of a step, which must exist.
status folders_enter(struct output_folder *folder, const char *path, int64_t step);

// Removes all but the newest `kept` complete checkpoints of the run that wrote `saved` (same model, seed and data), up
// to the step of `saved`. Checkpoints of other runs and of later steps stay.
status folders_prune(const char *path, int64_t kept, const struct manifest *saved,
                     const struct checkpoint_watch *watch);

// SPDX-License-Identifier: MIT
// The folders of checkpoints in a folder that a run saves to.
#ifndef GSWBENCH_CHECKPOINT_FOLDERS_H
#define GSWBENCH_CHECKPOINT_FOLDERS_H

#include <stdint.h>

#include "gswbench/checkpoint.h"
#include "gswbench/output.h"
#include "gswbench/status.h"
#include "manifest.h"

#define FOLDER_NAME "step-%08" PRId64

// The step of the newest checkpoint there that is whole; -1: there is none.
int64_t folders_newest(const char *path);

// An empty folder for that step, entered: what an end in the middle of a save has left of it goes. One that is whole is
// an error, and stays.
status folders_claim(struct output_folder *folder, const char *path, int64_t step,
                     const struct checkpoint_watch *watch);

// The folder of that step, which there is.
status folders_enter(struct output_folder *folder, const char *path, int64_t step);

// Removes all that are whole but the newest so many, of those of the saved one's run (its model, seed and data) up to
// its step. Checkpoints of other runs stay, and so do those whose manifest cannot be read.
status folders_prune(const char *path, int64_t kept, const struct manifest *saved,
                     const struct checkpoint_watch *watch);

#endif

// SPDX-License-Identifier: MIT
// Subfolders of [checkpoint] save, one per saved step.
#pragma once

#include <stdint.h>

#include "gswbench/checkpoint.h"
#include "gswbench/output.h"
#include "gswbench/status.h"
#include "manifest.h"

#define FOLDER_NAME "step-%08" PRId64

// Step of the newest complete checkpoint; -1: none.
int64_t folders_newest(const char *path);

// Creates and enters that step's folder, and clears leftovers of an interrupted save. Fails if the checkpoint is
// complete.
status folders_claim(struct output_folder *folder, const char *path, int64_t step,
                     const struct checkpoint_watch *watch);

// Enters the existing folder of that step.
status folders_enter(struct output_folder *folder, const char *path, int64_t step);

// Removes all but the newest `kept` complete checkpoints of this run (model, seed, data) up to the saved step. Others
// stay.
status folders_prune(const char *path, int64_t kept, const struct manifest *saved,
                     const struct checkpoint_watch *watch);

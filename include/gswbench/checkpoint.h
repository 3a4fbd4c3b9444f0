// SPDX-License-Identifier: MIT
// Weights as files: a folder in Hugging Face's layout (model.safetensors, or numbered shards and an index;
// config.json).
#ifndef GSWBENCH_CHECKPOINT_H
#define GSWBENCH_CHECKPOINT_H

#include <stdint.h>

#include "gswbench/output.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

// Whether the folder has room for the weights: a run asks before its first step, not after its last.
status checkpoint_check_space(const struct plan *plan, const struct output_folder *folder);

// Writes the initial weights in fp32, streamed: needs no memory for the model. The folder is created, or empty.
status checkpoint_write_initial(const struct plan *plan, uint64_t seed, const char *folder);

// Writes the job's present weights in fp32 (masters where there are any), gathered from the ranks that keep them.
// Called by every rank; rank 0 writes, into an empty folder that it holds.
status checkpoint_write(const struct plan *plan, const struct step *step, struct comm *comm,
                        const struct output_folder *folder);

#endif

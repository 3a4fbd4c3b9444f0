// SPDX-License-Identifier: MIT
// Writes weights in Hugging Face's layout (config.json and safetensors files), and saves and loads training checkpoints
// with one file per rank. docs/checkpoint.md has the format.
#pragma once

#include <stdint.h>

#include "gswbench/output.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

// Checks for room before the first step.
status checkpoint_check_space(const struct plan *plan, const struct output_folder *folder);

// Writes the initial weights in fp32, streamed. The folder is created or must be empty.
status checkpoint_write_initial(const struct plan *plan, uint64_t seed, const char *folder);

// Collective. Writes the current weights in fp32 (masters if they exist). Rank 0 writes into folder, which must be
// empty; other ranks ignore it.
status checkpoint_write(const struct plan *plan, const struct step *step, struct comm *comm,
                        const struct output_folder *folder);

// Training progress: completed steps, consumed samples, and the data and seed they came from.
struct checkpoint_origin {
    int64_t step, samples, seed;
    char    data[16];
};

// Report progress to the watchdog, since saves and loads may take hours; each may be NULL. enter: the rank starts on
// the file at path; path NULL: it waits for other ranks. moved: some bytes were read or written, on any thread.
struct checkpoint_watch {
    void (*enter)(void *context, const char *path);
    void (*moved)(void *context);
    void *context;
};

// Cost of a save or load on this rank; bytes written or read.
struct checkpoint_cost {
    double  seconds, stalled;    // stalled: time in which no step could run
    int64_t bytes;
};

// Size of every rank's slices, without the headers of files.
int64_t checkpoint_whole_bytes(const struct plan *plan);

// A save, between two steps, creates a subfolder of `folder`, which every rank must see. Then it removes all but the
// newest `keep` checkpoints (0: keeps all). An error occurs on all ranks, and nothing is removed.
struct checkpoint_target {
    const char             *folder;
    int64_t                 keep;
    bool                    is_asynchronous;
    struct checkpoint_watch watch;
};
status checkpoint_check_target(const char *folder, int64_t step);    // fails if that step is already saved

// A save is two collective calls. If asynchronous, begin copies the state to host memory, a thread writes it while
// steps run, and end joins the thread. is_written: this rank's thread has finished. Close a save to abandon it.
struct checkpoint_save;
status checkpoint_save_begin(struct checkpoint_save **begun, const struct plan *plan, const struct step *step,
                             struct comm *comm, const struct checkpoint_target *target,
                             const struct checkpoint_origin *origin);
bool   checkpoint_save_is_written(const struct checkpoint_save *save);
status checkpoint_save_end(struct checkpoint_save *save, struct checkpoint_cost *cost);
void   checkpoint_save_close(struct checkpoint_save *save);    // accepts NULL

// Opens the checkpoint at path, the newest complete checkpoint in that folder, or weights in Hugging Face's layout.
// Reads only headers. Fails (EXIT_CHECKPOINT) if the model differs from the plan's. verifies: data is compared with its
// checksum when it is read. The caller closes it.
struct catalogue;
status checkpoint_open(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies);
// Collective; every rank must see the folder. Rank 0 reads the headers and broadcasts them. Fails on all ranks.
status checkpoint_open_shared(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies,
                              struct comm *comm);
void   checkpoint_close(struct catalogue *opened);    // accepts NULL

// Training progress at the save; step 0 for weights in Hugging Face's layout.
const struct checkpoint_origin *checkpoint_origin(const struct catalogue *opened);

// Contents of a checkpoint, all of it read and verified. Hugging Face's layout (is_ours false) has no manifest, so only
// its own files are checked.
struct checkpoint_contents {
    int64_t step, tensors, slices, files, bytes;
    bool    is_ours;
};
status checkpoint_verify(const char *path, struct checkpoint_contents *contents);

// Converts a checkpoint of ours to Hugging Face's layout, without optimizer state. The folder is created or must be
// empty. Fills model.
status checkpoint_export(const char *path, const char *folder, struct model_config *model);

// Builds the plan of a single rank that holds every weight in full.
status checkpoint_plan(struct plan *plan, const struct model_config *model, int64_t sequence);

// Loads this rank's weights and optimizer state, after data_initialise_state and before step_make_weights.
status checkpoint_load(struct catalogue *opened, const struct plan *plan, struct step *step,
                       const struct checkpoint_watch *watch, struct checkpoint_cost *cost);

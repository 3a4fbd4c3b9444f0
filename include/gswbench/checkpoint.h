// SPDX-License-Identifier: MIT
// Writes weights in Hugging Face's layout (config.json and safetensors files). Saves and loads training checkpoints,
// which have one file per rank. docs/checkpoint.md describes the format.
#pragma once

#include <stdint.h>

#include "gswbench/output.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

// Fails if the folder's file system has too little space for the weights that checkpoint_write will write. A run calls
// this before the first step.
status checkpoint_check_space(const struct plan *plan, const struct output_folder *folder);

// Writes the initial weights in fp32, without a step, so that the model need not fit into memory. The folder is
// created, or must be empty.
status checkpoint_write_initial(const struct plan *plan, uint64_t seed, const char *folder);

// Training progress at a save: completed steps, consumed samples, and run.data and run.seed, which define the samples.
struct checkpoint_origin {
    int64_t step, samples, seed;
    char    data[16];
};

// Callbacks that tell the watchdog about progress, because a save or load may take hours; each may be NULL. enter: the
// rank starts to read or write the file at path; path NULL: it waits for other ranks. moved: a thread has read or
// written some bytes.
struct checkpoint_watch {
    void (*enter)(void *context, const char *path);
    void (*moved)(void *context);
    void *context;
};

// Writes the current weights of a step in fp32, from the master weights if there are any. Rank 0 writes; folder must be
// empty. Every rank calls watch->moved for each chunk of data, and no rank calls watch->enter. Collective.
status checkpoint_write(const struct plan *plan, const struct step *step, struct comm *comm,
                        const struct output_folder *folder, const struct checkpoint_watch *watch);

// Cost of a save or load on this rank. bytes: written or read.
struct checkpoint_cost {
    double  seconds, stalled;    // stalled: seconds in which no step could run
    int64_t bytes;
};

// Returns the bytes that all ranks together write into a checkpoint, without file headers.
int64_t checkpoint_whole_bytes(const struct plan *plan);

// Where and how to save. A save takes place between two steps, and creates a subfolder of `folder`, which all ranks
// must share. Then it removes all but the newest `keep` checkpoints (0: removes none). If a rank fails, all ranks
// return the error and keep the old checkpoints.
struct checkpoint_target {
    const char             *folder;
    int64_t                 keep;
    bool                    is_asynchronous;
    struct checkpoint_watch watch;
};
// Creates the folder. Fails if it is not writable, or has a complete checkpoint of a step that `saves` says to save.
typedef bool checkpoint_saves(const void *context, int64_t step);
status       checkpoint_check_target(const char *folder, checkpoint_saves *saves, const void *context);

// A save consists of two collective calls, begin and end. An asynchronous save copies the state to host memory in
// begin; a thread writes it while steps run, and end joins the thread. checkpoint_save_is_written returns whether this
// rank's thread is done. checkpoint_save_close drops a save without calling end.
struct checkpoint_save;
status checkpoint_save_begin(struct checkpoint_save **begun, const struct plan *plan, const struct step *step,
                             struct comm *comm, const struct checkpoint_target *target,
                             const struct checkpoint_origin *origin);
bool   checkpoint_save_is_written(const struct checkpoint_save *save);
status checkpoint_save_end(struct checkpoint_save *save, struct checkpoint_cost *cost);
void   checkpoint_save_close(struct checkpoint_save *save);    // accepts NULL

// Opens a checkpoint and reads its headers. path: a checkpoint, a folder of checkpoints (opens the newest complete
// one), or a folder of weights in Hugging Face's layout. Fails (EXIT_CHECKPOINT) if its model differs from the plan's.
// verifies: compare data with their checksums when they are read. The caller closes it.
struct catalogue;
status checkpoint_open(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies);
// Opens a checkpoint on all ranks, which must share its folder. Rank 0 reads the headers and broadcasts them, or its
// error. Collective.
status checkpoint_open_shared(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies,
                              struct comm *comm);
void   checkpoint_close(struct catalogue *opened);    // accepts NULL

// Returns the training progress at the save; step 0 for weights in Hugging Face's layout.
const struct checkpoint_origin *checkpoint_origin(const struct catalogue *opened);

// The contents of a checkpoint, which checkpoint_verify counts while it reads and verifies all data. If is_ours is
// false, the folder is in Hugging Face's layout. It then has no manifest, so the data are read but compared with no
// checksums and no model.
struct checkpoint_contents {
    int64_t step, tensors, slices, files, bytes;
    bool    is_ours;
};
status checkpoint_verify(const char *path, struct checkpoint_contents *contents);

// Converts the weights of a training checkpoint to Hugging Face's layout. The folder is created, or must be empty.
// *model: the checkpoint's model.
status checkpoint_export(const char *path, const char *folder, struct model_config *model);

// Builds the plan of a single rank that holds every weight in full.
status checkpoint_plan(struct plan *plan, const struct model_config *model, int64_t sequence);

// Loads the weights and optimizer state of this rank. Call it after data_initialise_state and before step_make_weights.
status checkpoint_load(struct catalogue *opened, const struct plan *plan, struct step *step,
                       const struct checkpoint_watch *watch, struct checkpoint_cost *cost);

// SPDX-License-Identifier: MIT
// Writes weights in Hugging Face's layout (config.json and safetensors files), and saves and loads training checkpoints
// with one file per rank. docs/checkpoint.md has the format.
#pragma once

#include <stdint.h>

#include "gswbench/output.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

// Fails before the first step if the folder's file system has no room for the weights that checkpoint_write will write.
status checkpoint_check_space(const struct plan *plan, const struct output_folder *folder);

// Writes the initial weights in fp32; the model need not fit in memory. The folder is created or must be empty.
status checkpoint_write_initial(const struct plan *plan, uint64_t seed, const char *folder);

// Writes the current weights in fp32 (masters if they exist). Collective; rank 0 writes, and folder must be empty.
status checkpoint_write(const struct plan *plan, const struct step *step, struct comm *comm,
                        const struct output_folder *folder);

// Training progress: completed steps, consumed samples, and the data and seed they came from.
struct checkpoint_origin {
    int64_t step, samples, seed;
    char    data[16];
};

// Callbacks that report progress to the watchdog, because saves and loads may take hours; or NULL. enter: the rank
// starts on the file at path; path NULL: it waits for other ranks. moved: bytes were read or written, on any thread.
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

// Bytes of a whole checkpoint, summed over all ranks, without the headers of files.
int64_t checkpoint_whole_bytes(const struct plan *plan);

// A save, between two steps, creates a subfolder of `folder`, which must be shared by all ranks. Then it removes all
// but the newest `keep` checkpoints (0: keeps all). If a rank fails, all ranks return the error and nothing is removed.
struct checkpoint_target {
    const char             *folder;
    int64_t                 keep;
    bool                    is_asynchronous;
    struct checkpoint_watch watch;
};
status checkpoint_check_target(const char *folder, int64_t step);    // fails if that step is already saved

// A save is two collective calls, begin and end. If it is asynchronous, begin copies the state to host memory, a thread
// writes it while steps run, and end joins the thread. checkpoint_save_is_written: this rank's thread has finished.
// checkpoint_save_close abandons a save without end.
struct checkpoint_save;
status checkpoint_save_begin(struct checkpoint_save **begun, const struct plan *plan, const struct step *step,
                             struct comm *comm, const struct checkpoint_target *target,
                             const struct checkpoint_origin *origin);
bool   checkpoint_save_is_written(const struct checkpoint_save *save);
status checkpoint_save_end(struct checkpoint_save *save, struct checkpoint_cost *cost);
void   checkpoint_save_close(struct checkpoint_save *save);    // accepts NULL

// Opens a checkpoint. path: a checkpoint, a folder of checkpoints (the newest complete one is opened), or a folder of
// weights in Hugging Face's layout. Reads only headers. Fails (EXIT_CHECKPOINT) if the model differs from the plan's.
// verifies: data is compared with its checksum when it is read. The caller closes it.
struct catalogue;
status checkpoint_open(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies);
// Collective; the folder must be shared by all ranks. Rank 0 reads the headers and broadcasts them, or its error.
status checkpoint_open_shared(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies,
                              struct comm *comm);
void   checkpoint_close(struct catalogue *opened);    // accepts NULL

// Training progress at the save; step 0 for weights in Hugging Face's layout.
const struct checkpoint_origin *checkpoint_origin(const struct catalogue *opened);

// Reads and verifies a whole checkpoint, and counts its contents. A folder in Hugging Face's layout (is_ours false) has
// no manifest, so its tensors are read without a comparison with checksums or the model.
struct checkpoint_contents {
    int64_t step, tensors, slices, files, bytes;
    bool    is_ours;
};
status checkpoint_verify(const char *path, struct checkpoint_contents *contents);

// Converts a training checkpoint to Hugging Face's layout, without optimizer state. The folder is created or must be
// empty. Sets *model to the checkpoint's model.
status checkpoint_export(const char *path, const char *folder, struct model_config *model);

// Builds the plan of a single rank that holds every weight in full.
status checkpoint_plan(struct plan *plan, const struct model_config *model, int64_t sequence);

// Loads this rank's weights and optimizer state, after data_initialise_state and before step_make_weights.
status checkpoint_load(struct catalogue *opened, const struct plan *plan, struct step *step,
                       const struct checkpoint_watch *watch, struct checkpoint_cost *cost);

// SPDX-License-Identifier: MIT
// Weights as files: a folder in Hugging Face's layout (model.safetensors, or numbered shards and an index;
// config.json). And checkpoints: all that a run needs to go on, a file of each rank. docs/checkpoint.md has the format.
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

// Where a run is: so many steps done, on so many samples of that data.
struct checkpoint_origin {
    int64_t step, samples, seed;
    char    data[16];
};

// Who watches a save or a load, which may take hours: as long as something of it moves, nothing hangs. enter: the rank
// is at that file, or, with NULL, it waits for all others; moved: a piece of a file went, by whichever thread. All
// zero: nobody.
struct checkpoint_watch {
    void (*enter)(void *context, const char *path);
    void (*moved)(void *context);
    void *context;
};

// What saving or loading took of this rank: bytes that it wrote or read.
struct checkpoint_cost {
    double  seconds, stalled;    // stalled: those in which no step could run
    int64_t bytes;
};

// Of this rank's slices, without the header of their file; and of those of all ranks.
int64_t checkpoint_bytes(const struct plan *plan);
int64_t checkpoint_whole_bytes(const struct plan *plan);

// Saves the state between two steps into a folder of its own in that folder, and then removes older ones but the newest
// so many (0: none). Called by all ranks, which all see the folder; fails alike on all, and leaves older ones as they
// are.
struct checkpoint_target {
    const char             *folder;
    int64_t                 keep;
    bool                    is_asynchronous;
    struct checkpoint_watch watch;
};
status checkpoint_check_target(const char *folder, int64_t step);    // whether that one is there already
status checkpoint_save(const struct plan *plan, const struct step *step, struct comm *comm,
                       const struct checkpoint_target *target, const struct checkpoint_origin *origin,
                       struct checkpoint_cost *cost);

// The same in two parts, between which steps may run where it is asynchronous: from its begin on the save has a copy in
// host memory, which a thread writes. Both are called by all ranks; the end waits for the thread. is_written: of this
// rank alone. Close one that is not to be ended: it is no checkpoint.
struct checkpoint_save;
status checkpoint_save_begin(struct checkpoint_save **begun, const struct plan *plan, const struct step *step,
                             struct comm *comm, const struct checkpoint_target *target,
                             const struct checkpoint_origin *origin);
bool   checkpoint_save_is_written(const struct checkpoint_save *save);
status checkpoint_save_end(struct checkpoint_save *save, struct checkpoint_cost *cost);
void   checkpoint_save_close(struct checkpoint_save *save);    // NULL: nothing

// Opens the checkpoint in a folder, or the newest whole one of those in it, or weights as Hugging Face lays them out;
// and fails (EXIT_CHECKPOINT) where it is not of the plan's model. No data are read. verifies: by their checksums, when
// they are. The caller closes it.
struct catalogue;
status checkpoint_open(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies);
// Likewise for all ranks, which all call it and see the folder: the first reads every header, and tells the others what
// they say. Fails alike on all.
status checkpoint_open_shared(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies,
                              struct comm *comm);
void   checkpoint_close(struct catalogue *opened);    // NULL: nothing

// Where the run was; step 0 of weights alone.
const struct checkpoint_origin *checkpoint_origin(const struct catalogue *opened);

// What a checkpoint has, when all of it was read and found to be right. A folder of Hugging Face's, of which nothing
// says what it should have, is verified for what its own files say.
struct checkpoint_contents {
    int64_t step, tensors, slices, files, bytes;
    bool    is_ours;
};
status checkpoint_verify(const char *path, struct checkpoint_contents *contents);

// The weights of a checkpoint of our own in Hugging Face's layout, without the optimizer; the folder is created, or
// empty. model receives what they are of.
status checkpoint_export(const char *path, const char *folder, struct model_config *model);

// The plan of one rank that holds every weight of a model whole.
status checkpoint_plan(struct plan *plan, const struct model_config *model, int64_t sequence);

// Fills what the rank keeps of weights and of the optimizer. After data_initialise_state, before step_make_weights.
status checkpoint_load(struct catalogue *opened, const struct plan *plan, struct step *step,
                       const struct checkpoint_watch *watch, struct checkpoint_cost *cost);

#endif

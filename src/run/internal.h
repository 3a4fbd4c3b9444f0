// SPDX-License-Identifier: MIT
// The parts of one rank's run.
#ifndef GSWBENCH_RUN_INTERNAL_H
#define GSWBENCH_RUN_INTERNAL_H

#include "conditions.h"
#include "gswbench/benchmark.h"
#include "gswbench/checkpoint.h"
#include "gswbench/journal.h"
#include "gswbench/observe.h"
#include "gswbench/place.h"
#include "gswbench/plan.h"
#include "gswbench/ranges.h"
#include "gswbench/signals.h"
#include "gswbench/step.h"
#include "gswbench/terminal.h"
#include "gswbench/text.h"
#include "gswbench/validate.h"
#include "gswbench/watch.h"
#include "processors.h"

// launch.c: sets the number of ranks to what the launcher started, or to what is asked for.
status launch_count_ranks(struct job_selection *selection, struct text_buffer *errors);

// Adds a note to the result when a tensor-parallel group is not on one node.
void peers_check_places(struct result *result, const struct place_peer *peers);

// Adds a note when a profiler watches a rank, after which the result is compared with nothing.
void peers_check_profilers(struct result *result, const struct place_peer *peers, int ranks);

// space.c: fails where the run's folder has no room for what the run writes.
status space_check(const struct config *config, const struct plan *plan, int64_t ranks,
                   const struct output_folder *folder);

// notes.c: adds notes about what else bears on the times: cores, devices, checks, the layout.
void notes_add(struct result *result, const struct benchmark *benchmark, const struct place *place);

// expectation.c: what a step should take; rank 0 alone.
void expectation_find(struct result *result, const struct job *job, const struct place *place);

// facts.c: "NVIDIA H200, ...", and why a better backend or communicator was not taken.
void facts_describe_device(struct result *result, struct place *place);

// facts.c: adds what connecting took of this rank's device, and which of the library's functions it uses.
void facts_add_connections(struct result *result, struct comm *comm, const struct step *step);

// After which step the step is captured, -1: it is not; and how many are timed each way to find out whether it stays
// so.
struct graphs_plan {
    int64_t capture_after, tried;
};

// Everything that a rank measures, step by step. Rank 0 keeps all of it in the result and prints it.
struct steps {
    const struct benchmark *benchmark;
    struct comm            *comm;
    const struct plan      *plan;
    struct backend         *backend;
    struct step            *step;
    struct result          *result;
    struct observer        *observer;      // of the device; NULL: nothing is observed
    struct ranges          *ranges;        // NULL: no profiler listens
    struct step_watch       watch;         // for ranges
    struct journal         *journal;       // open on rank 0
    struct watch           *hang_watch;    // NULL: nothing watches
    struct validation      *validation;    // NULL: the backend computes no numbers
    double                  verified;      // when it began what it does now
    struct graphs_plan      graphs;
    struct step_fault       fault;          // of this rank
    double                 *own_seconds;    // [steps], of this rank
    struct compute_times   *compute_times;
    double                  clock_drift;    // of this rank, set at the end
    struct processors       processors;     // of its host
    struct progress         progress;
    struct catalogue       *loaded;        // what the run begins with; NULL: weights as they are drawn
    struct checkpoint_cost  load, save;    // of this rank, the last ones
    struct checkpoint_save *saving;        // that is written beside steps; NULL: none is
    int64_t                 saving_step;
    double                  saving_began;
    bool                   *beside;      // [steps], whether each ran beside it
    status                  saved;       // why a checkpoint could not be
    status                  untraced;    // why steps could not be traced as was asked for; on all ranks

    const struct place_peer *peers;    // [ranks]
};
status steps_measure(struct steps *steps);
void   steps_enter(const struct steps *steps, enum watch_phase phase, int64_t index);    // for the watch, if any

void steps_fill(const struct steps *steps, int64_t index);    // with the data of that step
// Runs one step, from the same start on all ranks. Returns this rank's seconds.
double steps_run_one(const struct steps *steps, int64_t index);

// validation.c: whether the step was right, as far as [run] verify has it looked at, before and after it, and whether
// the run may go on. Collective.
void validation_prepare(struct steps *steps, struct backend *backend);
bool validation_repeats(const struct steps *steps, int64_t index);    // whether the step is run twice
void validation_start(struct steps *steps, int64_t index);
bool validation_of_parts(struct steps *steps, int64_t step);    // -1: before the first
bool validation_end(struct steps *steps, int64_t index, bool is_finite);

// checkpoints.c: opens what the run begins with, and fails where that or what it is to save would; fills the step's
// tensors before the first step; and saves what is due after a step, false where that cannot be. Collective.
status checkpoints_open(struct catalogue **loaded, const struct config *config, const struct plan *plan,
                        struct comm *comm);
status checkpoints_begin(struct steps *steps);
bool   checkpoints_follow(struct steps *steps, int64_t index, bool is_last);
void   checkpoints_judge(struct steps *steps);    // after the last step; of this rank alone
void   checkpoints_close(struct steps *steps);    // gives up a save that has not ended; what was loaded
void   checkpoints_describe(const struct steps *steps, struct result_rank *own);    // this rank's part; of it alone

// fault.c: lets a fault happen from the begin of its step to the end, in a repetition only where it repeats; and adds a
// note to the result.
void fault_begin(struct steps *steps, int64_t index, bool is_repetition);
void fault_end(struct steps *steps);
void fault_note(struct result *result, const struct fault_config *fault);

// observations.c: begins to observe this rank's device, which so many ranks use; and puts into the result what every
// rank saw of its own, where ranks have devices. Gathering is collective.
void observations_open(struct steps *steps, int64_t sharers);
void observations_gather(struct steps *steps, int64_t sharers);

// profile.c: shows a profiler that listens the steps as ranges, from now on. close may find it closed.
void profile_open(struct steps *steps);
void profile_close(struct steps *steps);
// Before and after a step, or where the run stops after it: tells the profiler of the ranks of [profile] when to
// collect.
void profile_begin(const struct steps *steps, int64_t step);
void profile_end(const struct steps *steps, int64_t step, bool is_stopped);
// Adds a note when the run does, after which the result is compared with nothing.
void profile_check(struct result *result, const struct profile_config *profile);

// trace.c: runs the steps of [trace] and puts into the result what the last of them shows, or why they could not be
// traced; rank 0 also writes trace.json into the folder, if it is asked for, and fails where it cannot. Collective.
status steps_trace(struct steps *steps, const struct output_folder *folder);

// attention.c: puts who computes attention on rank 0 into the result, with a note where own kernels do what cuDNN was
// first asked for, and where ranks differ. Collective.
void attention_gather(struct result *result, struct comm *comm, struct backend *backend);

// replicas.c: whether ranks that hold the same weights hold the same bits. Collective.
void replicas_compare(struct result *result, const struct steps *steps);

#endif

// SPDX-License-Identifier: MIT
// The parts of one rank's run.
#ifndef GSWBENCH_RUN_INTERNAL_H
#define GSWBENCH_RUN_INTERNAL_H

#include "gswbench/benchmark.h"
#include "gswbench/checkpoint.h"
#include "gswbench/journal.h"
#include "gswbench/observe.h"
#include "gswbench/environment.h"
#include "gswbench/plan.h"
#include "gswbench/ranges.h"
#include "gswbench/signals.h"
#include "gswbench/step.h"
#include "gswbench/terminal.h"
#include "gswbench/text.h"
#include "gswbench/validate.h"
#include "gswbench/watch.h"
#include "processors.h"

// launch.c: sets the number of ranks from the launcher, or from the request.
status launch_count_ranks(struct job_selection *selection, struct text_buffer *errors);

// space.c: fails if the file system has no room for the run's output.
status space_check(const struct config *config, const struct plan *plan, int64_t ranks,
                   const struct output_folder *folder);

// notes.c: adds notes on cores, devices, checks and layout.
void notes_add(struct result *result, const struct benchmark *benchmark, const struct rank_environment *environment);

// expectation.c: predicts the step time; rank 0 only.
void expectation_find(struct result *result, const struct job *job, const struct rank_environment *environment);

// facts.c: "NVIDIA H200, ...", and why a better backend or communicator was not selected.
void facts_describe_device(struct result *result, struct rank_environment *environment);

// facts.c: adds memory and features of the communication library.
void facts_add_connections(struct result *result, struct comm *comm, const struct step *step);

// capture_after: step after which to capture; -1: never. tried: steps timed per mode; 0: none.
struct graphs_plan {
    int64_t capture_after, tried;
};

// State of one rank's step loop. Rank 0 stores the measurements in the result and prints them.
struct steps {
    const struct benchmark *benchmark;
    struct comm            *comm;
    const struct plan      *plan;
    struct backend         *backend;
    struct step            *step;
    struct result          *result;
    struct observer        *observer;      // of the device; NULL: off
    struct ranges          *ranges;        // NVTX ranges; NULL: no profiler attached
    struct step_watch       watch;         // for ranges
    struct journal         *journal;       // open on rank 0
    struct watch           *hang_watch;    // watchdog; NULL: off
    struct validation      *validation;    // NULL: the backend computes no numbers
    double                  verified;      // start time of the current verification
    struct graphs_plan      graphs;
    struct step_fault       fault;          // of this rank
    double                 *own_seconds;    // [steps], of this rank
    struct compute_times   *compute_times;
    double                  clock_drift;    // of this rank, set at the end
    struct processors       processors;     // of its host
    struct progress         progress;
    struct catalogue       *loaded;        // checkpoint to start from; NULL: random initialization
    struct checkpoint_cost  load, save;    // of this rank, most recent
    struct checkpoint_save *saving;        // asynchronous save in progress; NULL: none
    int64_t                 saving_step;
    double                  saving_began;
    bool                   *beside;      // [steps], whether an asynchronous save overlapped the step
    status                  saved;       // error of the most recent save
    status                  untraced;    // error of the requested tracing; the same on all ranks

    const struct environment_peer *peers;    // [ranks]
};
status steps_measure(struct steps *steps);
void   steps_enter(const struct steps *steps, enum watch_phase phase, int64_t index);    // for the watchdog, if any

void steps_fill(const struct steps *steps, int64_t index);    // with the data of that step
// Runs one step, started together on all ranks. Returns this rank's seconds.
double steps_run_one(const struct steps *steps, int64_t index);

// validation.c: verifies steps as [run] verify asks. Results tell whether the run may go on. Collective.
void validation_prepare(struct steps *steps, struct backend *backend);
bool validation_repeats(const struct steps *steps, int64_t index);    // whether the step is run twice
void validation_start(struct steps *steps, int64_t index);
bool validation_of_parts(struct steps *steps, int64_t step);    // -1: before the first
bool validation_end(struct steps *steps, int64_t index, bool is_finite);

// checkpoints.c: opens the checkpoint, and fails early if a planned save would fail; fills the tensors before the first
// step; saves after a step, false on failure. Collective.
status checkpoints_open(struct catalogue **loaded, const struct config *config, const struct plan *plan,
                        struct comm *comm);
status checkpoints_begin(struct steps *steps);
bool   checkpoints_follow(struct steps *steps, int64_t index, bool is_last);
void   checkpoints_judge(struct steps *steps);    // after the last step; this rank only
void   checkpoints_close(struct steps *steps);    // abandons an unfinished save; frees the loaded checkpoint
void   checkpoints_describe(const struct steps *steps,
                            struct result_rank *own);    // fills this rank's part; this rank only

// fault.c: arms the injected fault for a step, and disarms it; in repetitions only if it repeats. Adds a note.
void fault_begin(struct steps *steps, int64_t index, bool is_repetition);
void fault_end(struct steps *steps);
void fault_note(struct result *result, const struct fault_config *fault);

// observations.c: samples this rank's device unless it is shared, and gathers all samples (collective).
void observations_open(struct steps *steps, int64_t sharers);
void observations_gather(struct steps *steps, int64_t sharers);

// profile.c: emits NVTX ranges while a profiler listens. close may be called twice.
void profile_open(struct steps *steps);
void profile_close(struct steps *steps);
// Around each step: starts and stops the profiler on the ranks of [profile]. is_stopped: the run ends here.
void profile_begin(const struct steps *steps, int64_t step);
void profile_end(const struct steps *steps, int64_t step, bool is_stopped);
// Adds a note if [profile] is set; such a result is not compared.
void profile_check(struct result *result, const struct profile_config *profile);

// trace.c: runs the traced steps and records the last one, or why tracing failed. Rank 0 writes trace.json, and fails
// if it cannot. Collective.
status steps_trace(struct steps *steps, const struct output_folder *folder);

// replicas.c: checks that replicas hold bitwise equal weights. Collective.
void replicas_compare(struct result *result, const struct steps *steps);

#endif

// SPDX-License-Identifier: MIT
// Shared by the files of this folder: the state of one rank's run, and the functions of each file.
#pragma once

#include <pthread.h>

#include "gswbench/benchmark.h"
#include "gswbench/checkpoint.h"
#include "gswbench/environment.h"
#include "gswbench/observe.h"
#include "gswbench/plan.h"
#include "gswbench/result.h"
#include "gswbench/signals.h"
#include "gswbench/step.h"
#include "gswbench/terminal.h"
#include "gswbench/text.h"
#include "gswbench/validate.h"
#include "gswbench/watch.h"

// A note: a reason that does not change the verdict, and that names no rank or step.
#define NOTE(name) ((struct result_reason){name, VERDICT_VALID, -1, -1, ""})

// launch.c: sets the number of ranks from the launcher, or from the request.
status launch_count_ranks(struct job_selection *selection, struct text_buffer *errors);

// facts.c: adds notes on cores, devices, checks and layout, and on profilers and faults that disturb the step times.
void notes_add(struct result *result, const struct benchmark *benchmark, const struct rank_environment *environment);
void notes_add_disturbances(struct result *result, const struct config *config);

// facts.c: predicts the step time; rank 0 only.
void expectation_find(struct result *result, const struct job *job, const struct rank_environment *environment);

// facts.c: "NVIDIA H200, ...", and why a better backend or communicator was not selected.
void facts_describe_device(struct result *result, struct rank_environment *environment);

// facts.c: adds memory and features of the communication library.
void facts_add_connections(struct result *result, struct comm *comm, const struct step *step);

// How a run uses CUDA graphs. capture_after: step after which to capture; -1: never. tried: steps timed in each mode
// (eager and replayed) to choose the faster; 0: none.
struct graphs_plan {
    int64_t capture_after, tried;
};

// observations.c: CPU time on this machine during the measured steps, from /proc/stat, in total and of this process.
enum { PROCESSORS_MAX = 1024 };
struct processors {
    bool   is_begun;
    double wall_seconds, own_seconds;    // own: of this process, over all CPUs
    double busy_seconds[PROCESSORS_MAX];
};

// compute_times.c: compute time per step and rank, without waiting, compared between ranks with the same work.
struct compute_times {
    int64_t *classes;             // [ranks]: the lowest rank with the same work
    int     *order;               // [ranks], sorted by class
    double  *seconds, *excess;    // [measured steps]: this rank's time, and its excess over the median of its class
    int64_t  count;               // measured steps so far
};

// Checkpoint to start from, and saves.
struct checkpoints {
    struct catalogue       *loaded;        // NULL: random initialization
    struct checkpoint_cost  load, save;    // of this rank, most recent
    struct checkpoint_save *saving;        // asynchronous save in progress; NULL: none
    int64_t                 saving_step;
    double                  saving_began;
    bool                   *beside;    // [steps], whether an asynchronous save overlapped the step
    status                  saved;     // error of the most recent save
};

// What a rank observes besides its step times: device, CPU time of other processes, and clock.
struct rank_observations {
    struct observer      *device;     // NULL: off
    struct processors     machine;    // of its host
    struct compute_times *compute_times;
    double               *seconds;        // [steps]
    double                clock_drift;    // set at the end
};

// One rank's step loop. Rank 0 stores the measurements in the result and prints them.
struct steps {
    const struct benchmark        *benchmark;
    const struct environment_peer *peers;    // [ranks]
    const struct plan             *plan;
    struct comm                   *comm;
    struct backend                *backend;
    struct step                   *step;
    struct result                 *result;
    struct journal                *journal;       // open on rank 0
    pthread_mutex_t                keeping;       // held while a step is added to the journal and printed
    struct watch                  *hang_watch;    // watchdog; NULL: off
    struct ranges                 *ranges;        // NVTX ranges; NULL: no profiler attached
    struct validation             *validation;    // NULL: the backend computes no numbers
    struct step_fault              fault;         // of this rank
    struct graphs_plan             graphs;
    struct checkpoints             checkpoints;
    struct rank_observations       observed;
    struct progress                progress;
    status                         untraced;    // error of the requested tracing; the same on all ranks
};
status steps_measure(struct steps *steps);
void   steps_enter(const struct steps *steps, enum watch_phase phase, int64_t index);    // for the watchdog, if any

void steps_fill(const struct steps *steps, int64_t index);    // with the data of that step
// Runs one step, started together on all ranks. Returns this rank's seconds.
double steps_run_one(const struct steps *steps, int64_t index);

// validation.c: verifies steps as [run] verify asks, and returns whether the run may continue. Collective.
void validation_prepare(struct steps *steps, struct backend *backend);
bool validation_repeats(const struct steps *steps, int64_t index);    // whether the step is run twice
void validation_start(struct steps *steps, int64_t index);
bool validation_of_parts(struct steps *steps, int64_t step);    // -1: before the first
bool validation_end(struct steps *steps, int64_t index, bool is_finite);

// checkpoints.c: open opens the initial checkpoint, and fails early if a save of the run would fail. begin fills the
// tensors, from it if there is one. follow saves after a step; false: the save failed. Collective.
status checkpoints_open(struct catalogue **loaded, const struct config *config, const struct plan *plan,
                        struct comm *comm);
status checkpoints_begin(struct steps *steps);
bool   checkpoints_follow(struct steps *steps, int64_t index, bool is_last);
void   checkpoints_judge(struct steps *steps);    // after the last step; this rank only
void   checkpoints_close(struct steps *steps);    // abandons an unfinished save; frees the loaded checkpoint
void   checkpoints_describe(const struct steps *steps,
                            struct result_rank *own);    // fills this rank's part; this rank only

// steps.c: arms the injected fault for a step, and disarms it; in repetitions only if it repeats.
void fault_begin(struct steps *steps, int64_t index, bool is_repetition);
void fault_end(struct steps *steps);

// observations.c: samples this rank's device unless it is shared, and gathers all samples (collective).
void observations_open(struct steps *steps, int64_t sharers);
void observations_gather(struct steps *steps, int64_t sharers);

// observations.c: emits NVTX ranges while a profiler listens. close may be called twice.
void profile_open(struct steps *steps);
// Prints the command that collects the steps of [profile], unless a profiler is attached.
void profile_advise(const struct profile_config *profile);
void profile_close(struct steps *steps);
void profile_watch(const struct steps *steps, bool is_on);    // marks ops, or hides them
// Around each step: starts and stops the profiler on the ranks of [profile]. is_stopped: the run ends here.
void profile_begin(const struct steps *steps, int64_t step);
void profile_end(const struct steps *steps, int64_t step, bool is_stopped);

// trace.c: runs the traced steps and records the last one, or why tracing failed. Rank 0 writes trace.json, and fails
// if it cannot. Collective.
status steps_trace(struct steps *steps, const struct output_folder *folder);

// validation.c: checks that replicas hold bitwise equal weights. Collective.
void replicas_compare(struct result *result, const struct steps *steps);

void processors_begin(struct processors *processors, const char *path);
void processors_end(struct processors *processors, const char *path);    // no effect before begin
// Sets processors and foreign. machine is equal on ranks of one machine. Collective.
void processors_gather(const struct processors *processors, struct comm *comm, uint64_t machine,
                       struct result_rank *own);

// compute_times.c: collective; close frees.
struct compute_times *compute_times_open(const struct plan *plan, struct comm *comm, int64_t steps);
void                  compute_times_close(struct compute_times *times);

// Adds a measured step; seconds is [ranks]. Rank 0 records it.
void compute_times_add(struct compute_times *times, const struct comm_topology *topology, const double *seconds,
                       struct result *result);

// Sets this rank's summary. is_judged: it shares neither cores nor device, so slowness is its own.
void compute_times_summarise(const struct compute_times *times, const struct comm_topology *topology, bool is_judged,
                             struct result_rank *own);

// steps.c: when a run captures its step as a CUDA graph, and whether it keeps replaying the graph. graphs_plan.tried:
// steps timed in each mode, from step 1 on.
struct graphs_plan graphs_plan(enum graphs choice, bool can_capture, int nodes, int64_t warmup);

// seconds: median of an eager and of a replayed step.
bool graphs_is_captured_faster(const struct graphs_plan *plan, const struct result_step *steps, double seconds[2]);

// After a step: captures it when due; keeps the faster mode once all times are known. Collective.
status graphs_follow(struct steps *steps, int64_t index);
void   graphs_decide(struct steps *steps, int64_t index);

// thresholds.c: user thresholds for one run.
// Checks the syntax of run.fail_below and fail_above.
status thresholds_check(const struct run_config *run);

// Prints a line per threshold. Returns EXIT_VALID, EXIT_GATE if one is missed, or EXIT_UNDECIDED if one is
// inconclusive. In a run that is not VALID all are inconclusive, unless is_forced.
int thresholds_judge(const struct result *result, const struct run_config *run, bool is_forced, FILE *file);

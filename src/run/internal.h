// SPDX-License-Identifier: MIT
// Shared by the files of this folder: the state of one rank while it runs a job, and the functions of each file.
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

// A note in the result that does not change the verdict and concerns no single rank or step.
#define NOTE(name) ((struct result_reason){name, VERDICT_VALID, -1, -1, ""})

// launch.c: sets the number of ranks: the launcher's, else the requested one, else the one that [parallel] needs.
status launch_count_ranks(struct job_selection *selection);

// facts.c: notes_add adds notes on shared cores and devices, run.check, and the layout. notes_add_disturbances notes
// profilers and injected faults, which change the step times.
void notes_add(struct result *result, const struct benchmark *benchmark, const struct rank_environment *environment);
void notes_add_disturbances(struct result *result, const struct config *config);

// facts.c: finds the hardware to predict for: [hardware], or the installed profile of this rank's device if [hardware]
// describes another one. Returns NULL, or why there can be no prediction.
const char *expectation_hardware(struct hardware_config *found, const struct config *config, struct backend *backend);

// facts.c: sets the step time that a prediction expects for this machine. Rank 0 only.
void expectation_find(struct result *result, const struct job *job, struct rank_environment *environment);

// facts.c: sets the description of the device, such as "NVIDIA H200, ...". With backend or communicator auto, it also
// says why a better one was not chosen.
void facts_describe_device(struct result *result, struct rank_environment *environment);

// facts.c: records the memory and the features that the communication library uses.
void facts_add_connections(struct result *result, struct comm *comm, const struct step *step);

// How a run uses CUDA graphs. capture_after: index of the step after which the ops are captured as a graph; -1: never.
// tried: number of steps that are timed in each mode, eager and replayed, to keep the faster mode; 0: keep the graph.
struct graphs_plan {
    int64_t capture_after, tried;
};

// observations.c: CPU time during the measured steps: of this machine from /proc/stat, of this process from getrusage.
enum { PROCESSORS_MAX = 1024 };
struct processors {
    bool   is_begun;
    double wall_seconds, own_seconds;       // own_seconds: CPU time of this process
    double busy_seconds[PROCESSORS_MAX];    // CPU time of any process, per core
};

// compute_times.c: compute time of each step on each rank, without the time that the rank waits for others. Ranks with
// the same work form a class; a rank is compared with the median of its class.
struct compute_times {
    int64_t *classes;    // [ranks]: class of a rank, which is the lowest rank with the same work
    int     *order;      // [ranks]: all ranks, sorted by class
    // [measured steps]: this rank's time, and its relative excess over the median of the ranks with the same work
    double *seconds, *excess;
    int64_t count;    // number of measured steps so far
};

// The checkpoint from which the run starts, and the saves of the run.
struct checkpoints {
    struct catalogue       *loaded;        // the checkpoint to load; NULL: random initialization
    struct checkpoint_cost  load, save;    // cost of this rank's load, and of its latest save
    struct checkpoint_save *saving;        // the asynchronous save in progress; NULL: none
    int64_t                 saving_step;
    double                  saving_began;
    bool                   *beside;    // [steps]: whether an asynchronous save overlapped the step
    status                  saved;     // error of the latest save
};

// Observations of a rank during its steps: the device, CPU time of other processes, and drift of the clock.
struct rank_observations {
    struct observer      *device;     // samples of the device; NULL: off
    struct processors     machine;    // CPU time of this rank's machine
    struct compute_times *compute_times;
    double               *seconds;    // [steps]: this rank's step times
    // seconds by which wall clock and monotonic clock diverged; set after the last step
    double clock_drift;
};

// The step loop of one rank. Rank 0 stores the measurements in the result and prints them.
struct steps {
    const struct benchmark        *benchmark;
    const struct environment_peer *peers;    // [ranks]
    const struct plan             *plan;
    struct comm                   *comm;
    struct backend                *backend;
    struct step                   *step;
    struct result                 *result;
    struct journal                *journal;       // open on rank 0
    pthread_mutex_t                printing;      // held while a step is printed
    struct watch                  *hang_watch;    // the watchdog; NULL: off
    struct ranges                 *ranges;        // NVTX ranges; NULL: no profiler attached
    struct validation             *validation;    // NULL: the backend computes no numbers
    struct step_fault              fault;         // the injected fault, if it concerns this rank
    struct graphs_plan             graphs;
    struct checkpoints             checkpoints;
    struct rank_observations       observed;
    struct progress                progress;
    status                         untraced;    // why the traced steps failed; the same on all ranks
};
status steps_measure(struct steps *steps);

void steps_fill(const struct steps *steps, int64_t index);    // fills the input tensors with the data of this step
// Runs one step, which all ranks start after a barrier. Returns the seconds that this rank took.
double steps_run_one(const struct steps *steps, int64_t index);

// validation.c: verifies steps, as [run] verify says. validation_repeats: whether a step runs twice. validation_start
// and validation_end are called before and after each step; is_finite: its loss and gradient norm are finite.
// validation_of_parts tests single ops and collectives after a step (-1: before the first). Except validation_repeats,
// the functions that return bool return whether the run may continue. Collective.
void validation_prepare(struct steps *steps, struct backend *backend);
bool validation_repeats(const struct steps *steps, int64_t index);
void validation_start(struct steps *steps, int64_t index);
bool validation_of_parts(struct steps *steps, int64_t step);
bool validation_end(struct steps *steps, int64_t index, bool is_finite);

// checkpoints.c: checkpoints_open opens the checkpoint to load, and fails early if a later save would fail.
// checkpoints_begin fills the tensors from it, or randomly. checkpoints_follow saves after a step if a save is due, and
// returns false if the save failed. checkpoints_write_weights writes the weights to the folder of rank 0. Collective.
status checkpoints_open(struct catalogue **loaded, const struct config *config, const struct plan *plan,
                        struct comm *comm);
status checkpoints_begin(struct steps *steps);
bool   checkpoints_follow(struct steps *steps, int64_t index, bool is_last);
status checkpoints_write_weights(struct steps *steps, const struct output_folder *folder);
// checkpoints_judge computes the step times with and without a save, and checkpoints_describe records this rank's
// costs; both only on this rank. checkpoints_close drops an unfinished save and closes the loaded checkpoint.
void checkpoints_judge(struct steps *steps);
void checkpoints_describe(const struct steps *steps, struct result_rank *own);
void checkpoints_close(struct steps *steps);

// steps.c: turns the injected fault on for a step; the caller turns it off (step_set_fault). When the step runs a
// second time, the fault stays off unless [fault] repeats is set.
void fault_begin(struct steps *steps, int64_t index, bool is_repetition);

// observations.c: observations_open starts to sample this rank's device, unless several ranks share it (sharers > 1).
// observations_gather collects every rank's samples (collective).
void observations_open(struct steps *steps, int64_t sharers);
void observations_gather(struct steps *steps, int64_t sharers);

// observations.c: profile_open makes ops emit NVTX ranges if a profiler is attached. profile_close may be called twice.
void profile_open(struct steps *steps);
// Prints the command of a profiler that collects the steps of [profile], unless one is attached.
void profile_advise(const struct profile_config *profile);
void profile_close(struct steps *steps);
void profile_watch(const struct steps *steps, bool is_on);    // whether ops emit ranges
// Called before and after each step: starts and stops the profiler at the steps and on the ranks of [profile].
// is_stopped: the run ends early, after this step.
void profile_begin(const struct steps *steps, int64_t step);
void profile_end(const struct steps *steps, int64_t step, bool is_stopped);

// trace.c: runs the traced steps. Records the op times of the last one, or why tracing failed. Rank 0 writes
// trace.json, and fails if it cannot. Collective.
status steps_trace(struct steps *steps, const struct output_folder *folder);

// validation.c: checks that data-parallel replicas have bitwise equal weights. Collective.
void replicas_compare(struct result *result, const struct steps *steps);

// observations.c: measure the CPU time between processors_begin and processors_end. path: /proc/stat except in tests.
void processors_begin(struct processors *processors, const char *path);
void processors_end(struct processors *processors, const char *path);    // does nothing before processors_begin
// Sets own->processors, the cores of the ranks on this machine, and own->foreign, the cores that other processes kept
// busy. machine: hash that identifies this machine. Collective.
void processors_gather(const struct processors *processors, struct comm *comm, uint64_t machine,
                       struct result_rank *own);

// compute_times.c: finds the classes of ranks with the same work. Collective.
struct compute_times *compute_times_open(const struct plan *plan, struct comm *comm, int64_t steps);
void                  compute_times_close(struct compute_times *times);

// Adds the compute times of a measured step; seconds: [ranks]. Rank 0 also records them in the result.
void compute_times_add(struct compute_times *times, const struct comm_topology *topology, const double *seconds,
                       struct result *result);

// Sets this rank's median time and excess. is_judged: the rank shares neither cores nor device, so if it is slow, this
// is not due to another rank.
void compute_times_summarise(const struct compute_times *times, const struct comm_topology *topology, bool is_judged,
                             struct result_rank *own);

// steps.c: returns whether run.until tests the precision after this many steps. A test sorts the times of all steps, so
// longer runs test less often: about 32 times while the number of steps doubles.
bool steps_test_precision(int64_t count);

// steps.c: decides when a run captures its step as a CUDA graph. If it times both modes, it times the eager steps 1 to
// `tried`, and as many replayed steps after the first replay.
struct graphs_plan graphs_plan(enum graphs choice, bool can_capture, int nodes, int64_t warmup);

// Returns whether replayed steps were at least as fast as eager ones. seconds: median of eager and of replayed steps.
bool graphs_is_captured_faster(const struct graphs_plan *plan, const struct result_step *steps, double seconds[2]);

// graphs_follow: captures the graph if this is the step for it. Collective. graphs_decide: drops the graph if eager
// steps were faster.
status graphs_follow(struct steps *steps, int64_t index);
void   graphs_decide(struct steps *steps, int64_t index);

// thresholds.c: checks the syntax of run.fail_below and run.fail_above, limits that the user sets on a run's figures.
status thresholds_check(const struct run_config *run);

// Prints a line per threshold. Returns EXIT_GATE if a threshold is missed, else EXIT_UNDECIDED if one cannot be
// decided, else EXIT_VALID. Thresholds can be decided in VALID runs and, with is_forced, in DEGRADED ones.
int thresholds_judge(const struct result *result, const struct run_config *run, bool is_forced, FILE *file);

// SPDX-License-Identifier: MIT
// The run command's parts: what all ranks share, one rank's run, and the facts about where it runs.
#ifndef GSWBENCH_CLI_RUN_H
#define GSWBENCH_CLI_RUN_H

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/result.h"
#include "internal.h"

struct run_arguments {
    struct config_arguments config;
    const char             *weights_out;
    int64_t                 emulate, repeats;    // 0: not given
    const char             *stages;
    bool                    json, quiet;
};

// Read by every rank, written by none.
struct run_shared {
    const struct run_arguments *arguments;
    const struct job           *job;
    char                       *config_text;    // the merged configuration as INI
    size_t                      config_bytes;
};

// run.c: reads what the arguments select, and sets their ranks. The caller frees shared->config_text.
status run_read_job(struct run_shared *shared, struct job *job, struct run_arguments *arguments,
                    struct text_buffer *errors);

// What every rank tells the others before anything else.
struct run_peer {
    struct comm_place place;
    char              version[32], profiler[40];    // profiler: the variable that shows one; "": none
    uint64_t          job_hash;                     // of what has to be the same on all ranks
    uint64_t          cores_hash;
    int64_t           cores;
};

// The cores of a rank. Ranks of a machine that may use the same cores share them.
struct run_cores {
    int64_t cores, sharers, threads;
    int64_t index;    // of the rank among the sharers
};

// run_peers.c: gathers all ranks, in a list that the caller frees even after an error: one of them runs another job.
// Collective; every rank returns the same.
status run_meet(struct run_peer **peers, const struct run_shared *shared, struct comm *comm);

// How many cores this rank has for itself.
struct run_cores run_share_cores(const struct run_peer *peers, const struct comm_place *place,
                                 int64_t requested_threads);

// Adds a note to the result when a tensor-parallel group is not on one node.
void run_check_places(struct result *result, const struct run_peer *peers);

// Adds a note when a profiler watches a rank.
void run_check_profilers(struct result *result, const struct run_peer *peers, int ranks);

// launch.c: sets the arguments' ranks to what the launcher started, or to what is asked for.
status launch_count_ranks(struct config_arguments *arguments, struct text_buffer *errors);

// Runs a rank for each that this process is, over the communicator that the configuration names. A rank's function is
// collective; every rank returns the same.
typedef status launch_rank(const void *shared, struct comm *comm);
status         launch_ranks(const struct run_config *config, int ranks, launch_rank *run, const void *shared);

// run_rank.c: one rank from plan to result, of a struct run_shared.
launch_rank run_rank;

// The first failing rank's status, on all ranks. Collective.
status run_agree(struct comm *comm, status own);

// run_steps.c: the first signal ends the run after the step that it falls in; a second one ends the process. Called by
// every rank.
void run_catch_signals(void);

// Everything that a rank measures, step by step. Rank 0 keeps all of it in the result and prints it.
struct run_steps {
    const struct run_shared *shared;
    struct comm             *comm;
    const struct plan       *plan;
    struct backend          *backend;
    struct step             *step;
    struct result           *result;
    double                  *own_seconds;    // [steps], of this rank
    double                   clock_drift;    // of this rank, set at the end
};
status run_measure(struct run_steps *steps);

// Runs one step, from the same start on all ranks. Returns this rank's seconds.
double run_one_step(const struct run_steps *steps, int64_t index);

// 0: none came.
int run_caught_signal(void);

// run_trace.c: runs the steps of [profile] and puts into the result what the last of them shows; on rank 0 also into
// timeline, if one is asked for: trace.json, which the caller frees. Collective.
struct run_text {
    char  *data;
    size_t bytes;
};
void run_trace(struct run_steps *steps, struct run_text *timeline);

// run_facts.c: fills what is known before the first step, apart from the plan.
void run_describe(struct result *result, const struct run_shared *shared, const struct comm *comm,
                  const struct backend *backend);

// run_devices.c: the backend that the configuration asks for, with so many threads of the processor.
status run_open_backend(struct backend *backend, const struct config *config, const struct comm_place *place,
                        int64_t threads);

// How many ranks use this rank's device. Fails (EXIT_LAUNCH) when more than allowed do, or ranks differ
// in their backends. Collective; ranks may fail alone.
status run_share_devices(struct comm *comm, struct backend *backend, int64_t allowed, int64_t *sharers);

// run_connect.c: opens nccl over the rank's communicator where the configuration wants it, or wants the best and can
// have it; else leaves nccl->ops NULL. Collective; every rank returns the same.
status run_connect(struct comm *nccl, struct comm *comm, struct backend *backend, const struct run_config *run,
                   int64_t sharers);

// emulate.c: one device for all ranks of the job.
status run_emulated(const struct run_arguments *arguments, struct text_buffer *errors);

// "2026-08-22T10:15:00Z"
void run_print_time(char *text, size_t bytes);

#endif

// SPDX-License-Identifier: MIT
// Runs a job: starts its ranks, and runs each from its plan to its result.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/job.h"
#include "gswbench/environment.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// A job and the options of its run. All ranks share it and do not change it.
struct benchmark {
    const char *weights_out;                   // folder for the trained weights, or NULL
    bool        is_forced;                     // apply run.fail_above and run.fail_below to a DEGRADED run as well
    const char *sign_key;                      // key that signs result.json, or NULL
    const char *baseline;                      // earlier run to compare with; NULL: none
    bool        json, is_quiet, is_verbose;    // json: print result.json to stdout; is_quiet: print no progress
    bool        is_mute;                       // with json: do not print result.json either
    // Called on rank 0 after the result was checked and before it is written. May change the result. NULL: not called.
    void (*conclude)(void *context, struct result *result);
    void *context;

    // Set by benchmark_read:
    struct job job;
    char      *config_text;    // the merged configuration as INI; the caller frees it
    size_t     config_bytes;
};

// Reads the selected job for the number of launched ranks into `job`, config_text and config_bytes. Leaves the other
// fields unchanged.
status benchmark_read(struct benchmark *benchmark, const struct job_selection *selection);

// Calls `run` for each rank of this process. With communicator local, the process has all ranks, each on a thread; with
// MPI or NCCL, it has one rank. `run` is collective and returns the same status on every rank. launch_ranks returns the
// exit code in all processes, but the error text only in the first. errors receives further lines of the error.
typedef status launch_rank(const void *shared, struct comm *comm);
status         launch_ranks(const struct run_config *config, int ranks, launch_rank *run, const void *shared,
                            struct text_buffer *errors);

// Ends the job with an error that this process found before launch_ranks. The other processes already wait in MPI for
// this process to connect. So this call connects and sends them the error, and the job ends with one message.
status launch_fail(status own, struct text_buffer *errors);

// Runs one rank from its plan to its result. shared is a struct benchmark.
launch_rank benchmark_run_rank;

// A job that runs `times` times in one launch; benchmark.conclude is not called. Rank 0 prints a table of the runs.
struct repeated_benchmark {
    struct benchmark benchmark;
    int64_t          times;
};
launch_rank benchmark_repeat_rank;

// Record program and configuration in the result. benchmark_describe also records the machine. Call before step 0.
void benchmark_describe_job(struct result *result, const struct benchmark *benchmark);
void benchmark_describe(struct result *result, const struct benchmark *benchmark, const struct comm *comm,
                        const struct backend *backend, const struct environment_devices *devices);

// Records the settings that ranks compare (struct setting), and the ranks whose settings differ. environment NULL:
// records only the environment variables of this process.
void facts_add_environment(struct result *result, const struct rank_environment *environment);

// Writes the current time in UTC, such as "2026-08-22T10:15:00Z".
void benchmark_print_time(char *text, size_t bytes);

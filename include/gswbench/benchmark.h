// SPDX-License-Identifier: MIT
// A run of a job: how its ranks are started, and what one of them does from the plan to the result.
#ifndef GSWBENCH_BENCHMARK_H
#define GSWBENCH_BENCHMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/job.h"
#include "gswbench/place.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// Read by every rank, written by none.
struct benchmark {
    const char *weights_out;       // the folder of the trained weights, or NULL
    bool        is_forced;         // thresholds judge a run that is DEGRADED, too
    const char *sign_key;          // the key that result.json is signed with, or NULL
    bool        json, is_quiet;    // stdout is result.json; nothing of the run's progress is printed
    bool        is_mute;           // with json: stdout is not even that
    void (*conclude)(void *context, struct result *result);    // rank 0's last word on a judged result; NULL: none
    void *context;

    // benchmark_read:
    struct job job;
    char      *config_text;    // the merged configuration as INI; the caller frees it
    size_t     config_bytes;
};

// Reads the selected job, at as many ranks as were launched. The benchmark's other fields stay as they are.
status benchmark_read(struct benchmark *benchmark, const struct job_selection *selection, struct text_buffer *errors);

// Runs the ranks of this process over the communicator that the configuration names: all of them as threads with local,
// else one. A rank's function is collective; every rank returns the same. Of several processes only the first returns a
// text, with the lines that belong to it in errors; all have its exit code.
typedef status launch_rank(const void *shared, struct comm *comm);
status         launch_ranks(const struct run_config *config, int ranks, launch_rank *run, const void *shared,
                            struct text_buffer *errors);

// What becomes of an error of this process: one from before its ranks were run is told to the others, which wait to be
// met, so that the job has one error.
status launch_fail(status own, struct text_buffer *errors);

// One rank from plan to result, of a struct benchmark.
launch_rank benchmark_run_rank;

// The same so many times, one run after the other, of a struct repeated_benchmark, whose conclude is not used; rank 0
// prints what the runs differ by.
struct repeated_benchmark {
    struct benchmark benchmark;
    int64_t          times;
};
launch_rank benchmark_repeat_rank;

// Fills what is known of the program, the machine and the configuration before the first step, apart from the plan.
void benchmark_describe_job(struct result *result, const struct benchmark *benchmark);    // without the machine
void benchmark_describe(struct result *result, const struct benchmark *benchmark, const struct comm *comm,
                        const struct backend *backend, const struct place_devices *devices);

// Adds what a place has found in the environment, and who deviates; place NULL: what this process has.
void facts_add_environment(struct result *result, const struct place *place);

// "2026-08-22T10:15:00Z"
void benchmark_print_time(char *text, size_t bytes);

#endif

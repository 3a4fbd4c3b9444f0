// SPDX-License-Identifier: MIT
// [run]: steps, seed, data, backend, communicator, output.
#pragma once

#include <stdint.h>

#include "gswbench/option.h"

enum data_kind { DATA_UNIFORM, DATA_MARKOV };
// Which program's log format the step lines use.
enum log_style { LOG_GSWBENCH, LOG_MAXTEXT, LOG_NEMO, LOG_TORCHTITAN, LOG_MEGATRON };

enum graphs { GRAPHS_AUTO, GRAPHS_ON, GRAPHS_OFF };
enum run_check { CHECK_NONE, CHECK_OPS };
enum run_conditions { CONDITIONS_NOTE, CONDITIONS_ERROR };
enum run_registered { REGISTERED_AUTO, REGISTERED_NO, REGISTERED_YES };
enum run_verify { VERIFY_QUICK, VERIFY_FULL, VERIFY_LIGHT, VERIFY_OFF };

// [run]
struct run_config {
    int64_t steps, warmup;
    double  until;    // percent: half width of the median's interval that ends the run; 0: run.steps does
    int64_t seed;
    int64_t data;                // enum data_kind
    char    backend[16];         // auto, or a name of backend.h
    char    communicator[16];    // auto, or a name of comm.h
    int64_t attention;           // cuda backend: enum attention_choice of backend.h
    int64_t threads;             // host backend: threads per rank; 0: the rank's cores
    int64_t layers;              // proxy model with that many layers; 0: the model's own
    int64_t graphs;              // enum graphs
    int64_t check;               // enum run_check
    int64_t verify;              // enum run_verify
    int64_t conditions;          // enum run_conditions
    int64_t log_style;           // enum log_style
    int64_t deterministic;
    int64_t compute_times;
    int64_t ranks_per_device, threads_per_core;
    int64_t sm_margin;
    int64_t registered_buffers;    // enum run_registered
    int64_t zero_cta;
    int64_t communication_algorithms;
    int64_t ranks_per_id;
    int64_t connect_seconds;
    int64_t hang_seconds;                        // -1: auto
    int64_t time_limit;                          // seconds; 0: none
    double  observe_seconds;                     // sampling interval of device counters; 0: off
    char    cache[OPTION_PATH_BYTES];            // folder of files kept between runs; "": the user's cache folder
    char    output[OPTION_PATH_BYTES];           // folder for result folders
    char    fail_above[112], fail_below[112];    // "step=13", "mfu=0.5,tokens=60000"; "": no threshold
};
extern const struct option run_options[];

// Maximum number of steps: run.steps, or ten times as many with until.
int64_t run_steps_max(const struct run_config *run);

// Default number of warm-up steps.
int64_t run_warmup(int64_t steps);

// SPDX-License-Identifier: MIT
// The [run] options.
#include "gswbench/run.h"

// clang-format off
static const char *const data_names[] = {[DATA_UNIFORM] = "uniform", [DATA_MARKOV] = "markov", NULL};
static const char *const backend_names[] = {"auto", "null", "host", "cuda", NULL};
static const char *const communicator_names[] = {"auto", "local", "mpi", "nccl", NULL};

const struct option run_options[] = {
    INTEGER_OPTION(run_config, steps, "50", 1, 1000000, "steps of a run, warm-up included"),
    INTEGER_OPTION(run_config, warmup, "10", 0, 1000000, "first steps, run and reported but not measured"),
    INTEGER_OPTION(run_config, seed, "1", 0, 9007199254740991, "seed of the weights and tokens"),
    CHOICE_OPTION (run_config, data, "uniform", data_names, "synthetic tokens: independent, or a chain that a model can learn"),
    NAME_OPTION   (run_config, backend, "auto", backend_names, "what computes; auto: the best that this build and machine have"),
    NAME_OPTION   (run_config, communicator, "auto", communicator_names, "what carries data between ranks; auto: what the launch calls for"),
    INTEGER_OPTION(run_config, threads, "0", 0, 4096, "host backend: threads of a rank; 0: the cores that the rank is given"),
    INTEGER_OPTION(run_config, layers, "0", 0, 4096, "a proxy of that many layers, labelled as one; 0: the layers of the model"),
    TEXT_OPTION   (run_config, output, "results", "folder in which each run makes its own"),
    END_OPTIONS
};
// clang-format on

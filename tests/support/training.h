// SPDX-License-Identifier: MIT
// Trains a tiny model on the host backend, for tests that compare complete steps. Ranks are threads, or processes of a
// given communicator.
#pragma once

#include "gswbench/checkpoint.h"
#include "gswbench/step.h"
#include "tiny.h"

enum { TRAINING_STEPS_MAX = 512, TRAINING_RANKS_MAX = 16, TRAINING_ROUTING_MAX = 256 };

struct training {
    struct tiny               tiny;    // from tiny_init, then changed by the test
    int                       ranks, steps, threads;
    uint64_t                  seed;
    enum data_kind            data;
    bool                      captures;    // capture the step after its first run
    bool                      checks;      // check the step's ops for NaN and infinity
    bool                      stalls;      // measure the step's stalls
    bool                      decided;     // router biases choose the experts (router_bias_rate > 0)
    bool                      apart;       // with decided: tokens of each rank choose other experts
    const struct backend_ops *backend;     // NULL: the host backend
    struct op_time           *times;       // [op_count]: trace of rank 0's last step, or NULL
    // Opens a communicator that runs collectives on the streams of `backend`, with `control` for host messages. NULL:
    // the training uses the communicator of its ranks.
    status (*connect)(struct comm *made, struct comm *control, struct backend *backend);
    const char *weights;    // new folder for the trained weights, or NULL
    const char *load;       // checkpoint to start and continue from, or NULL
    const char *save;       // folder for a checkpoint after the last step, or NULL
    // Results.
    float   loss[TRAINING_STEPS_MAX], norm[TRAINING_STEPS_MAX];    // of rank 0
    float   prediction_loss[TRAINING_STEPS_MAX];                   // of rank 0; 0 without MTP
    float   routing[TRAINING_ROUTING_MAX];                         // of the first step, with experts
    int64_t storage_bytes[STORAGE_COUNT];                          // allocated by rank 0
    int64_t planned_bytes[STORAGE_COUNT];
    int64_t allocations_in_steps;    // summed over ranks
    double  device_seconds;          // of rank 0's last step
    double  compute_seconds;         // of rank 0's last step
    double  step_seconds;            // of rank 0's last step, by the host's clock
};

// Ends the program on failure.
void training_require(status result);

// Runs one rank and returns its number of allocations in steps. Rank 0 fills in the results.
int64_t training_run_rank(struct training *training, struct comm *comm);
// Runs all ranks as threads.
void training_run(struct training *training);

// SPDX-License-Identifier: MIT
// Trains a tiny model on the host backend, with ranks as threads or on a communicator that is given, for tests that
// compare whole steps.
#ifndef GSWBENCH_TESTS_TRAINING_H
#define GSWBENCH_TESTS_TRAINING_H

#include "gswbench/checkpoint.h"
#include "gswbench/data.h"
#include "tiny.h"

enum { TRAINING_STEPS_MAX = 512, TRAINING_RANKS_MAX = 16, TRAINING_ROUTING_MAX = 256 };

struct training {
    struct tiny               tiny;    // set with tiny_init, then changed as the test wants
    int                       ranks, steps, threads;
    uint64_t                  seed;
    enum data_kind            data;
    bool                      captures;    // the step after its first run
    bool                      checks;      // its ops
    bool                      pauses;      // are timed
    bool                      decided;     // routers choose by biases that no rounding outweighs (router_bias_rate > 0)
    const struct backend_ops *backend;     // NULL: the host's
    struct op_time           *times;       // [op_count]: rank 0's last step is traced; NULL: not
    // Over the communicator and the rank's backend, what carries transfers in the communicator's place; NULL: itself.
    status (*connect)(struct comm *made, struct comm *control, struct backend *backend);
    const char *weights;    // new folder that the trained weights are written to; NULL: none
    const char *load;       // checkpoint that it begins with, and goes on from; NULL: none
    const char *save;       // folder in which a checkpoint is saved after the last step; NULL: none
    // Results.
    float   loss[TRAINING_STEPS_MAX], norm[TRAINING_STEPS_MAX];    // of rank 0
    float   prediction_loss[TRAINING_STEPS_MAX];                   // likewise, 0 where no further token is predicted
    float   routing[TRAINING_ROUTING_MAX];                         // of the first step, with experts
    int64_t storage_bytes[STORAGE_COUNT];                          // allocated by rank 0
    int64_t planned_bytes[STORAGE_COUNT];
    int64_t allocations_in_steps;    // of all ranks
    double  device_seconds;          // of rank 0's last step
    double  compute_seconds;         // likewise
    double  step_seconds;            // likewise, by the host's clock
};

// Ends the program where something failed.
void training_require(status result);

// One rank's part; returns its allocations in steps. Rank 0 fills the results.
int64_t training_run_rank(struct training *training, struct comm *comm);
// All ranks, as threads.
void training_run(struct training *training);

#endif

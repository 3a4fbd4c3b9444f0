// SPDX-License-Identifier: MIT
// A plan's ops made ready to run, and the lanes that run them.
#ifndef GSWBENCH_STEP_INTERNAL_H
#define GSWBENCH_STEP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/op.h"

// Holds an op back until a lane has completed that many of its ops.
struct wait {
    int32_t lane, count;
};

// An op with all that is looked up for it once, before the first step.
struct work {
    const struct op   *op;
    op_run            *run;      // NULL: a transfer
    struct comm_group *group;    // of a transfer
    struct wait        waits[OP_WAITS];
    int32_t            wait_count;
    bool               is_awaited;    // some other lane waits for it, so its completion is published
    struct buffer      buffers[OP_OPERANDS];
};

// One lane: its ops in list order, and how far it is.
struct queue {
    struct lanes   *lanes;
    struct work    *works;    // [count]
    int32_t         count;
    pthread_t       thread;
    pthread_mutex_t mutex;
    pthread_cond_t  progressed;
    atomic_int      sleepers;
    atomic_int      completed;    // in this step, as far as it is published
};

// All lanes of a rank. The compute lane runs on the caller's thread, each other lane that has ops on its own.
struct lanes {
    struct queue           queues[LANE_COUNT];
    struct backend        *backend;
    const struct comm_ops *comm_ops;
    int                    rank;
    int                    threads;    // started
    pthread_mutex_t        mutex;
    pthread_cond_t         changed;
    int                    running;    // threads that have not finished the step
    int64_t                steps;      // begun
    bool                   is_closing;
};

// queues' works and counts, backend, comm_ops and rank are filled in before; nothing moves until close.
void lanes_open(struct lanes *lanes);
void lanes_run(struct lanes *lanes);
void lanes_close(struct lanes *lanes);

#endif

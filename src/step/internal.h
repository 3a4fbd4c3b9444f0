// SPDX-License-Identifier: MIT
// Internal state of a step: ops in stream queues, and two ways to run them. Either each stream has a thread, or one
// thread issues all ops.
#ifndef GSWBENCH_STEP_INTERNAL_H
#define GSWBENCH_STEP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/step.h"

// A dependency: the op waits until a stream has completed count of its ops. On a device it waits for the event.
struct wait {
    int32_t lane, count;
    void   *event;    // NULL: the backend computes in run()
};

// An op with everything resolved before the first step. Fields that every op reads fit in the first cache line, because
// reading this list limits a step that computes little.
struct queue_entry {
    const struct op       *op;
    op_run                *run;         // NULL: a prepared op, or a communication op
    const struct prepared *prepared;    // algorithm that the backend chose; NULL: none to choose
    struct comm_group     *group;       // communicator; NULL: a compute op
    atomic_int            *shown;       // receives number when the op starts
    void                  *event;       // recorded on the device after the op, if another stream waits for it
    int32_t                number;      // list index, plus 1
    const struct tally    *tally;       // row count that sizes the op, or the first one that it reads; NULL: fixed size
    int16_t                wait_count;
    bool                   is_awaited;    // another stream waits for it, so its completion is published
    struct wait            waits[OP_WAITS];
    struct buffer          buffers[OP_OPERANDS];
};

// Host buffers for a stream's communication ops, if the communicator cannot access device memory.
struct staging {
    void *data[2];    // [TRANSFER_IN, TRANSFER_OUT]; NULL: unused
};

// Fingerprint of the ops that a stream executed, in order.
struct course {
    int32_t  count;
    uint64_t print;
};

// One stream: its ops in list order, and its progress.
struct queue {
    struct lanes        *lanes;
    struct queue_entry **entries;    // [count]
    int32_t              count;
    struct staging       staging;
    pthread_t            thread;
    pthread_mutex_t      mutex;
    pthread_cond_t       progressed;
    atomic_int           sleepers;
    atomic_int           completed;         // ops of this step, as published
    struct course        course;            // of this step
    struct course        captured;          // of the captured step, valid for its replays
    double               waited_seconds;    // stalls on other streams in this step
};

// All streams of a rank.
struct lanes {
    struct queue                  queues[LANE_COUNT];
    struct backend               *backend;
    const struct backend_streams *streams;    // NULL: no device streams
    const struct comm_ops        *comm_ops;
    struct tallies               *tallies;     // NULL: no row counts are read in the step
    struct trace                 *trace;       // NULL: no tracing
    struct step_progress         *progress;    // points to unseen if no watchdog reads it
    struct step_progress          unseen;
    const struct step_watch      *watch;            // NULL: no callbacks
    struct check                 *check;            // NULL: outputs are not checked
    const struct step_fault      *fault;            // NULL: no fault is injected
    const struct queue_entry     *faulty;           // op at which the fault occurs; NULL: none
    struct exam                  *exam;             // NULL: no communication test is running
    const bool                   *left_out;         // [ops] to skip; NULL: run all
    bool                          is_plain;         // none of watch, trace, check, fault, exam and left_out is set
    struct pauses                *pauses;           // stall timers of the device's compute stream; NULL: off
    int                           rank, threads;    // threads: started
    pthread_mutex_t               mutex;
    pthread_cond_t                changed;
    int                           running;            // threads still in the step
    int64_t                       steps;              // started so far
    double                        compute_seconds;    // of the latest step, if run() computes
    bool                          is_closing;
};

// lane.c: runs compute ops on the caller's thread, and each other stream with ops on its own thread. The caller fills
// the struct before lanes_open.
void lanes_open(struct lanes *lanes);
void lanes_run(struct lanes *lanes);
void lanes_close(struct lanes *lanes);

// course.c: course_add records an executed op. courses_begin resets all fingerprints, or sets the graph's.
void course_add(struct course *course, const struct queue_entry *entry);
void courses_begin(struct lanes *lanes, bool is_replay);

// entry.c: runs one op, or enqueues it with its events. Its dependencies must have run or be enqueued.
void entry_run(struct lanes *lanes, const struct queue_entry *entry);
void entry_transfer(struct lanes *lanes, const struct queue_entry *entry);    // ignores dependencies

// staging.c: copies device buffers through host memory for communicators that need it.
void staging_open(struct lanes *lanes);
void staging_run(struct lanes *lanes, const struct queue_entry *entry);
void staging_close(struct lanes *lanes);

// issue.c: one thread enqueues every op. Requires a communicator whose ops are only enqueued.
struct issue {
    struct lanes       *lanes;
    struct queue_entry *entries;    // [count], in list order
    int32_t             count;
    void               *begin;               // event before the first op
    void               *ends[LANE_COUNT];    // event after the stream's last op; NULL: no ops, or the compute stream
};
void issue_open(struct issue *issue, struct lanes *lanes, struct queue_entry *entries, int32_t count);
void issue_run(const struct issue *issue);
void issue_close(struct issue *issue);

struct step {
    const struct plan   *plan;
    struct backend      *backend;
    struct comm         *comm;
    void                *storage[STORAGE_COUNT];    // NULL: empty
    int64_t              storage_bytes[STORAGE_COUNT];
    bool                 is_lent[STORAGE_COUNT];    // allocated by the communicator
    struct comm_group  **groups;                    // [LANE_COUNT][plan->group_count]; NULL: unused by the stream
    struct comm_choice  *chosen;                    // [op_count], filled for ops that ran during setup; or NULL
    int64_t              connection_bytes;          // device memory that the communication library took
    struct queue_entry  *entries;                   // [plan->op_count]
    struct queue_entry **queued;                    // the same entries, sorted by stream
    struct lanes         lanes;

    // Device only. is_issued: one thread issues all ops. begin and end: events around the latest step.
    bool         is_issued, is_captured;
    struct issue issue;
    void        *begin, *end;
};

#endif

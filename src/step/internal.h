// SPDX-License-Identifier: MIT
// A plan's ops made ready to run, and the two ways to run them: a thread for each lane, or one that issues them all.
#ifndef GSWBENCH_STEP_INTERNAL_H
#define GSWBENCH_STEP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/step.h"

// Holds an op back until a lane has completed that many of its ops, on a device until the last of them is done.
struct wait {
    int32_t lane, count;
    void   *event;    // NULL: run() has computed when it returns
};

// An op with all that is looked up for it once, before the first step. What every op reads stands first, within a
// cache line: a step that computes little is bound by reading its list.
struct queue_entry {
    const struct op       *op;
    op_run                *run;         // NULL: it is prepared, or a transfer
    const struct prepared *prepared;    // what the backend has decided for it; NULL: nothing
    struct comm_group     *group;       // of a transfer; NULL: it computes
    atomic_int            *shown;       // where its number is shown when it begins
    void                  *event;       // recorded after it on a device, if awaited
    int32_t                number;      // its place in the list, + 1
    const struct tally    *tally;       // that its rows follow, or the first that it reads; NULL: neither
    int16_t                wait_count;
    bool                   is_awaited;    // some other lane waits for it, so its completion is published
    struct wait            waits[OP_WAITS];
    struct buffer          buffers[OP_OPERANDS];
};

// Host memory through which a lane's transfers go where the communicator does not read the device's.
struct staging {
    void *data[2];    // [TRANSFER_IN, TRANSFER_OUT]; NULL: no transfer needs it
};

// Which ops a lane has executed, in which order.
struct course {
    int32_t  count;
    uint64_t print;
};

// One lane: its ops in list order, and how far it is.
struct queue {
    struct lanes        *lanes;
    struct queue_entry **entries;    // [count]
    int32_t              count;
    struct staging       staging;
    pthread_t            thread;
    pthread_mutex_t      mutex;
    pthread_cond_t       progressed;
    atomic_int           sleepers;
    atomic_int           completed;         // in this step, as far as it is published
    struct course        course;            // of this step
    struct course        captured;          // of the step that replays are of
    double               waited_seconds;    // for other lanes, in this step
};

// All lanes of a rank.
struct lanes {
    struct queue                  queues[LANE_COUNT];
    struct backend               *backend;
    const struct backend_streams *streams;    // of the backend; NULL: it has none
    const struct comm_ops        *comm_ops;
    struct tallies               *tallies;     // NULL: the plan has none
    struct trace                 *trace;       // NULL: steps leave no times
    struct step_progress         *progress;    // unseen, where nobody looks
    struct step_progress          unseen;
    const struct step_watch      *watch;            // NULL: nobody is told of ops
    struct check                 *check;            // NULL: ops are not checked
    const struct step_fault      *fault;            // NULL: nothing goes wrong on purpose
    const struct queue_entry     *faulty;           // the op that the fault is about; NULL: none
    struct exam                  *exam;             // NULL: the step computes
    const bool                   *left_out;         // [ops] that do not run; NULL: all run
    bool                          is_plain;         // the step: none of the six, which no op then asks for
    struct pauses                *pauses;           // of a device's compute lane; NULL: they are not timed
    int                           rank, threads;    // threads: started
    pthread_mutex_t               mutex;
    pthread_cond_t                changed;
    int                           running;            // threads that have not finished the step
    int64_t                       steps;              // begun
    double                        compute_seconds;    // of the latest step, where run() computes
    bool                          is_closing;
};

// lane.c: the compute lane runs on the caller's thread, each other one with ops on its own. All else is filled before.
void lanes_open(struct lanes *lanes);
void lanes_run(struct lanes *lanes);
void lanes_close(struct lanes *lanes);

// course.c: notes an op that is executed; and sets what each lane has executed to nothing, or to what a replay does.
void course_add(struct course *course, const struct queue_entry *entry);
void courses_begin(struct lanes *lanes, bool is_replay);

// entry.c: runs one op, or enqueues it between its events, when what it waits for has run or is enqueued.
void entry_run(struct lanes *lanes, const struct queue_entry *entry);
void entry_transfer(struct lanes *lanes, const struct queue_entry *entry);    // a transfer, whatever it waits for

// staging.c: transfers of a device's buffers by a communicator that knows only host memory.
void staging_open(struct lanes *lanes);
void staging_run(struct lanes *lanes, const struct queue_entry *entry);
void staging_close(struct lanes *lanes);

// issue.c: one thread enqueues every op of the list; only where a transfer, too, is no more than enqueued.
struct issue {
    struct lanes       *lanes;
    struct queue_entry *entries;    // [count], in list order
    int32_t             count;
    void               *begin;    // event before the first op
    void *ends[LANE_COUNT];       // event after the lane's last op; NULL: the lane has none, or is the compute lane
};
void issue_open(struct issue *issue, struct lanes *lanes, struct queue_entry *entries, int32_t count);
void issue_run(const struct issue *issue);
void issue_close(struct issue *issue);

// open.c opens and closes it, step.c runs it.
struct step {
    const struct plan   *plan;
    struct backend      *backend;
    struct comm         *comm;
    void                *storage[STORAGE_COUNT];    // NULL: nothing in it
    int64_t              storage_bytes[STORAGE_COUNT];
    bool                 is_lent[STORAGE_COUNT];    // by the communicator
    struct comm_group  **groups;              // [LANE_COUNT][plan->group_count], NULL: the lane does not use the group
    struct comm_choice  *chosen;              // [op_count], of those transfers that were made before the steps; or NULL
    int64_t              connection_bytes;    // of the device, that the communicator's library has taken
    struct queue_entry  *entries;             // [plan->op_count]
    struct queue_entry **queued;              // the same, lane by lane
    struct lanes         lanes;

    // Of a device only. One thread issues all ops, or each lane has its own; and events around the latest step.
    bool         is_issued, is_captured;
    struct issue issue;
    void        *begin, *end;
};

#endif

// SPDX-License-Identifier: MIT
// Declares the state of a step for the files of this folder: ops in stream queues, and two ways to run them
// (streams.c). Either each stream has a thread, or one thread issues all ops.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/step.h"

// A dependency of an op. If the host computes, the op waits until `stream` has completed its first `count` ops. On a
// device, it waits for `event`.
struct wait {
    int32_t stream, count;
    void   *event;    // NULL: the backend computes on the host
};

// An op with everything that can be resolved before the first step. Fields that every op reads fit in the first cache
// line, because the time to read this list limits the speed of a step that computes little.
struct queued_op {
    const struct op       *op;
    op_run                *run;         // function to call; NULL: a prepared op, or a communication op
    const struct prepared *prepared;    // algorithm that the backend chose; NULL: none to choose
    struct comm_group     *group;       // communicator; NULL: a compute op
    atomic_int            *shown;       // receives `number` when the op starts, for the watchdog
    void                  *event;       // recorded on the device after the op, if another stream waits for it
    int32_t                number;      // index of the op in the plan, plus 1
    // The row count that sizes the op, known only in the step; for an op that reads row counts, the first of them.
    // NULL: the op has a fixed size.
    const struct row_count *row_count;
    int16_t                 wait_count;
    bool                    is_awaited;    // another stream waits for the op, so its completion is published
    struct wait             waits[OP_WAITS];
    struct buffer           buffers[OP_OPERANDS];
};

// Host buffers for a stream's communication ops, if the communicator cannot access device memory.
struct staging {
    void *data[2];    // [COMMUNICATION_IN, COMMUNICATION_OUT]; NULL: unused
};

// Fingerprint of the ops that a stream executed, in order. It detects skipped and repeated ops.
struct fingerprint {
    int32_t  count;    // of ops
    uint64_t print;    // hash of their numbers
};

// One stream: its ops in the order of the plan, and its progress in the current step.
struct queue {
    struct streams    *streams;
    struct queued_op **ops;    // [count]
    int32_t            count;
    struct staging     staging;
    pthread_t          thread;
    pthread_mutex_t    mutex;
    pthread_cond_t     progressed;        // `completed` has grown
    atomic_int         sleepers;          // threads that wait for `progressed`
    atomic_int         completed;         // number of ops of this step that other streams may see as completed
    struct fingerprint fingerprint;       // fingerprint of this step
    struct fingerprint captured;          // fingerprint of the captured step, which is valid for its replays
    double             waited_seconds;    // stalls on other streams in this step
};

// Hooks around each op of a run, on the thread that runs the op; NULL: none. Observers nest in the order of enum
// observer_place: the hooks of the first observer run first before an op, and last after it.
struct op_hooks {
    void (*before_step)(struct step *step, void *state);
    void (*before_waits)(struct streams *streams, const struct queued_op *queued, void *state);
    // Called after the op's waits. false: skips the op, its own `after`, and `before` and `after` of later observers.
    bool (*before)(struct streams *streams, const struct queued_op *queued, void *state);
    void (*after)(struct streams *streams, const struct queued_op *queued, void *state);
    // Called after the op and after the record of its event, for which other streams wait.
    void (*after_event)(struct streams *streams, const struct queued_op *queued, void *state);
    void (*after_step)(struct step *step, void *state);
    bool allows_replay;    // permits a graph replay, which calls no hooks around ops
};
enum observer_place { OBSERVER_CHECK, OBSERVER_WATCH, OBSERVER_TRACE, OBSERVER_SKIP, OBSERVER_TEST, OBSERVER_FAULT };
enum { OBSERVER_COUNT = OBSERVER_FAULT + 1 };
struct op_observer {
    const struct op_hooks *hooks;    // NULL: no observer
    void                  *state;
};

// All streams of a rank.
struct streams {
    struct queue                  queues[STREAM_COUNT];
    struct backend               *backend;
    const struct backend_streams *device_streams;    // NULL: none
    const struct comm_ops        *comm_ops;
    struct row_counts            *row_counts;    // NULL: no row counts are read in the step
    struct step_progress         *progress;      // points to `unseen` if no watchdog reads it
    struct step_progress          unseen;
    struct op_observer            observers[OBSERVER_COUNT];
    int                           observer_count;    // observers with hooks
    struct op_time               *carried;           // [ops]: receives times of ops staged in host memory; NULL: off
    struct stalls                *stalls;            // stall timers of the device's compute stream; NULL: off
    int                           rank, threads;     // threads: number of started threads
    pthread_mutex_t               mutex;
    pthread_cond_t                changed;            // steps, running or is_closing has changed
    int                           running;            // number of threads that are still in the step
    int64_t                       steps;              // number of steps started so far
    double                        compute_seconds;    // of the latest step, if the backend computes on the host
    bool                          is_closing;
};

// observers_set sets the observer of this `place`; hooks = NULL removes it.
// observers_allow_replay returns whether all observers permit a graph replay, which calls no hooks around ops.
void observers_set(struct streams *streams, enum observer_place place, const struct op_hooks *hooks, void *state);
bool observers_allow_replay(const struct streams *streams);

// streams_run runs a step: the compute ops on the caller's thread, and every other stream that has ops on a thread of
// its own. The caller fills the struct before streams_open.
void streams_open(struct streams *streams);
void streams_run(struct streams *streams);
void streams_close(struct streams *streams);

// queued_op_run runs one op, or enqueues it with its events. Its dependencies must have run or be enqueued.
// queued_op_communication ignores dependencies, and queued_op_run_alone waits until the op has ended.
void queued_op_run(struct streams *streams, const struct queued_op *queued);
void queued_op_communication(struct streams *streams, const struct queued_op *queued);
void queued_op_run_alone(struct step *step, const struct queued_op *queued);

// Resets the fingerprint of every stream. For a graph replay, sets it to the fingerprint of the captured step.
void fingerprints_begin(struct streams *streams, bool is_replay);

// Waits for a device stream. If the host computes, its ops have already ended.
static inline void streams_synchronize(const struct streams *streams, int stream)
{
    if (streams->device_streams != NULL) {
        streams->device_streams->synchronize(streams->backend, stream);
    }
}

// Copies device buffers through host memory for communicators that need it (staging.c).
void staging_open(struct streams *streams);
void staging_run(struct streams *streams, const struct queued_op *queued);
void staging_close(struct streams *streams);

// State of the mode in which one thread enqueues every op on the device (streams.c). The communicator must enqueue its
// ops as well, as NCCL does, instead of running them on the calling thread.
struct issue {
    void *begin;                 // event before the first op
    void *ends[STREAM_COUNT];    // event after the stream's last op; NULL: no ops, or compute stream
};
void issue_open(struct step *step);
void issue_run(struct step *step);
void issue_close(struct step *step);

// State of the check of each op's output for NaN and infinity (check.c).
struct check {
    const struct plan   *plan;
    int64_t              step;       // index of the current step
    struct step_finding *finding;    // where to record the first finding; NULL: end the job
};

void check_set(struct step *step, struct check *check);    // replaces the current check; NULL: no check

// Searches elements [first, end) for one that differs from `expected`, or for a NaN or an infinity if `expected` is
// NaN.
bool finding_search(struct step_finding *finding, struct backend *backend, const struct buffer *buffer, int64_t first,
                    int64_t end, float expected);
// Stores the finding in `first`, unless `first` has a finding of an earlier op. Streams may call it concurrently.
void finding_note(struct step_finding *first, const struct step_finding *finding);

// State of the fault that [fault] injects (fault.c).
struct injection {
    const struct step_fault *fault;     // NULL: none
    const struct queued_op  *faulty;    // op at which the fault occurs; NULL: none
    double                   began;     // start of the latest compute op
};
bool fault_before(struct streams *streams, const struct queued_op *queued, void *injection);
void fault_after(struct streams *streams, const struct queued_op *queued, void *injection);

struct step {
    const struct plan  *plan;
    struct backend     *backend;
    struct comm        *comm;
    void               *storage[STORAGE_COUNT];    // NULL: empty
    int64_t             storage_bytes[STORAGE_COUNT];
    bool                is_lent[STORAGE_COUNT];    // allocated by the communicator
    struct comm_group **groups;                    // [STREAM_COUNT][plan->group_count]; NULL: unused by the stream
    struct comm_choice *chosen;                    // [op_count]: NCCL's algorithm for each distinct op; NULL: unknown
    int64_t             connection_bytes;          // device memory that the communication library took
    struct queued_op   *ops;                       // [plan->op_count]
    struct queued_op  **by_stream;                 // the same ops, sorted by stream
    struct streams      streams;
    struct check       *check;    // for the option run.check; NULL: outputs are not checked
    struct trace       *trace;    // NULL: off
    struct injection    injection;
    struct step_watch   watch;

    // The following fields are used on a device only. is_issued: one thread issues all ops. begin and end: events
    // around the latest step.
    bool         is_issued, is_captured;
    struct issue issue;
    void        *begin, *end;
};

// Opens the step's communicators (groups.c). If they enqueue ops on a device, as NCCL does, also runs each distinct
// communication op once. Collective.
void groups_open(struct step *step);
void groups_close(struct step *step);

// Registers storages that the communicator allocated, and runs each distinct communication op again in them. With
// registered memory a library may choose other algorithms, which need other connections. Collective.
void groups_share(struct step *step);

// Marks the first communication op of each kind, size, format, peer and channel per group and stream. All members of a
// group choose the same ops. is_chosen: [op_count]. Returns the number of chosen ops.
int64_t distinct_choose(const struct plan *plan, bool *is_chosen);

// Returns the input of a member in the isolated test of a communication op: 1, 2 or 3; in sums over large groups, 0 or
// 1. So each sum is an integer from 1 to 256, which is exact in bf16.
int isolated_value(const struct op *op, const struct plan_group *group, int64_t member);

// Allocate, free and clear the step's memory (storage.c). budget_check fails on all ranks (EXIT_MEMORY) if the plan
// does not fit on one of them. Collective.
void storages_open(struct step *step);
void storages_close(struct step *step);
void storages_clear(struct step *step);
struct budget_extra {
    int64_t scratch;        // bytes that the backend reserves
    int64_t connections;    // bytes that the communication library has taken, for the error message
};
status budget_check(const struct plan *plan, struct backend *backend, struct comm *comm,
                    const struct budget_extra *extra);

// State of the row counts that are known only in the step: the numbers of tokens of experts (row_counts.c). NULL: the
// plan has no such row counts.
struct row_counts *row_counts_open(const struct plan *plan, struct backend *backend);
void               row_counts_close(struct row_counts *row_counts);
// Forgets the counts until a step reads them again.
void row_counts_forget(struct row_counts *row_counts);

// Returns the row count that sizes the op, or the first one that it reads; NULL: none.
const struct row_count *row_counts_of(const struct plan *plan, const struct op *op);

// Copies the row counts from the device to the host, and waits for them.
void row_counts_read(const struct streams *streams, const struct queued_op *queued);

// row_counts_apply resizes the queued op to the row count that the step has read. It returns false if the op has a
// fixed size or no count has been read yet; all ranks then run the planned size.
struct known_rows {
    struct queued_op           queued;    // copy of the queued op with the actual rows; queued.op points to `op`
    struct op                  op;
    struct communication_parts parts;    // op.shape.communication.parts points to it
    int64_t                    rows;
};
bool row_counts_apply(const struct streams *streams, const struct queued_op *queued, struct known_rows *now);

// Zeroes the weight gradient of an expert that received no rows.
void row_counts_clear(const struct streams *streams, const struct known_rows *now);

// Shifts the addresses of operands whose start depends on row counts to the worst alignment that they can have in a
// step, so that the backend chooses kernels that also run with that alignment.
void row_counts_align(const struct plan *plan, const struct op *op, struct buffer buffers[OP_OPERANDS]);

// The stalls functions measure how long a device's compute stream waits for other streams (trace.c). The compute time
// of a step excludes these waits. stalls_begin and stalls_end enclose the waits of an op. stalls_mark_end marks the end
// of the compute time, after the last compute op and before the streams join. Without timers they do nothing.
void stalls_close(const struct streams *streams, struct stalls *stalls);
void stalls_begin(const struct streams *streams, const struct queued_op *queued);
void stalls_end(const struct streams *streams, const struct queued_op *queued);
void stalls_mark_end(const struct streams *streams);

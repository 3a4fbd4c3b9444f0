// SPDX-License-Identifier: MIT
// Replays a plan: owns its memory, runs every lane as a queue.
#ifndef GSWBENCH_STEP_H
#define GSWBENCH_STEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/fault_config.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"

struct step;

// Lets the backend decide what a step must not decide. Before step_open, on every rank.
status step_prepare(const struct plan *plan, struct backend *backend);

// Calls visit for each op that computes, with operands as step_prepare knows them: aligned as they will be, and
// nowhere. Ends with the first error.
typedef status step_visit(void *context, const struct op *op, const struct buffer buffers[OP_OPERANDS]);
status         step_visit_ops(const struct plan *plan, step_visit *visit, void *context);

// Allocates every storage once and resolves the operands of every op. Fails (EXIT_MEMORY, with the accounting) when the
// plan does not fit, or (EXIT_CONFIG) when the backend lacks an op. plan, backend and comm outlive the step.
status step_open(struct step **step, const struct plan *plan, struct backend *backend, struct comm *comm);
void   step_close(struct step *step);

// Runs the whole list once. Blocks until every lane is done.
void step_run(struct step *step);

// Whether the whole step can be captured: the backend has streams and no transfer needs the host. The caller's thread
// then issues all ops, in the order of the list; else each lane has a thread, that of compute the caller's. Capturing,
// after a step that has run and on every rank, makes all later runs replay it with one call. Where it fails, steps are
// issued op by op as before; so they are again after step_forget, which may follow a capture on another rank that
// failed.
bool   step_can_capture(const struct step *step);
status step_capture(struct step *step);
void   step_forget(struct step *step);

// Until it is called with NULL, every run leaves the time of each op in times[op_count], and a captured step is issued
// op by op. A traced step is slower than others.
void step_trace(struct step *step, struct op_time *times);
// The same by what the device notes down of its own work, which is nearer to the truth: fails (EXIT_LAUNCH), with
// nothing traced, where there are no such notes. Times are there when they are read, of the latest run; lost: so many
// notes were.
status step_trace_noted(struct step *step, struct op_time *times);
status step_read_noted(const struct step *step, int64_t *lost);

// Who is told of each op that a run or a capture issues, before and after, on the thread that issues it. A replay
// issues none. NULL: nobody; until it is called with NULL, the watch has to live.
struct step_watch {
    void (*begin)(const void *state, const struct op *op);
    void (*end)(const void *state, const struct op *op);
    const void *state;
};
void step_set_watch(struct step *step, const struct step_watch *watch);

// How far each lane is, for others to see: the op of the list that it began last, + 1, and 0 before the first; and
// whether that is a transfer which has begun to move something. A captured step shows nothing. NULL: nobody looks.
struct step_progress {
    atomic_int op[LANE_COUNT], moves[LANE_COUNT];
};
void step_set_progress(struct step *step, struct step_progress *progress);

// From the first step on, each op is waited for, and the first one that writes a NaN or an infinity ends the job
// (EXIT_NUMBER) with its name. Such a step is not captured.
void step_check(struct step *step);

// Where the first number of a rank is that is none, or infinite.
struct step_finding {
    int32_t op;        // in the list; -1: in what the step began with
    int32_t tensor;    // -1: all numbers are finite
    int64_t element;
    float   value;
    bool    is_received;    // a transfer brought it, or the op had read one
};
// Whether weights or the optimizer's state hold one.
bool step_find_held(const struct step *step, struct step_finding *finding);
// Runs the step and looks at what each op writes. Called by all ranks.
void step_find_made(struct step *step, struct step_finding *finding);

// Runs the step's transfers, one of each kind and size on each group and lane, on whole numbers whose outcome is known,
// and nothing else; of what the step's memory holds nothing is kept. Returns how many were looked at. Called by all
// ranks.
int64_t step_examine_transfers(struct step *step, struct step_finding *finding);

// Runs an op that computes, alone, and waits for it.
void step_run_op(struct step *step, int32_t op);

// Runs a transfer, with nothing beside it, and returns its seconds; by the device's clock, where it has one. Called by
// all members of its group.
double step_time_transfer(struct step *step, int32_t op);

// One thing that goes wrong on purpose whenever the step runs, until it is called with NULL. The fault has to live
// until then.
struct step_fault {
    enum fault_kind kind;
    int32_t         op, tensor;    // op -1: before the step, and the element is one of the tensor
    int64_t         element, bit;
    double          amount;
};
void step_set_fault(struct step *step, const struct step_fault *fault);
// What [fault] asks for of the plan's rank; FAULT_NONE on others.
status step_find_fault(struct step_fault *fault, const struct plan *plan, const struct fault_config *config);

// A lane that has not executed its ops once each and in their order.
struct step_departure {
    int32_t lane, executed, planned;    // ops
};
// Whether all lanes have, in the latest run.
bool step_followed_plan(const struct step *step, struct step_departure *departure);

// Seconds of the latest run by the device's clock; NaN on a backend that has none.
double step_device_seconds(const struct step *step);

// Seconds of the latest run in which this rank's compute lane did not wait for other lanes; of a device only where
// step_time_pauses came before the first run, else NaN.
void   step_time_pauses(struct step *step);
double step_compute_seconds(const struct step *step);

// Makes the weights that are kept in FP8 from the initial masters, and scales that follow from weights, for
// data_initialise. Called by all ranks.
void step_make_weights(struct step *step);

// Under ZeRO-1, makes all weights whole and up to date. Between two steps, called by all ranks; it changes nothing for
// the next step.
void step_gather_weights(struct step *step);

// Device memory of one tensor.
struct buffer step_buffer(const struct step *step, int32_t tensor);

// Copies a whole tensor between host and device memory; bytes as the tensor stores them.
void step_read(const struct step *step, int32_t tensor, void *to);
void step_read_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, void *to);    // a part of it

// The tensor itself where the host can read and write it; NULL: it is in a device's memory.
void *step_host_memory(const struct step *step, int32_t tensor);
void  step_write(const struct step *step, int32_t tensor, const void *from);

// Bytes allocated for each storage: equal to the plan's, by test.
int64_t step_storage_bytes(const struct step *step, enum storage storage);

// Device memory that the communicator's library took for the step's connections; 0 where it takes none.
int64_t step_connection_bytes(const struct step *step);

// How the communicator's library makes a transfer, where it says so.
struct comm_choice step_chosen(const struct step *step, int32_t op);

#endif

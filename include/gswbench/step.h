// SPDX-License-Identifier: MIT
// Executes a plan: allocates its memory and runs its ops on streams.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/config.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"

struct step;

// Selects algorithms and kernels before step_open, so that steps make no choices. Called on every rank.
status step_prepare(const struct plan *plan, struct backend *backend);

// Calls visit for each compute op, and stops at the first error. buffers have the sizes and alignment of the real
// operands, but no memory.
typedef status step_visit(void *context, const struct op *op, const struct buffer buffers[OP_OPERANDS]);
status         step_visit_ops(const struct plan *plan, step_visit *visit, void *context);

// Allocates every storage and resolves the operands of every op. Fails with EXIT_MEMORY and a memory table when the
// plan does not fit, or with EXIT_CONFIG when the backend lacks an op. plan, backend and comm must outlive the step.
status step_open(struct step **step, const struct plan *plan, struct backend *backend, struct comm *comm);
void   step_close(struct step *step);

// Runs all ops of the plan once. Blocks until every stream is done.
void step_run(struct step *step);

// Capture as a CUDA graph. If the backend has device streams and no communication op is staged through the host, the
// calling thread issues all ops in list order; otherwise each stream has its thread, and compute runs on the caller's.
// step_can_capture is true if one thread issues all ops, no check is on, and no row count is read in the step.
//
// Call step_capture on every rank, after a step has run; later runs replay the graph with one launch. After a failed
// capture, ops are issued one by one as before. step_forget returns to that mode too, when capture fails on another
// rank.
bool   step_can_capture(const struct step *step);
status step_capture(struct step *step);
void   step_forget(struct step *step);

// Every run writes the time of each op to times[op_count], until called with NULL. A captured step is then issued op by
// op. Tracing slows the step.
void step_trace(struct step *step, struct op_time *times);
// Like step_trace, with the device's activity records (CUPTI), which are more accurate than events. Fails with
// EXIT_LAUNCH, and traces nothing, without them. step_read_noted fills times for the latest run; lost counts dropped
// records.
status step_trace_noted(struct step *step, struct op_time *times);
status step_read_noted(const struct step *step, int64_t *lost);

// Callbacks before and after each op that a run or a capture issues, on the issuing thread. A graph replay issues no
// ops. NULL: none.
struct step_watch {
    void (*begin)(const void *state, const struct op *op);
    void (*end)(const void *state, const struct op *op);
    const void *state;
};
void step_set_watch(struct step *step, const struct step_watch *watch);

// Progress of each stream, for a watchdog. op: list index of the last started op, plus 1; 0 before the first. moves: 1
// while a communication op executes. A graph replay does not update them. NULL turns reporting off.
struct step_progress {
    atomic_int op[STREAM_COUNT], moves[STREAM_COUNT];
};
void step_set_progress(struct step *step, struct step_progress *progress);

// From the first step on, waits for each op and ends the job (EXIT_NUMBER) at the first op that writes a NaN or an
// infinity, with its name. Such a step cannot be captured.
void step_check(struct step *step);

// The first NaN or infinity on a rank.
struct step_finding {
    int32_t op;        // list index; -1: it was in the weights or optimizer state
    int32_t tensor;    // -1: all numbers are finite
    int64_t element;
    float   value;
    bool    is_received;    // it came from a collective or receive, or from an input of the op
};
// Searches weights and optimizer state. Returns whether it found one.
bool step_find_held(const struct step *step, struct step_finding *finding);
// Runs a step and searches the output of each op. Called by all ranks.
void step_find_made(struct step *step, struct step_finding *finding);

// Runs the step's communication ops alone, and checks one of each kind and size per group and stream. Inputs are small
// integers with known results. Clears the step's memory. Returns the number of checked ops. Called by all ranks.
int64_t step_test_communications(struct step *step, struct step_finding *finding);

// Runs one compute op alone and waits for it.
void step_run_op(struct step *step, int32_t op);

// Runs one communication op alone and returns its seconds, on the device's clock if there is one. Called by all members
// of its group.
double step_time_communication(struct step *step, int32_t op);

// A fault to inject in every run, until step_set_fault is called with NULL. The struct must stay valid until then.
struct step_fault {
    enum fault_kind kind;
    int32_t         op, tensor;    // op -1: corrupt an element of the tensor before the step
    int64_t         element, bit;
    double          amount;
};
void step_set_fault(struct step *step, const struct step_fault *fault);
// The fault that [fault] configures for the plan's rank; FAULT_NONE on other ranks.
status step_find_fault(struct step_fault *fault, const struct plan *plan, const struct fault_config *config);

// A stream that did not execute each of its ops once, in order.
struct step_departure {
    int32_t stream, executed, planned;    // numbers of ops
};
// Returns whether every stream executed its ops in order in the latest run.
bool step_followed_plan(const struct step *step, struct step_departure *departure);

// Seconds of the latest run on the device's clock; NaN on a backend without device streams.
double step_device_seconds(const struct step *step);

// Seconds of the latest run without the compute stream's stalls on other streams. On a device, call step_time_stalls
// before the first run; otherwise it returns NaN.
void   step_time_stalls(struct step *step);
double step_compute_seconds(const struct step *step);

// Runs the ops that make weights from master weights and scales from weights, which the first step needs. Call it after
// a checkpoint is loaded; data_initialise calls it itself. Called by all ranks.
void step_make_weights(struct step *step);

// All-gathers the updated weights after a step, if the plan has a weight gather stream (ZeRO-1), to compare replicas.
// The next step gathers them again, so it is not affected. Called by all ranks.
void step_gather_weights(struct step *step);

// Device memory of a tensor, or host memory on a backend without a device.
struct buffer step_buffer(const struct step *step, int32_t tensor);

// step_read and step_read_run copy a tensor, or part of it, to host memory in its stored format. step_write copies a
// whole tensor from host memory.
void step_read(const struct step *step, int32_t tensor, void *to);
void step_read_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, void *to);

// Host address of the tensor; NULL if it is in device memory.
void *step_host_memory(const struct step *step, int32_t tensor);
void  step_write(const struct step *step, int32_t tensor, const void *from);

// Bytes allocated for each storage. A test compares them with the plan.
int64_t step_storage_bytes(const struct step *step, enum storage storage);

// Device memory that the communication library took for the step's connections; 0 if none.
int64_t step_connection_bytes(const struct step *step);

// Algorithm and protocol that the communication library chose for an op, if it reports them.
struct comm_choice step_chosen(const struct step *step, int32_t op);

// Operations that src/validate needs between steps: run a step without the optimizer, run ops on other buffers, and
// compute digests of tensors.

// Whether a tensor holds weights, master weights or moments, which only the optimizer changes.
bool step_is_model_state(const struct plan *plan, int32_t tensor);
// Whether an op writes such tensors in the optimizer phase: AdamW, Muon, and ops that convert or gather their output.
bool step_op_updates(const struct plan *plan, int32_t op);

// Runs the step without these ops, and never as a graph replay. Called by all ranks.
void step_rehearse(struct step *step);
// Repeats the ops that convert or gather the optimizer's output; they write the same bits. Called by all ranks.
void step_remake_weights(struct step *step);

// Whether an op may produce different bits on the same operands. is_mixed: one run is issued, the other is a graph
// replay.
bool step_op_varies(const struct step *step, int32_t op, bool is_mixed);
bool step_is_captured(const struct step *step);

// Runs one compute op on the caller's buffers and waits for it.
void step_run_elsewhere(struct step *step, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

void step_digest(const struct step *step, int32_t tensor, struct digest *digest);
void step_digest_buffer(const struct step *step, const struct buffer *buffer, struct digest *digest);

// Copies between host and device memory, in any direction.
void step_copy(const struct step *step, void *to, const void *from, int64_t bytes);
void step_write_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, const void *from);

// Memory of a whole storage. Activations are unused between steps.
struct buffer step_storage(const struct step *step, enum storage storage);

// Zeroed host memory, pinned if the backend has a device.
void *step_allocate_host(const struct step *step, int64_t bytes);
void  step_release_host(const struct step *step, void *data);

// data.c: synthetic tokens and initial weights. They depend on (seed, stream, index) alone, where a stream is a
// sequence of random numbers (random.h), so the parallel layout does not matter.

struct data_source {
    enum data_kind kind;
    uint64_t       seed;
    int64_t        vocab, sequence;
};

// The sequence + 1 tokens of a sample, numbered over the run: step * global_batch + position in the batch.
void data_sample(const struct data_source *source, int64_t sample, int32_t *tokens);

// Fills the plan's token and target tensors for a step (0-based), and its hyperparameters.
void data_fill(struct step *step, const struct plan *plan, enum data_kind kind, uint64_t seed, int64_t step_index);

// Initial values of elements first .. first + count - 1 of a weight part, row-major in the full tensor.
void data_weight_values(const struct weight_part *part, uint64_t seed, int64_t first, int64_t count, float *values);

// Initializes weights, masters, moments and the RoPE table before the first step. Collective, since a group may agree
// on the scales of stored weights.
void data_initialise(struct step *step, const struct plan *plan, uint64_t seed);

// Draws the adapters of a frozen model, before a checkpoint without adapters is loaded.
void data_initialise_adapters(struct step *step, const struct plan *plan, uint64_t seed);

// Initializes the state other than weights and moments: FP8 scales, router biases, RoPE table and positions. A
// checkpoint is loaded afterwards, and replaces the part that it contains.
void data_initialise_state(struct step *step, const struct plan *plan);

// stored.c: stores frozen weights in FP8 or FP4. read fills [rows, columns] of a weight with its values on this rank.
struct weight_reader {
    status (*read)(void *context, const struct weight *weight, float *values);
    void *context;
};
status data_store_unit(struct step *step, const struct plan *plan, const struct plan_unit *unit,
                       const struct weight_reader *reader);
// The values of the codes of this rank's shard of a unit.
void data_read_stored(const struct step *step, const struct plan *plan, const struct plan_unit *unit, float *values);

// SPDX-License-Identifier: MIT
// Declares the execution of a plan: allocates its memory and runs its ops on streams.
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

// Selects algorithms and kernels before step_open, so that steps make no choices. Call it on every rank.
status step_prepare(const struct plan *plan, struct backend *backend);

// Calls `visit` for each compute op, and stops at the first error. buffers have the sizes and alignment of the real
// operands, but no memory.
typedef status step_visit(void *context, const struct op *op, const struct buffer buffers[OP_OPERANDS]);
status         step_visit_ops(const struct plan *plan, step_visit *visit, void *context);

// Allocates all memory of the plan and resolves the operands of every op. Fails with EXIT_MEMORY and a memory table if
// the plan does not fit, or with EXIT_CONFIG if the backend lacks an op. plan, backend and comm must outlive the step.
status step_open(struct step **step, const struct plan *plan, struct backend *backend, struct comm *comm);
void   step_close(struct step *step);

// Runs all ops of the plan once. Blocks until every stream is done.
void step_run(struct step *step);

// A step can be captured as a CUDA graph. If the backend has device streams and no communication op is staged through
// the host, the calling thread issues all ops in the order of the plan. Otherwise each stream has its thread, and
// compute runs on the calling thread. step_can_capture is true if one thread issues all ops, no check is on, and no row
// count is read in the step.
//
// Call step_capture on every rank, after a step has run; later runs replay the graph with one launch. After a failed
// capture, ops are issued one by one as before. step_forget returns to that mode too; use it if capture fails on
// another rank.
bool   step_can_capture(const struct step *step);
status step_capture(struct step *step);
void   step_forget(struct step *step);

// After this call every run writes the time of each op to times[op_count], until it is called with NULL. A captured
// step is then issued op by op. Tracing slows the step.
void step_trace(struct step *step, struct op_time *times);
// step_trace_noted is like step_trace, but uses the device's activity records (CUPTI), which are more accurate than
// events. Without CUPTI it fails with EXIT_LAUNCH and traces nothing. step_read_noted fills `times` for the latest run;
// lost counts dropped records.
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

// Progress of each stream, for a watchdog. op: index in the plan of the last started op, plus 1; 0 before the first.
// moves: 1 while a communication op executes. A graph replay does not update them. NULL turns reporting off.
struct step_progress {
    atomic_int op[STREAM_COUNT], moves[STREAM_COUNT];
};
void step_set_progress(struct step *step, struct step_progress *progress);

// Checks every step from now on: waits for each op except NCCL collectives, and ends the job (EXIT_NUMBER) at the first
// op that writes a NaN or an infinity, with its name. Such a step cannot be captured.
void step_check(struct step *step);

// The first NaN or infinity on a rank.
struct step_finding {
    int32_t op;        // index in the plan of the op that wrote the value; -1: in weights or optimizer state
    int32_t tensor;    // -1: all numbers are finite
    int64_t element;
    float   value;
    bool    is_received;    // the op received the value in a collective or receive, or read it from an input
};
// Searches weights and optimizer state for a NaN or an infinity. Returns whether it found one.
bool step_find_held(const struct step *step, struct step_finding *finding);
// Runs a step and searches the output of each op for a NaN or an infinity. All ranks call it.
void step_find_made(struct step *step, struct step_finding *finding);

// Runs the step's communication ops without its compute ops, and checks one of each kind and size per group and stream.
// Inputs are small integers with known results. Clears the step's memory. Returns the number of checked ops. All ranks
// call it.
int64_t step_test_communications(struct step *step, struct step_finding *finding);

// Runs one compute op alone and waits for it.
void step_run_op(struct step *step, int32_t op);

// Runs one communication op alone and returns its seconds, on the device's clock if there is one. All members of its
// group call it.
double step_time_communication(struct step *step, int32_t op);

// A fault to inject in every run, until step_set_fault is called with NULL. The struct must stay valid until then.
struct step_fault {
    enum fault_kind kind;
    int32_t         op, tensor;    // op -1: corrupt an element of the tensor before the step
    int64_t         element, bit;
    double          amount;
};
void step_set_fault(struct step *step, const struct step_fault *fault);
// Finds the fault that [fault] configures for the plan's rank; FAULT_NONE on other ranks.
status step_find_fault(struct step_fault *fault, const struct plan *plan, const struct fault_config *config);

// A stream that did not execute each of its ops once, in order.
struct step_departure {
    int32_t stream, executed, planned;    // numbers of ops that the stream executed, and has in the plan
};
// Returns whether every stream executed its ops in order in the latest run.
bool step_followed_plan(const struct step *step, struct step_departure *departure);

// Returns the seconds of the latest run on the device's clock; NaN on a backend without device streams.
double step_device_seconds(const struct step *step);

// step_compute_seconds returns the seconds of the latest run without the compute stream's stalls on other streams. On a
// device, call step_time_stalls before the first run; otherwise the result is NaN.
void   step_time_stalls(struct step *step);
double step_compute_seconds(const struct step *step);

// Runs the ops that compute weights from master weights, and scales from weights, because the first step reads both.
// Call it after a checkpoint is loaded; data_initialise calls it itself. All ranks call it.
void step_make_weights(struct step *step);

// All-gathers the updated weights after a step, if the plan has a weight gather stream (ZeRO-1), to compare replicas.
// The next step gathers them again, so it is not affected. All ranks call it.
void step_gather_weights(struct step *step);

// Returns the memory of a tensor: device memory, or host memory on a backend without a device.
struct buffer step_buffer(const struct step *step, int32_t tensor);

// step_read and step_read_run copy a tensor, or part of it, to host memory in its stored format. step_write copies a
// whole tensor from host memory.
void step_read(const struct step *step, int32_t tensor, void *to);
void step_read_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, void *to);

// Returns the host address of the tensor, or NULL if it is in device memory.
void *step_host_memory(const struct step *step, int32_t tensor);
void  step_write(const struct step *step, int32_t tensor, const void *from);

// Returns the bytes of device memory that the communication library took for the step's connections; 0 if none.
int64_t step_connection_bytes(const struct step *step);

// Returns the algorithm and protocol that the communication library chose for an op, if it reports them.
struct comm_choice step_chosen(const struct step *step, int32_t op);

// The validation of results (src/validate) uses the following functions between steps. They run a step without the
// optimizer, run ops on other buffers, and compute digests of tensors.

// Returns whether a tensor holds weights, master weights or moments, which only the optimizer changes.
bool step_is_model_state(const struct plan *plan, int32_t tensor);
// Returns whether an op writes weights, master weights or moments in the optimizer phase: AdamW, Muon, and ops that
// convert or gather their output.
bool step_op_updates(const struct plan *plan, int32_t op);

// Runs the step without the ops for which step_op_updates is true, and never as a graph replay. All ranks call it.
void step_rehearse(struct step *step);
// Repeats the ops that convert or gather the optimizer's output; they write the same bits. All ranks call it.
void step_remake_weights(struct step *step);

// Returns whether an op may produce different bits from the same operands in two runs. is_mixed: one run issues the op
// itself, the other replays a graph.
bool step_op_varies(const struct step *step, int32_t op, bool is_mixed);
bool step_is_captured(const struct step *step);

// Runs one compute op on the caller's buffers and waits for it.
void step_run_elsewhere(struct step *step, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

void step_digest(const struct step *step, int32_t tensor, struct digest *digest);
void step_digest_buffer(const struct step *step, const struct buffer *buffer, struct digest *digest);

// step_copy copies between host and device memory, in any direction. step_write_run copies host memory to a part of a
// tensor.
void step_copy(const struct step *step, void *to, const void *from, int64_t bytes);
void step_write_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, const void *from);

// Returns the memory of a whole storage; an element is a byte. The memory of activations is unused between steps.
struct buffer step_storage(const struct step *step, enum storage storage);

// Allocate and free zeroed host memory, which is pinned if the backend has a device.
void *step_allocate_host(const struct step *step, int64_t bytes);
void  step_release_host(const struct step *step, void *data);

// The following functions (data.c) generate synthetic tokens and initial weights. A value depends only on (seed,
// stream, index), where a stream is a sequence of random numbers (random.h). So it does not depend on the parallel
// layout.

struct data_source {
    enum data_kind kind;
    uint64_t       seed;
    int64_t        vocab, sequence;
};

// Generates the sequence + 1 tokens of a sample. Samples are numbered over the run: step * global_batch + position in
// the batch.
void data_sample(const struct data_source *source, int64_t sample, int32_t *tokens);

// Fills the plan's token and target tensors for a step (0-based), and its hyperparameters.
void data_fill(struct step *step, const struct plan *plan, enum data_kind kind, uint64_t seed, int64_t step_index);

// Computes initial values of elements first .. first + count - 1 of a weight part, row-major in the full tensor.
void data_weight_values(const struct weight_part *part, uint64_t seed, int64_t first, int64_t count, float *values);

// Initializes weights, masters, moments and the RoPE table before the first step. Collective, since a group may agree
// on the scales of stored weights.
void data_initialise(struct step *step, const struct plan *plan, uint64_t seed);

// Draws the adapters of a frozen model, before a checkpoint without adapters is loaded.
void data_initialise_adapters(struct step *step, const struct plan *plan, uint64_t seed);

// Initializes all state except weights and moments: FP8 scales, router biases, RoPE table and positions. A checkpoint
// is loaded afterwards, and replaces the part that it contains.
void data_initialise_state(struct step *step, const struct plan *plan);

// Quantizes the frozen weights of an FSDP unit to FP8 or FP4 and stores them (stored.c). read: fills [rows, columns] of
// a weight with its values on this rank.
struct weight_reader {
    status (*read)(void *context, const struct weight *weight, float *values);
    void *context;
};
status data_store_unit(struct step *step, const struct plan *plan, const struct plan_unit *unit,
                       const struct weight_reader *reader);
// Converts this rank's shard of a unit with stored FP8 or FP4 weights back to floats.
void data_read_stored(const struct step *step, const struct plan *plan, const struct plan_unit *unit, float *values);

// SPDX-License-Identifier: MIT
// Declares the functions that the files of src/predict share: cost model, pipeline simulation and layout sweep.
#pragma once

#include "gswbench/job.h"
#include "gswbench/measured.h"
#include "gswbench/predict.h"
#include "gswbench/schedule.h"
#include "gswbench/sweep.h"

// The input of explain_pipeline (explain.c), which fills the waterfall (step time by cause) of the explanation and
// calls explanation->visit for the first rank of every pipeline stage.
struct explained {
    const struct machine          *machine;
    const struct predict_pipeline *pipeline;
    const struct actor_time       *times;    // one per stage, with the times of every task
};
void explain_pipeline(struct predict_explanation *explanation, const struct prediction *prediction,
                      const struct explained *explained);

// Functions of cost.c. predict_memory_seconds returns the time of a memory-bound kernel that reads and writes these
// bytes. predict_sustained_clock returns the clock under the power limit divided by the clock without one.
// predict_sustained_peak returns the peak FLOP/s of the format at this clock.
double predict_memory_seconds(const struct hardware_config *hardware, double bytes);
double predict_sustained_clock(const struct hardware_config *hardware);
double predict_sustained_peak(const struct hardware_config *hardware, const struct format_row *format);

// Returns the seconds of a forward or backward attention op (cost_attention.c).
double predict_attention_seconds(const struct machine *machine, const struct plan *plan, const struct op *op);

// Topology of the group of a communication op (cost_communication.c).
struct span {
    double members, nodes;
    // factors on the bytes that an all-to-all sends within and between nodes; both are 1 if is_once is false
    double inside, outside;
    // share of the start latency that the op pays: 1 / n if it is one of n parts of an all-to-all, else 1
    double start_share;
    double node, network;    // bytes/s of a rank within and between nodes; lower if the op has few SMs
    int    processors;       // SMs of the op; 0: copy engines move the data, or ranks run on CPUs
    bool   is_limited;       // the op has fewer SMs than NCCL would use
    bool   is_once;          // as in DeepEP, an all-to-all sends a token once per rank, not once per chosen expert
};

// Returns the start latency of a collective in this group (cost_nccl.c).
double predict_collective_start(const struct hardware_config *hardware, const struct span *span);

// Returns the seconds of a collective within a node, interpolated from measurements on this GPU model
// (cost_collectives.c); 0: not measured.
double predict_collective_seconds(const struct machine *machine, const struct span *span, const struct op *op,
                                  double bytes);

// NCCL's tuning model (cost_nccl.c). predict_gather_seconds returns the time of an all-gather or reduce-scatter,
// predict_sum_seconds the time of an all-reduce. predict_ring_protocol returns the index of the protocol (Simple,
// LL128, LL) that NCCL chooses for a ring. passes: 1 for all-gather and reduce-scatter, 2 for all-reduce.
double predict_gather_seconds(const struct machine *machine, const struct span *span, double bytes);
int    predict_ring_protocol(const struct hardware_config *hardware, double members, double passes, double bytes);
double predict_sum_seconds(const struct machine *machine, const struct span *span, double bytes);

// The following functions describe how the framework of [software], such as Megatron, differs from gswbench
// (cost_software.c). predict_software_has: the framework has the result of the op already, so the op costs nothing.
bool predict_software_has(const struct machine *machine, const struct plan *plan, const struct op *op);
// Returns the time of the op in the framework. seconds: its time in gswbench.
double predict_software_seconds(const struct machine *machine, const struct plan *plan, const struct op *op,
                                double seconds);
// Returns the bytes of a communication op in the framework, divided by its bytes in gswbench.
double predict_software_bytes(const struct software_config *software, const struct plan *plan, const struct op *op);
// Returns whether the op is a GEMM of the output layer that runs in FP8.
bool predict_is_low_precision_head(const struct software_config *software, const struct plan *plan,
                                   const struct op *op);
// Returns the number of GEMMs that the framework runs for this one, such as 3 for separate Q, K and V. Several GEMMs
// are written to `gemm`, which may be NULL.
int predict_software_gemms(const struct software_config *software, const struct plan *plan, const struct op *op,
                           struct op gemm[3]);
// With tp_overlap gswbench has one GEMM for the rows of each tp rank. Returns the GEMM of the framework instead, which
// may compute the rows of several ranks.
struct op predict_software_blocks(const struct software_config *software, const struct plan *plan, const struct op *op);
// Returns the number of experts that one launch of this op computes in the framework; 1: one launch per expert.
double predict_group(const struct software_config *software, const struct plan *plan, const struct op *op);
// Sets the host time that the framework needs to launch the op.
void predict_cost_launch(struct cost *cost, const struct machine *machine, const struct plan *plan,
                         const struct op *op);

// Returns the number of microbatches of the shortest plan in which a pipeline stage holds as many activations as in the
// whole step (sweep_bound.c). A stage holds at most pp microbatches with 1F1B, 2 pp with interleaving, and 2 pp + 1
// with overlap_microbatches. The plan has two more: one in the steady state, and the last one. With interleaving,
// microbatches run in groups of pp, and the last group is as large as in the whole step. On the last stage (is_last),
// the head keeps its input of deferred_head_gradients microbatches, so the plan has these, too.
int64_t sweep_enough_microbatches(const struct plan_request *request, bool is_last);

// Times in a forward or backward pass of one microbatch through one model chunk, in seconds. before: from the start of
// the pass until it needs its input. through: from the input until the output is ready. after: from the output until
// the stage can start its next pass; negative if the stage can do so before the output is ready.
struct sweep_action {
    double before, through, after;
};

// Lower bounds of a layout's step time and memory, from plans of its stages (sweep_bound.c).
//
// sweep_time_actions: times the passes of a plan into actions[forward or backward][microbatch][chunk].
// sweep_take_minimum: keeps the smaller value of each of the three times. sweep_place_action: index of a pass in
// sweep_bound.actions, which is [0: first microbatch, 1: later][forward or backward][chunk of the model].
// sweep_state_bytes: bytes of gradients and optimizer state of an average rank. sweep_walk_bound: simulates the
// pipeline schedule with the pass times of a bound, and raises bound->seconds to at least this step time.
void    sweep_time_actions(struct sweep_action *actions, const struct plan *plan, const struct machine *machine);
void    sweep_take_minimum(struct sweep_action *minimum, const struct sweep_action *action);
int64_t sweep_place_action(const struct schedule_shape *shape, const struct schedule_action *action, int64_t chunk);
int64_t sweep_state_bytes(const struct plan_request *request);
struct schedule_shape sweep_shape(const struct plan_request *request);
void                  sweep_open_bound(struct sweep_bound *bound, const struct plan_request *request);
void sweep_walk_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);

// Lower bound of the cost of one layer for one microbatch (sweep_rough.c). Layouts that shard a layer in the same way
// (sweep_is_cut_alike) share one sweep_layer. sweep_find_rough_bound computes a bound of a layout from it, and
// sweep_find_actions a tighter bound that follows the pipeline schedule. All fields are zero, so that they exclude no
// layout, if the model has different kinds of layers, if microbatches overlap, or if weight gradients are delayed.
struct sweep_layer {
    struct sweep_action first[SCHEDULE_PASSES];    // pass through a chunk with a single layer
    double              more[SCHEDULE_PASSES];     // seconds that each further layer of a chunk adds
    double              head[SCHEDULE_PASSES];     // seconds of the head and the MTP modules
    int64_t             bytes;                     // activations per layer and microbatch, kept for the backward pass
};
bool sweep_is_cut_alike(const struct plan_request *a, const struct plan_request *b);
void sweep_look_at_layer(struct sweep_layer *layer, const struct plan_request *request, const struct machine *machine);
struct sweep_bound sweep_find_rough_bound(const struct sweep_layer *layer, const struct plan_request *request);
void sweep_find_actions(struct sweep_bound *bound, const struct sweep_layer *layer, const struct plan_request *request,
                        const struct machine *machine);

// Predicts and explains a step from two steps with fewer microbatches (long_step.c). Does not call explanation->visit.
status predict_long_step(struct predict_explanation *explanation, struct prediction *prediction,
                         const struct plan_request *request, const struct machine *machine);

// predict_cost_stage sets the costs of a stage's ops in the tasks of its actor (pipeline.c). predict_cost is a function
// for cost_model.cost with a struct machine as its state (predict.c).
void        predict_cost_stage(struct actor *actor, struct predict_stage *stage, const struct cost_model *model);
struct cost predict_cost(const void *state, const struct plan *plan, const struct op *op);

// Returns the simulated seconds plus the wait for the slowest replica and the fixed overhead per step (predict.c).
double predict_whole_seconds(const struct plan_request *request, const struct machine *machine, double seconds);

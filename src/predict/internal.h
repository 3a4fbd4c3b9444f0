// SPDX-License-Identifier: MIT
// Declares the functions that the files of src/predict share: of the cost model, the pipeline simulation and the layout
// sweep.
#pragma once

#include "gswbench/job.h"
#include "gswbench/measured.h"
#include "gswbench/predict.h"
#include "gswbench/schedule.h"
#include "gswbench/sweep.h"

// explain.c: fills the waterfall of the explanation and calls its visitor with the first rank of every stage.
struct explained {
    const struct machine          *machine;
    const struct predict_pipeline *pipeline;
    const struct actor_time       *times;    // including times per task
};
void explain_pipeline(struct predict_explanation *explanation, const struct prediction *prediction,
                      const struct explained *explained);

// cost.c: seconds of a memory-bound kernel that moves these bytes; the sustained clock under the power limit as a
// fraction of the clock at full power, and the peak at that clock.
double predict_memory_seconds(const struct hardware_config *hardware, double bytes);
double predict_sustained_clock(const struct hardware_config *hardware);
double predict_sustained_peak(const struct hardware_config *hardware, const struct format_row *format);

// cost_attention.c: seconds of an attention op in either pass.
double predict_attention_seconds(const struct machine *machine, const struct plan *plan, const struct op *op);

// Topology of the group of a communication op (cost_communication.c).
struct span {
    double members, nodes;
    double inside,
        outside;             // fraction of an all-to-all's intra-node and inter-node bytes that is sent
    double beginnings;       // latencies that the op pays; below 1 if it is one of several parts of an all-to-all
    double node, network;    // bytes/s per device, capped by the SMs of the op
    int    processors;       // 0: copy engines, or CPU ranks
    bool   is_limited;       // fewer processors than NCCL would use
    bool   is_once;          // sends a token once to each rank, as DeepEP does
};

// Seconds to start a collective of this group (cost_nccl.c).
double predict_collective_start(const struct hardware_config *hardware, const struct span *span);

// cost_collectives.c: seconds of a collective within a node as measured on this GPU; 0: not measured.
double predict_collective_seconds(const struct machine *machine, const struct span *span, const struct op *op,
                                  double bytes);

// cost_nccl.c: seconds of an all-gather or reduce-scatter, and of an all-reduce, by NCCL.
double predict_gather_seconds(const struct machine *machine, const struct span *span, double bytes);
int    predict_ring_protocol(const struct hardware_config *hardware, double members, double passes, double bytes);
double predict_sum_seconds(const struct machine *machine, const struct span *span, double bytes);

// cost_software.c: how the modelled framework differs.
//
// predict_software_has: whether the framework already has the result of the op, so that it costs nothing.
// predict_software_seconds: cost of an op that takes these seconds in gswbench. predict_software_bytes: bytes of a
// communication op, as a multiple of the plan's. predict_is_low_precision_head: whether the op is a GEMM of the head
// that runs in FP8. predict_group: number of experts whose ops of this kind are launched together, else 1.
// predict_software_gemms: number of GEMMs that the framework runs instead of this op; fills in `gemm`, if given and if
// there are several. predict_cost_launch: sets the host time to launch the op.
bool   predict_software_has(const struct software_config *software, const struct plan *plan, const struct op *op);
double predict_software_seconds(const struct machine *machine, const struct plan *plan, const struct op *op,
                                double seconds);
double predict_software_bytes(const struct software_config *software, const struct plan *plan, const struct op *op);
bool   predict_is_low_precision_head(const struct software_config *software, const struct plan *plan,
                                     const struct op *op);
int    predict_software_gemms(const struct software_config *software, const struct plan *plan, const struct op *op,
                              struct op gemm[3]);
double predict_group(const struct software_config *software, const struct plan *plan, const struct op *op);
void   predict_cost_launch(struct cost *cost, const struct machine *machine, const struct plan *plan,
                           const struct op *op);

// sweep_bound.c: microbatches of a step that shows a full stage: the first ones until the stage is full, one in
// between, and the last. A stage holds at most pp microbatches at a time; with several chunks, two groups of pp. The
// last group keeps its size. The last stage also holds those whose head gradients are deferred.
int64_t sweep_enough_microbatches(const struct plan_request *request, bool is_last);

// Seconds of a pass of one microbatch through one chunk. before: until the pass needs its input. through: from then
// until its output is ready. after: from then until the stage can start its next pass; this may be negative.
struct sweep_action {
    double before, through, after;
};

// sweep_bound.c: bounds of a layout from plans of its stages.
//
// sweep_time_actions: the passes of a plan, [action][microbatch][chunk]. sweep_place_action: index of a pass in the
// costs of a bound, which are [0: first microbatch, 1: later][action][chunk of the model]. sweep_state_bytes: minimum
// bytes of gradients and optimizer state per rank. sweep_walk_bound: step time of a bound, from its passes.
void    sweep_time_actions(struct sweep_action *actions, const struct plan *plan, const struct machine *machine);
void    sweep_take_minimum(struct sweep_action *minimum, const struct sweep_action *action);
int64_t sweep_place_action(const struct schedule_shape *shape, const struct schedule_action *action, int64_t chunk);
int64_t sweep_state_bytes(const struct plan_request *request);
struct schedule_shape sweep_shape(const struct plan_request *request);
void                  sweep_open_bound(struct sweep_bound *bound, const struct plan_request *request);
void sweep_walk_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);

// sweep_rough.c: lower bound of the cost of one layer for a microbatch. Layouts that partition a layer the same way
// share it. It yields a rough bound per layout, and a tighter one from the order of the passes. All fields are zero if
// layers differ.
struct sweep_layer {
    struct sweep_action first[SCHEDULE_PASSES];    // the only layer of a chunk
    double              more[SCHEDULE_PASSES];     // each further layer of the chunk
    double              head;
    int64_t             bytes;    // activations kept from the forward to the backward pass
};
bool sweep_is_cut_alike(const struct plan_request *a, const struct plan_request *b);
void sweep_look_at_layer(struct sweep_layer *layer, const struct plan_request *request, const struct machine *machine);
struct sweep_bound sweep_find_rough_bound(const struct sweep_layer *layer, const struct plan_request *request);
void sweep_find_actions(struct sweep_bound *bound, const struct sweep_layer *layer, const struct plan_request *request,
                        const struct machine *machine);

// long_step.c: predicts and explains a step from two shorter ones. It calls no visitor.
status predict_long_step(struct predict_explanation *explanation, struct prediction *prediction,
                         const struct plan_request *request, const struct machine *machine);

// pipeline.c: computes the costs of the ops of a stage into its tasks. predict.c: cost function for a struct machine.
void        predict_cost_stage(struct actor *actor, struct predict_stage *stage, const struct cost_model *model);
struct cost predict_cost(const void *state, const struct plan *plan, const struct op *op);

// predict.c: adds stragglers and step overhead to the simulated seconds.
double predict_step_overhead(const struct machine *machine);
double predict_whole_seconds(const struct plan_request *request, const struct machine *machine, double seconds);

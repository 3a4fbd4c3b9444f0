// SPDX-License-Identifier: MIT
// Private interface of the cost model, the pipeline simulation and the layout sweep.
#ifndef GSWBENCH_PREDICT_INTERNAL_H
#define GSWBENCH_PREDICT_INTERNAL_H

#include "gswbench/job.h"
#include "gswbench/measured.h"
#include "gswbench/predict.h"
#include "gswbench/schedule.h"
#include "gswbench/sweep.h"
#include "gswbench/text.h"

// explain.c: fills the waterfall of the explanation and calls its visitor with the first rank of every stage.
struct explained {
    const struct machine          *machine;
    const struct predict_pipeline *pipeline;
    const struct actor_time       *times;    // including times per task
};
void explain_pipeline(struct predict_explanation *explanation, const struct prediction *prediction,
                      const struct explained *explained);

// cost.c: the sustained clock under the power limit as a fraction of the clock at full power, and the peak at that
// clock.
double predict_sustained_clock(const struct hardware_config *hardware);
double predict_sustained_peak(const struct hardware_config *hardware, const struct format_row *format);

// cost_attention.c: seconds of an attention op in either pass.
double predict_attention_seconds(const struct machine *machine, const struct plan *plan, const struct op *op);

// Topology of a transfer's group (cost_transfer.c).
struct span {
    double members, nodes;
    double inside,
        outside;             // fraction of an all-to-all's intra-node and inter-node bytes that is sent
    double beginnings;       // latencies of an all-to-all; below 1 if it is one of several parts
    double node, network;    // bytes/s per device, capped by the SMs of the transfer
    int    processors;
};

// cost_nccl.c: seconds of an all-gather or reduce-scatter, and of an all-reduce, by NCCL.
double predict_gather_seconds(const struct machine *machine, const struct span *span, double bytes);
double predict_sum_seconds(const struct machine *machine, const struct span *span, double bytes);

// cost_software.c: how the modelled framework differs. _has: it already has the result of the op. _seconds: cost of an
// op that takes these seconds alone. _bytes: bytes of a transfer as a multiple of the plan's. is_narrow_head: a GEMM of
// the head that runs in FP8. cost_launch: host time to launch the op.
bool   predict_software_has(const struct software_config *software, const struct plan *plan, const struct op *op);
double predict_software_seconds(const struct machine *machine, const struct plan *plan, const struct op *op,
                                double seconds);
double predict_software_bytes(const struct software_config *software, const struct plan *plan, const struct op *op);
bool   predict_is_narrow_head(const struct software_config *software, const struct plan *plan, const struct op *op);
void   predict_cost_launch(struct cost *cost, const struct machine *machine, const struct plan *plan,
                           const struct op *op);

// sweep_turns.c: a pass of one microbatch through one chunk. before: until it needs its input. through: from then
// until its output is ready. after: until the stage can start its next pass; this may be negative.
struct sweep_turn {
    double before, through, after;
};

// sweep_walk.c: activity of a stage's compute stream, for the microbatches of its plan.
struct sweep_stage {
    double            *seconds;       // [1 + microbatches]; [0]: work of no microbatch
    struct sweep_turn *turns;         // [action][microbatch][chunk]
    double             last_turns;    // until its last send
    double             all, rest;     // rest: after its last pass
    double             loaded;        // bound of the whole step, with slowdown by overlapping tasks
    int64_t            bytes;
};
// more: microbatches of the step in addition to the plan's.
void sweep_time_stage(struct sweep_stage *stage, const struct plan *plan, const struct machine *machine, int64_t more);
// Only the passes.
void sweep_time_turns(struct sweep_turn *turns, const struct plan *plan, const struct machine *machine);

// sweep_load.c: lower bound of the seconds of a stage's tasks with more microbatches; 0: unknown.
double sweep_loaded_seconds(const struct plan *plan, const struct task *tasks, const struct machine *machine,
                            int64_t more);

// sweep_turns.c
void sweep_take_least(struct sweep_turn *least, const struct sweep_turn *turn);
// Index of a pass in the costs: [0: first microbatch, 1: later][action][chunk of the model].
int64_t sweep_place_turn(const struct schedule_shape *shape, const struct schedule_turn *turn, int64_t chunk);
// Seconds until all stages finish their passes and their rest, [stage].
double sweep_walk_turns(const struct schedule_shape *shape, const struct sweep_turn *turns, const double *rest);

// sweep_rough.c: lower bound of the cost of one layer for a microbatch. first: the only layer of a chunk. more: each
// further layer, by action. bytes: activations kept until its backward pass. Zeros if layers differ. Layouts that
// partition a layer the same way share this cost. It yields a rough bound per layout, and a tighter one from the order
// of the passes.
struct sweep_layer {
    struct sweep_turn first[SCHEDULE_ACTIONS];
    double            more[SCHEDULE_ACTIONS], head;
    int64_t           bytes;
};
bool sweep_is_cut_alike(const struct plan_request *a, const struct plan_request *b);
void sweep_look_at_layer(struct sweep_layer *layer, const struct plan_request *request, const struct machine *machine);
struct sweep_bound sweep_find_rough_bound(const struct sweep_layer *layer, const struct plan_request *request);
void sweep_find_turns(struct sweep_bound *bound, const struct sweep_layer *layer, const struct plan_request *request,
                      const struct machine *machine);

// sweep_bound.c: minimum bytes of gradients and optimizer state per rank; the bound's step time from its passes.
int64_t               sweep_state_bytes(const struct plan_request *request);
struct schedule_shape sweep_shape(const struct plan_request *request);
void                  sweep_open_bound(struct sweep_bound *bound, const struct plan_request *request);
void sweep_walk_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);

// pipeline.c: computes the costs of the ops of a stage into its tasks. predict.c: cost function for a struct machine.
void        predict_cost_stage(struct actor *actor, struct predict_stage *stage, const struct cost_model *model);
struct cost predict_cost(const void *state, const struct plan *plan, const struct op *op);

// predict.c: adds stragglers and step overhead to the simulated seconds.
double predict_whole_seconds(const struct plan_request *request, const struct machine *machine, double seconds);

// warnings.c: adds one line per reason to doubt the prediction or the layout.
void predict_warn(const struct job *job, const struct prediction *prediction, const struct measured_ops *measured,
                  struct text_buffer *warnings);

#endif

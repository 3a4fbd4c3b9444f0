// SPDX-License-Identifier: MIT
// A simulated job and what is said of it.
#ifndef GSWBENCH_PREDICT_INTERNAL_H
#define GSWBENCH_PREDICT_INTERNAL_H

#include "gswbench/job.h"
#include "gswbench/measured.h"
#include "gswbench/predict.h"
#include "gswbench/schedule.h"
#include "gswbench/sweep.h"
#include "gswbench/text.h"

// explain.c: fills the explanation's waterfall, and shows its visitor every stage's first rank.
struct explained {
    const struct machine          *machine;
    const struct predict_pipeline *pipeline;
    const struct actor_time       *times;    // with tasks
};
void explain_pipeline(struct predict_explanation *explanation, const struct prediction *prediction,
                      const struct explained *explained);

// price.c: the clock under the power that a device may draw, as a share of that under all of its power; and a peak.
double predict_sustained_clock(const struct hardware_config *hardware);
double predict_sustained_peak(const struct hardware_config *hardware, const struct format_row *format);

// price_attention.c: of both passes; and what a program that attends in FP8 casts for it.
double predict_attention_seconds(const struct machine *machine, const struct plan *plan, const struct op *op);
double predict_attention_casts(const struct machine *machine, const struct plan *plan, const struct op *op);

// How the members of a transfer lie (price_transfer.c).
struct span {
    double members, nodes;
    double inside,
        outside;    // share of an all-to-all's bytes for other ranks of the node and for other nodes that goes there
    double beginnings;       // of an all-to-all: 1, or its share where it is a part of one
    double node, network;    // bytes a second of one device, as far as the multiprocessors of the transfer carry them
    int    processors;
};

// price_nccl.c: what a gather of so many bytes or the reduction that undoes it, and what a sum of all takes the
// library.
double predict_gather_seconds(const struct machine *machine, const struct span *span, double bytes);
double predict_sum_seconds(const struct machine *machine, const struct span *span, double bytes);

// price_transfer.c: whether tp brings together, piece by piece or at once, what is then cast for a product in FP8.
bool predict_gathers_casts(const struct plan *plan, const struct op *op);

// price_program.c: where another program is predicted, whether it has what the op makes already; the share that its op
// takes of this one's price, and the seconds that it takes at least; what it does besides, and the gaps of further
// kernels.
bool   predict_program_has(const struct software_config *software, const struct plan *plan, const struct op *op);
double predict_program_share(const struct software_config *software, const struct op *op);
double predict_program_least(const struct software_config *software, const struct op *op);
double predict_program_seconds(const struct machine *machine, const struct plan *plan, const struct op *op);
double predict_program_gaps(const struct machine *machine, const struct op *op);

// price_launch.c: what its host takes.
void predict_price_launch(struct price *price, const struct machine *machine, const struct plan *plan,
                          const struct op *op);

// price_head.c: whether a product of the head is in FP8, and what casts of its operands take.
bool   predict_is_narrow_head(const struct software_config *software, const struct plan *plan, const struct op *op);
double predict_head_casts(const struct machine *machine, const struct plan *plan, const struct op *op);

// price_context.c: what attention takes longer, and how many times the plan's bytes move, where a program attends to
// gathered keys rank by rank.
double predict_part_seconds(const struct machine *machine, const struct plan *plan, const struct op *op);
double predict_part_bytes(const struct software_config *software, const struct plan *plan, const struct op *op);

// sweep_turns.c: a turn of a chunk's microbatch, until it needs its input, from there until its output is there, and
// until its stage can go on, which may be earlier.
struct sweep_turn {
    double before, through, after;
};

// sweep_walk.c: what a stage's compute lane does, of as many microbatches as its plan has.
struct sweep_stage {
    double            *seconds;       // [microbatches + 1]: of the segments by microbatch; first, of those of none
    struct sweep_turn *turns;         // [action][microbatch][chunk]
    double             last_turns;    // until its last send
    double             all, rest;     // rest: behind its turns
    double             loaded;        // all, as what runs beside each other slows it down
    int64_t            bytes;
};
// more: microbatches of the step that the plan has not.
void sweep_time_stage(struct sweep_stage *stage, const struct plan *plan, const struct machine *machine, int64_t more);
// Its turns alone.
void sweep_time_turns(struct sweep_turn *turns, const struct plan *plan, const struct machine *machine);

// sweep_load.c: what a stage's priced tasks take at least, with so many more microbatches; 0: not known.
double sweep_loaded_seconds(const struct plan *plan, const struct task *tasks, const struct machine *machine,
                            int64_t more);

// sweep_turns.c
void sweep_take_least(struct sweep_turn *least, const struct sweep_turn *turn);
// Where a turn's seconds stand, [first microbatch or another][action][chunk of the model].
int64_t sweep_place_turn(const struct schedule_shape *shape, const struct schedule_turn *turn, int64_t chunk);
// Seconds until all stages have done their turns, and the rest, [stage].
double sweep_walk_turns(const struct schedule_shape *shape, const struct sweep_turn *turns, const double *rest);

// sweep_rough.c: what a layer takes of a microbatch at least: as the only one of a chunk, and what each further one
// adds, by action, and in bytes that stay until its backward pass. Zeros where layers are not alike. It is the same for
// layouts that are cut alike; from it follows a bound for each, and a closer one from the order of turns.
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

// sweep_bound.c: the least that gradients and optimizer take on a rank; and the least time by the bound's turns.
int64_t               sweep_state_bytes(const struct plan_request *request);
struct schedule_shape sweep_shape(const struct plan_request *request);
void                  sweep_open_bound(struct sweep_bound *bound, const struct plan_request *request);
void sweep_walk_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);

// pipeline.c: prices a stage's ops, whose tasks have room for them; predict.c: the price on a struct machine.
void         predict_price_stage(struct actor *actor, struct predict_stage *stage, const struct pricing *pricing);
struct price predict_price(const void *state, const struct plan *plan, const struct op *op);

// predict.c: what stragglers and every step's overhead make of the seconds of a simulation.
double predict_whole_seconds(const struct plan_request *request, const struct machine *machine, double seconds);

// warnings.c: a line for each thing that makes the prediction doubtful or the job slow.
void predict_warn(const struct job *job, const struct prediction *prediction, const struct measured_ops *measured,
                  struct text_buffer *warnings);

#endif

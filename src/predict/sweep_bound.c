// SPDX-License-Identifier: MIT
// What a layout takes at least, in time and memory, from plans of a few microbatches: once a pipeline is full, each
// further microbatch takes no less time than the one before, and no memory of its own.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/layers.h"
#include "internal.h"

// A stage's compute lane, which runs ops in order, from when the first microbatch has come to it. Time is counted
// within segments, the ops of one microbatch and chunk that follow each other, and anew from the op that waits for
// another stage: what a segment needs of those before it has come when it begins.
struct stage {
    double *seconds;              // [microbatches + 1]: of the segments by microbatch; first, of those of none
    double  forward, backward;    // of the first chunk: of its first and its last turn, once its input has come
    double  turns;                // until its last send
    double  all;
    int64_t bytes;
};

struct walk {
    const struct plan    *plan;
    const struct machine *machine;
    double                lane_ends[LANE_COUNT];
    double               *ends;     // [op]
    int32_t               first;    // op of the segment
    const struct op_tag  *tag;      // of the segment
};

static void begin_segment(struct walk *walk, int32_t index, const struct op *op)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        walk->lane_ends[lane] = lane == LANE_COMPUTE ? walk->lane_ends[lane] : -INFINITY;
    }
    walk->first = index;
    walk->tag   = &op->tag;
}

static bool waits_for_stage(const struct plan *plan, const struct op *op)
{
    for (int w = 0; w < op->wait_count; w++) {
        const struct op *cause = &plan->ops[op->wait[w]];
        if (cause->kind == OP_RECEIVE && (plan->groups[cause->shape.transfer.group].axes & 1u << AXIS_PP) != 0) {
            return true;
        }
    }
    return false;
}

// How much later the op's lane is done with it.
static double pass(struct walk *walk, int32_t index)
{
    const struct op *op = &walk->plan->ops[index];
    if (op->lane == LANE_COMPUTE && (walk->tag == NULL || op->tag.microbatch != walk->tag->microbatch ||
                                     op->tag.chunk != walk->tag->chunk || waits_for_stage(walk->plan, op))) {
        begin_segment(walk, index, op);
    }
    double *lane_end = &walk->lane_ends[op->lane], before = *lane_end, begin = before;
    for (int w = 0; w < op->wait_count; w++) {
        begin = op->wait[w] >= walk->first ? fmax(begin, walk->ends[op->wait[w]]) : begin;
    }
    *lane_end = walk->ends[index] = begin + predict_price_op(walk->machine, walk->plan, op).seconds;
    return *lane_end - before;
}

// The last op of the compute lane before the stage's last send; -1: it sends nothing.
static int32_t find_last_turn(const struct plan *plan)
{
    for (int32_t i = plan->op_count - 1; i >= 0; i--) {
        const struct op *op = &plan->ops[i];
        for (int w = 0; w < op->wait_count && op->lane == LANE_PIPELINE_SEND; w++) {
            if (plan->ops[op->wait[w]].lane == LANE_COMPUTE) {
                return op->wait[w];
            }
        }
    }
    return -1;
}

static void time_stage(struct stage *stage, const struct plan *plan, const struct machine *machine)
{
    struct walk walk = {
        .plan = plan, .machine = machine, .ends = memory_allocate((size_t)plan->op_count * sizeof(*walk.ends))};
    int32_t last_turn = find_last_turn(plan), last = (int32_t)plan->train.accumulation - 1;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op_tag *tag     = &plan->ops[i].tag;
        double               seconds = pass(&walk, i);
        if (plan->ops[i].lane != LANE_COMPUTE) {
            continue;
        }
        // What comes before the op that waits for another stage can be done until then.
        bool is_first = tag->chunk <= 0 && tag->phase == PHASE_FORWARD && tag->microbatch == 0;
        bool is_last  = tag->chunk <= 0 && tag->phase != PHASE_FORWARD && tag->microbatch == last;
        if (waits_for_stage(plan, &plan->ops[i]) && is_first) {
            stage->forward = stage->turns = stage->all = 0.0;
        } else if (waits_for_stage(plan, &plan->ops[i]) && is_last) {
            stage->backward = 0.0;
        }
        stage->seconds[tag->microbatch + 1] += seconds;
        stage->all += seconds;
        stage->turns += i <= last_turn ? seconds : 0.0;
        stage->forward += is_first ? seconds : 0.0;
        stage->backward += is_last ? seconds : 0.0;
    }
    free(walk.ends);
}

void sweep_time_microbatches(double *seconds, const struct plan *plan, const struct machine *machine)
{
    struct stage stage = {.seconds = seconds};
    time_stage(&stage, plan, machine);
}

static int64_t input_bytes(const struct plan *plan, int32_t tensor)
{
    return tensor < 0 ? 0 : (plan->tensors[tensor].bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
}

// A step of so many microbatches on the stage's first rank, and what the others add to it.
static status look_at_stage(struct stage *stage, const struct plan_request *request, const struct machine *machine,
                            int64_t number, int64_t microbatches)
{
    struct plan_request  shorter = *request;
    struct train_config *train   = &shorter.train;
    int64_t              more    = train->accumulation - microbatches;
    struct plan          plan;
    struct gemm_memo     gemms   = {0};
    struct machine       pricing = *machine;
    pricing.gemms                = &gemms;
    train->global_batch          = train->global_batch / train->accumulation * microbatches;
    train->accumulation          = microbatches;
    shorter.is_unplaced          = true;
    *stage        = (struct stage){.seconds = memory_allocate((size_t)(microbatches + 1) * sizeof(double))};
    status result = plan_build_stage(&plan, &shorter, number);
    if (!failed(&result)) {
        time_stage(stage, &plan, &pricing);
        // Live activations: what their places leave free between them differs with the number of microbatches.
        stage->bytes = plan_total_bytes(&plan) - plan.storage_bytes[STORAGE_ACTIVATION] + plan.activation_live_bytes +
                       more * (input_bytes(&plan, plan.tokens[0]) + input_bytes(&plan, plan.targets[0]));
    }
    double least = microbatches > 2 ? INFINITY : 0.0;    // of one that is neither the first nor the last
    for (int64_t m = 1; m < microbatches - 1; m++) {
        least = fmin(least, stage->seconds[m + 1]);
    }
    stage->all += (double)more * least;
    stage->turns += stage->turns > 0.0 ? (double)more * least : 0.0;
    free(stage->seconds);
    plan_free(&plan);
    return result;
}

// So many that the first, one at least between, and the last are there. On a stage are at most pp microbatches at once,
// with several chunks two groups of pp, of which the last of all stays as full as it is; and on the last stage those
// whose head gradients wait for the end.
static int64_t enough_microbatches(const struct plan_request *request, bool is_last)
{
    const struct mesh *mesh   = &request->mesh;
    int64_t            stages = mesh->size[AXIS_PP], all = request->train.accumulation;
    bool               overlaps = request->train.overlap_microbatches != 0, is_interleaved = mesh->vp > 1 || overlaps;
    int64_t            group = is_interleaved ? stages : 1, enough = stages * (is_interleaved ? 2 : 1) + 2 + overlaps;
    enough += is_last && stages > 1 ? request->parallel.deferred_head_gradients : 0;
    return all <= enough ? all : enough + (all - enough) % group;
}

bool sweep_fits(const struct hardware_config *hardware, int64_t bytes)
{
    return hardware->memory_gb.value == 0.0 || (double)bytes <= hardware->memory_gb.value * 1e9;
}

// Gradients and optimizer of the parameters that the average rank has; the weights themselves come on top.
int64_t sweep_state_bytes(const struct plan_request *request)
{
    const struct precision *precision = &request->precision;
    const struct mesh      *mesh      = &request->mesh;
    int64_t                 parts     = mesh_group_size(mesh, MESH_ALL_AXES & ~mesh_replica_axes(mesh, true));
    int64_t shared = request->parallel.zero > 0 ? mesh_group_size(mesh, mesh_replica_axes(mesh, false)) : 1;
    int64_t own    = layers_parameters(&request->model) / parts;
    int64_t master = precision->has_master ? format_bytes(FORMAT_F32, own) : 0;
    int64_t state  = 2 * format_bytes(precision->moment, own) + master;
    return format_bytes(precision->gradient, own) + state / shared;
}

// The first stage keeps most, and the last one often works longest: what these two say is mostly enough.
static int64_t stage_to_look_at(int64_t looked_at, int64_t last)
{
    return looked_at == 0 ? 0 : looked_at == 1 ? last : looked_at - 1;
}

// A stage begins when those before it have done the first microbatch's first chunk, and has its last turn before
// theirs. The first and the last stage differ from the others, of which the second has no fewer layers and no fewer
// microbatches than the rest: of these, two microbatches say what their first and last turn take.
status sweep_refine_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine)
{
    int64_t      last = request->mesh.size[AXIS_PP] - 1, all = request->train.accumulation;
    int64_t      s          = stage_to_look_at(bound->stages, last);
    bool         is_typical = s > 1 && s < last;
    int64_t      enough     = is_typical ? (all < 2 ? all : 2) : enough_microbatches(request, s == last);
    double       overhead   = machine->hardware->step_overhead.value;
    struct stage stage;
    TRY(look_at_stage(&stage, request, machine, s, enough));
    if (!is_typical && s < last) {
        double seconds = bound->forward + fmax(stage.all, stage.turns + bound->backward);
        bound->seconds = fmax(bound->seconds, seconds + overhead);
    }
    if (s == last) {
        bound->last       = stage.all;
        bound->last_turns = stage.turns;
    } else {
        bound->forward += stage.forward;
        bound->backward += stage.backward;
    }
    bound->stages++;
    double seconds = bound->forward + fmax(bound->last, bound->last_turns + bound->backward);
    bound->seconds = fmax(bound->seconds, seconds + overhead);
    bound->bytes   = stage.bytes > bound->bytes ? stage.bytes : bound->bytes;
    return OK;
}

status sweep_find_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine)
{
    int64_t stages = request->mesh.size[AXIS_PP];
    *bound         = (struct sweep_bound){.bytes = sweep_state_bytes(request)};
    while (bound->stages < stages && sweep_fits(machine->hardware, bound->bytes)) {
        TRY(sweep_refine_bound(bound, request, machine));
    }
    return OK;
}

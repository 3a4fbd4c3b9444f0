// SPDX-License-Identifier: MIT
// Lower bounds of a layout's time and memory from plans of a few microbatches. Once the pipeline is full, each further
// microbatch takes at least the minimum of the earlier ones and needs no additional memory.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/layers.h"
#include "internal.h"

static int64_t input_bytes(const struct plan *plan, int32_t tensor)
{
    return tensor < 0 ? 0 : (plan->tensors[tensor].bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
}

// Takes the minimum cost of each pass over the microbatches of a chunk.
static void take_turns(struct sweep_bound *bound, const struct sweep_stage *stage, const struct plan *plan,
                       int64_t number)
{
    int64_t               chunks = plan->mesh.vp, microbatches = plan->train.accumulation;
    struct schedule_shape shape = {plan->mesh.size[AXIS_PP], chunks, microbatches, false};
    for (int64_t i = 0; i < SCHEDULE_ACTIONS * microbatches * chunks; i++) {
        struct schedule_turn turn  = {(enum schedule_action)(i / chunks / microbatches), i / chunks % microbatches, 0,
                                      false};
        struct sweep_turn   *least = &bound->turns[sweep_place_turn(&shape, &turn, i % chunks * shape.stages + number)];
        *least                     = turn.microbatch < 2 ? stage->turns[i] : *least;
        sweep_take_least(least, &stage->turns[i]);
    }
    bound->rest[number] = stage->rest;
}

// Order of examination: first stage, last stage, then the others. The first stage holds the most activations and the
// last is often the slowest, so these two usually decide.
static int64_t stage_to_look_at(int64_t looked_at, int64_t last)
{
    return looked_at == 0 ? 0 : looked_at == 1 ? last : looked_at - 1;
}

// Costs a step with this many microbatches on the stage's first rank, and adds the remaining microbatches.
static status look_at_stage(struct sweep_stage *stage, struct sweep_bound *bound, const struct plan_request *request,
                            const struct machine *machine, int64_t microbatches)
{
    struct plan_request  shorter = *request;
    struct train_config *train   = &shorter.train;
    int64_t              number  = stage_to_look_at(bound->stages, request->mesh.size[AXIS_PP] - 1),
            more                 = train->accumulation - microbatches;
    struct plan      plan;
    struct gemm_memo gemms = {0};
    struct machine   copy  = *machine;
    size_t           turns = (size_t)(SCHEDULE_ACTIONS * microbatches * request->mesh.vp);
    copy.gemms             = &gemms;
    train->global_batch    = train->global_batch / train->accumulation * microbatches;
    train->accumulation    = microbatches;
    shorter.is_unplaced    = true;
    *stage        = (struct sweep_stage){.seconds = memory_allocate((size_t)(microbatches + 1) * sizeof(double)),
                                         .turns   = memory_allocate(turns * sizeof(*stage->turns))};
    status result = plan_build_stage(&plan, &shorter, number);
    if (!failed(&result)) {
        sweep_time_stage(stage, &plan, &copy, more);
        if (!request->train.overlap_microbatches) {    // interleaved passes hide each other's waits
            take_turns(bound, stage, &plan, number);
        }
        // Counts live activations: fragmentation of the arena varies with the number of microbatches.
        stage->bytes = plan_total_bytes(&plan) - plan.storage_bytes[STORAGE_ACTIVATION] + plan.activation_live_bytes +
                       more * (input_bytes(&plan, plan.tokens[0]) + input_bytes(&plan, plan.targets[0]));
    }
    double least = microbatches > 2 ? INFINITY : 0.0;    // minimum of the microbatches between the first and the last
    for (int64_t m = 1; m < microbatches - 1; m++) {
        least = fmin(least, stage->seconds[m + 1]);
    }
    stage->all += (double)more * least;
    stage->last_turns += stage->last_turns > 0.0 ? (double)more * least : 0.0;
    free(stage->seconds);
    free(stage->turns);
    plan_free(&plan);
    return result;
}

// Microbatches that suffice: the first, the last and at least one between. A stage holds at most pp microbatches at a
// time; with several chunks, two groups of pp. The last group keeps its size. The last stage also holds the
// microbatches with deferred head gradients.
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

// Bytes of gradients and optimizer state of an average rank, without the weights.
int64_t sweep_state_bytes(const struct plan_request *request)
{
    const struct precision *precision = &request->precision;
    const struct mesh      *mesh      = &request->mesh;
    int64_t                 parts     = mesh_group_size(mesh, MESH_ALL_AXES & ~mesh_replica_axes(mesh, true));
    int64_t shared       = request->parallel.zero > 0 ? mesh_group_size(mesh, mesh_replica_axes(mesh, false)) : 1;
    int64_t own          = layers_parameters(&request->model) / parts;
    int64_t master       = precision->has_master ? format_bytes(FORMAT_F32, own) : 0;
    int64_t state        = 2 * format_bytes(precision->moment, own) + master;
    bool    keeps_slices = request->parallel.gradient_reduce == GRADIENT_REDUCE_MICROBATCH;
    return format_bytes(precision->gradient, own) / (keeps_slices ? shared : 1) + state / shared;
}

struct schedule_shape sweep_shape(const struct plan_request *request)
{
    return (struct schedule_shape){request->mesh.size[AXIS_PP], request->mesh.vp, request->train.accumulation, false};
}

void sweep_open_bound(struct sweep_bound *bound, const struct plan_request *request)
{
    size_t stages = (size_t)request->mesh.size[AXIS_PP], chunks = stages * (size_t)request->mesh.vp;
    bound->turns = memory_allocate(2 * SCHEDULE_ACTIONS * chunks * sizeof(*bound->turns));
    bound->rest  = memory_allocate(stages * sizeof(*bound->rest));
}

void sweep_free_bound(struct sweep_bound *bound)
{
    free(bound->turns);
    free(bound->rest);
    bound->turns = NULL;
    bound->rest  = NULL;
}

static void raise_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine,
                        double seconds)
{
    bound->seconds = fmax(bound->seconds, predict_whole_seconds(request, machine, seconds));
}

void sweep_walk_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine)
{
    struct schedule_shape shape = sweep_shape(request);
    raise_bound(bound, request, machine, sweep_walk_turns(&shape, bound->turns, bound->rest));
}

// A stage starts after the earlier stages have sent on the first microbatch, and has its last backward pass before
// theirs. The first and last stage are examined in full. Stage 1 has at least as many layers and microbatches in
// flight as stages 2 to pp - 2, so three microbatches suffice for their passes.
status sweep_refine_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine)
{
    int64_t               last = request->mesh.size[AXIS_PP] - 1, all = request->train.accumulation;
    int64_t               s          = stage_to_look_at(bound->stages, last);
    bool                  is_typical = s > 1 && s < last;
    int64_t               enough     = is_typical ? (all < 3 ? all : 3) : enough_microbatches(request, s == last);
    double                forward = 0.0, backward = 0.0;
    struct schedule_shape shape = sweep_shape(request);
    struct sweep_stage    stage;
    TRY(look_at_stage(&stage, bound, request, machine, enough));
    struct schedule_turn there = {SCHEDULE_FORWARD, 0, 0, false}, back = {SCHEDULE_BACKWARD, all - 1, 0, false};
    for (int64_t before = 0; before < s; before++) {
        forward += bound->turns[sweep_place_turn(&shape, &there, before)].through;
        backward += bound->turns[sweep_place_turn(&shape, &back, before)].through;
    }
    if (!is_typical) {
        raise_bound(bound, request, machine,
                    fmax(stage.loaded, forward + fmax(stage.all, stage.last_turns + backward)));
    }
    bound->stages++;
    bound->bytes = stage.bytes > bound->bytes ? stage.bytes : bound->bytes;
    sweep_walk_bound(bound, request, machine);
    return OK;
}

status sweep_find_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine)
{
    int64_t stages = request->mesh.size[AXIS_PP];
    status  result = OK;
    *bound         = (struct sweep_bound){.bytes = sweep_state_bytes(request)};
    sweep_open_bound(bound, request);
    while (bound->stages < stages && sweep_fits(machine->hardware, bound->bytes) && !failed(&result)) {
        result = sweep_refine_bound(bound, request, machine);
    }
    sweep_free_bound(bound);
    return result;
}

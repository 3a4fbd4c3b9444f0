// SPDX-License-Identifier: MIT
// Computes rough lower bounds of layouts from the cost of a single layer. Layouts that shard a layer in the same way
// share its plans, so a few hundred small plans suffice for thousands of layouts.
#include <math.h>

#include "internal.h"

// Size of the small pipeline that is timed. It is the smallest with a microbatch between the first and the last, and a
// chunk that receives its input and sends its output. This chunk is the second one (CHUNK) of the first stage.
enum { MICROBATCHES = 3, STAGES = 2, CHUNKS = 2, CHUNK = 1 };

static bool has_rough_bound(const struct plan_request *request)
{
    // If two microbatches interleave, or weight gradients are delayed, other work fills the waits of a pass. Then times
    // of single passes give no lower bound.
    return request->model.pattern[0] == '\0' && !request->train.overlap_microbatches &&
           request->parallel.schedule == PIPELINE_1F1B;
}

// Whether all layers are recomputed in the same way. If only every n-th or the first n layers are recomputed, the bound
// uses the time of a layer without recompute, and counts no activation memory.
static bool recomputes_uniformly(const struct plan_request *request)
{
    return request->train.recompute != RECOMPUTE_BLOCK_EVERY && request->train.recompute_layers == 0;
}

bool sweep_is_cut_alike(const struct plan_request *a, const struct plan_request *b)
{
    return a->mesh.size[AXIS_TP] == b->mesh.size[AXIS_TP] && a->mesh.size[AXIS_CP] == b->mesh.size[AXIS_CP] &&
           a->mesh.asked[AXIS_EP] == b->mesh.asked[AXIS_EP] && a->mesh.etp == b->mesh.etp &&
           a->train.micro_batch == b->train.micro_batch && a->train.recompute == b->train.recompute;
}

// Makes a small version of a layout, with a few layers and as few replicas as ep needs (dp = ep), on one pipeline
// stage, or on STAGES stages with CHUNKS chunks each.
static status shrink(struct plan_request *little, const struct plan_request *request, int64_t layers, bool has_stages)
{
    int64_t ep = request->mesh.size[AXIS_EP];
    *little    = *request;
    mesh_ask(&little->parallel, AXIS_PP, has_stages ? STAGES : 1);
    mesh_ask(&little->parallel, AXIS_FSDP, 1);
    mesh_ask(&little->parallel, AXIS_DP, ep);
    little->parallel.vp                         = has_stages ? CHUNKS : 1;
    little->parallel.zero                       = 0;
    little->parallel.gradient_reduce            = GRADIENT_REDUCE_STEP;
    little->parallel.deferred_head_gradients    = 0;
    little->parallel.layers_per_chunk_embedding = 0;
    little->parallel.last_chunk_layers          = 0;
    little->model.layers                        = layers;
    little->train.accumulation                  = MICROBATCHES;
    little->train.global_batch                  = MICROBATCHES * little->train.micro_batch * ep;
    little->train.recompute = recomputes_uniformly(request) ? request->train.recompute : RECOMPUTE_NONE;
    little->is_unplaced     = true;
    TRY(mesh_init(&little->mesh, &little->parallel, 0));
    mesh_share_heads(&little->mesh, little->model.kv_heads);
    return OK;
}

static status build(struct plan *plan, const struct plan_request *request, int64_t layers, bool has_stages)
{
    struct plan_request little;
    TRY(shrink(&little, request, layers, has_stages));
    return plan_build_stage(plan, &little, 0);
}

// Times of the forward and backward passes of a plan with few layers.
struct pass_times {
    struct sweep_action actions[SCHEDULE_PASSES * MICROBATCHES * CHUNKS];
};

static status look_at_actions(struct pass_times *pass_times, const struct plan_request *request,
                              const struct machine *machine, int64_t layers)
{
    struct plan plan   = {.tensors = NULL};
    status      result = build(&plan, request, layers * STAGES * CHUNKS, true);
    *pass_times        = (struct pass_times){.actions = {{.through = 0.0}}};
    if (!failed(&result)) {
        sweep_time_actions(pass_times->actions, &plan, machine);
    }
    plan_free(&plan);
    return result;
}

// Sets head[pass] to the compute seconds of the head (layer -1) and the MTP modules in one microbatch, the minimum over
// the microbatches. As in sweep_bound.c, all ops of MTP modules count as part of the backward pass.
static void time_head(double head[SCHEDULE_PASSES], const struct plan *plan, const struct machine *machine)
{
    double seconds[SCHEDULE_PASSES][MICROBATCHES] = {{0.0}};
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        bool is_of_head = op->tag.layer >= plan->model.layers || (op->tag.layer < 0 && op->tag.part != PART_EMBEDDING);
        bool is_forward = op->tag.phase == PHASE_FORWARD && op->tag.layer < 0;
        if (is_of_head && op->stream == STREAM_COMPUTE && op->tag.microbatch >= 0) {
            seconds[is_forward ? SCHEDULE_FORWARD : SCHEDULE_BACKWARD][op->tag.microbatch] +=
                predict_cost(machine, plan, op).seconds;
        }
    }
    for (int pass = 0; pass < SCHEDULE_PASSES; pass++) {
        head[pass] = INFINITY;
        for (int m = 0; m < MICROBATCHES; m++) {
            head[pass] = fmin(head[pass], seconds[pass][m]);
        }
    }
}

// Computes the peak bytes of live activations and the seconds of the head from a plan with one pipeline stage.
static status look_at_step(int64_t *bytes, double head[SCHEDULE_PASSES], const struct plan_request *request,
                           const struct machine *machine, int64_t layers)
{
    struct plan plan   = {.tensors = NULL};
    status      result = build(&plan, request, layers, false);
    if (!failed(&result)) {
        time_head(head, &plan, machine);
    }
    *bytes = plan.activation_live_bytes;
    plan_free(&plan);
    return result;
}

static void find_actions(struct sweep_layer *layer, const struct pass_times *few, const struct pass_times *more)
{
    for (int pass = 0; pass < SCHEDULE_PASSES; pass++) {
        struct sweep_action *first = &layer->first[pass];
        *first                     = (struct sweep_action){INFINITY, INFINITY, INFINITY};
        layer->more[pass]          = INFINITY;
        for (int m = 0; m < MICROBATCHES; m++) {
            int                        place = (pass * MICROBATCHES + m) * CHUNKS + CHUNK;
            const struct sweep_action *one = &few->actions[place], *two = &more->actions[place];
            sweep_take_minimum(first, one);
            layer->more[pass] = fmin(layer->more[pass], two->before + two->through + two->after -
                                                            (one->before + one->through + one->after));
        }
    }
}

void sweep_look_at_layer(struct sweep_layer *layer, const struct plan_request *request, const struct machine *machine)
{
    struct pass_times few, more;
    struct gemm_memo  gemms = {0};
    struct machine    copy  = *machine;
    // The shrunken layouts have fewer ranks, but use the NVLink domain of the full job.
    struct hardware_config hardware = *machine->hardware;
    int64_t                bytes, more_bytes;
    double                 unused[SCHEDULE_PASSES];
    hardware.gpus_per_node = hardware_domain(machine->hardware, request->mesh.world);
    hardware.link_domain   = 0;
    copy.hardware          = &hardware;
    copy.gemms             = &gemms;
    *layer                 = (struct sweep_layer){.bytes = 0};
    if (!has_rough_bound(request)) {
        return;
    }
    status first = look_at_actions(&few, request, &copy, 1), second = look_at_actions(&more, request, &copy, 2);
    status third  = look_at_step(&bytes, layer->head, request, &copy, 1),
           fourth = look_at_step(&more_bytes, unused, request, &copy, 2);
    if (failed(&first) || failed(&second) || failed(&third) || failed(&fourth)) {
        *layer = (struct sweep_layer){.bytes = 0};
        return;
    }
    find_actions(layer, &few, &more);
    // With FP8 linears, live memory includes quantized weights, which exist once for all microbatches.
    bool counts  = recomputes_uniformly(request) && request->precision.low_precision_linears == 0;
    layer->bytes = counts ? more_bytes - bytes : 0;
}

// Returns the times of a pass through a chunk. The last chunk includes layer->head, unless the head's weight gradients
// are deferred.
static struct sweep_action find_action(const struct sweep_layer *layer, const struct plan_request *request, int pass,
                                       int64_t chunk)
{
    struct schedule_assignment assignment = plan_assignment(request);
    int64_t                    layers     = schedule_layers(&assignment, chunk).count;
    bool                has_head = chunk == assignment.chunks - 1 && request->parallel.deferred_head_gradients == 0;
    struct sweep_action action   = layers > 0 ? layer->first[pass] : (struct sweep_action){.through = 0.0};
    action.through += layers > 1 ? (double)(layers - 1) * layer->more[pass] : 0.0;
    action.through += has_head ? layer->head[pass] : 0.0;
    return action;
}

// Returns a rough bound of a layout. A pipeline stage starts its first pass after the earlier stages have finished
// theirs, and ends its last pass before they end theirs. The first stage keeps the activations of up to pp
// microbatches.
struct sweep_bound sweep_find_rough_bound(const struct sweep_layer *layer, const struct plan_request *request)
{
    int64_t                    stages = request->mesh.size[AXIS_PP], all = request->train.accumulation;
    struct schedule_assignment assignment = plan_assignment(request);
    struct sweep_bound         bound      = {.bytes = sweep_state_bytes(request)};
    double                     before     = 0.0;
    for (int64_t stage = 0; stage < stages; stage++) {
        double  own  = 0.0;
        int64_t held = 0;
        for (int64_t chunk = stage; chunk < assignment.chunks; chunk += stages) {
            for (int pass = 0; pass < SCHEDULE_PASSES; pass++) {
                struct sweep_action action = find_action(layer, request, pass, chunk);
                own += (double)all * (action.before + action.through + action.after);
            }
            held += schedule_layers(&assignment, chunk).count;
        }
        struct sweep_action first = find_action(layer, request, SCHEDULE_FORWARD, stage),
                            last  = find_action(layer, request, SCHEDULE_BACKWARD, stage);
        bound.seconds             = fmax(bound.seconds, before + own - first.before - fmax(last.after, 0.0));
        before += first.through + last.through;
        bound.bytes += stage == 0 ? layer->bytes * held * (all < stages ? all : stages) : 0;
    }
    return bound;
}

void sweep_find_actions(struct sweep_bound *bound, const struct sweep_layer *layer, const struct plan_request *request,
                        const struct machine *machine)
{
    struct schedule_shape shape = sweep_shape(request);
    sweep_open_bound(bound, request);
    for (int64_t chunk = 0; chunk < shape.stages * shape.chunks; chunk++) {
        for (int pass = 0; pass < SCHEDULE_PASSES; pass++) {
            for (int64_t m = 0; m < 2; m++) {
                struct schedule_action action = {.pass = (enum schedule_pass)pass, .microbatch = m};
                bound->actions[sweep_place_action(&shape, &action, chunk)] = find_action(layer, request, pass, chunk);
            }
        }
    }
    sweep_walk_bound(bound, request, machine);
}

// SPDX-License-Identifier: MIT
// What a layout takes at least, at a glance: its layers alone, from plans of a few of them on one stage. Layouts that
// cut each layer alike have these plans in common, so that thousands of layouts need a few hundred small plans.
#include <math.h>

#include "gswbench/schedule.h"
#include "internal.h"

// Few enough to be cheap; the second plan has one more, which is neither the first nor the last.
enum { LAYERS = 3, MICROBATCHES = 3 };

static bool has_like_layers(const struct plan_request *request)
{
    return request->model.pattern[0] == '\0';
}

// Layers of which every n-th or the first ones are recomputed are no like ones: of these only the time of one that is
// not counts.
static bool recomputes_alike(const struct plan_request *request)
{
    return request->train.recompute != RECOMPUTE_BLOCK_EVERY && request->train.recompute_layers == 0;
}

bool sweep_is_cut_alike(const struct plan_request *a, const struct plan_request *b)
{
    return a->mesh.size[AXIS_TP] == b->mesh.size[AXIS_TP] && a->mesh.size[AXIS_CP] == b->mesh.size[AXIS_CP] &&
           a->mesh.asked[AXIS_EP] == b->mesh.asked[AXIS_EP] && a->mesh.etp == b->mesh.etp &&
           a->train.micro_batch == b->train.micro_batch && a->train.recompute == b->train.recompute;
}

// One stage, one replica, a few layers.
static status shrink(struct plan_request *little, const struct plan_request *request, int64_t layers)
{
    int64_t ep = request->mesh.size[AXIS_EP];
    *little    = *request;
    mesh_ask(&little->parallel, AXIS_PP, 1);
    mesh_ask(&little->parallel, AXIS_FSDP, 1);
    mesh_ask(&little->parallel, AXIS_DP, ep);
    little->parallel.vp                      = 1;
    little->parallel.zero                    = 0;
    little->parallel.deferred_head_gradients = 0;
    little->model.layers                     = layers;
    little->train.accumulation               = MICROBATCHES;
    little->train.global_batch               = MICROBATCHES * little->train.micro_batch * ep;
    little->train.recompute                  = recomputes_alike(request) ? request->train.recompute : RECOMPUTE_NONE;
    little->is_unplaced                      = true;
    TRY(mesh_init(&little->mesh, &little->parallel, 0));
    mesh_share_heads(&little->mesh, little->model.kv_heads);
    return OK;
}

// By microbatch what the compute lane does: as it walks, its ops alone, and of these the head's.
struct glance {
    double  walked[MICROBATCHES + 1], alone[MICROBATCHES + 1], head[MICROBATCHES + 1];
    int64_t live_bytes;
};

static status look(struct glance *glance, const struct plan_request *request, const struct machine *machine,
                   int64_t layers)
{
    struct plan_request little;
    struct plan         plan;
    struct gemm_memo    gemms   = {0};
    struct machine      pricing = *machine;
    pricing.gemms               = &gemms;
    *glance                     = (struct glance){.live_bytes = 0};
    TRY(shrink(&little, request, layers));
    status result = plan_build_stage(&plan, &little, 0);
    if (!failed(&result)) {
        sweep_time_microbatches(glance->walked, &plan, &pricing);
        for (int32_t i = 0; i < plan.op_count; i++) {
            const struct op *op      = &plan.ops[i];
            double           seconds = op->lane == LANE_COMPUTE ? predict_price_op(&pricing, &plan, op).seconds : 0.0;
            glance->alone[op->tag.microbatch + 1] += seconds;
            glance->head[op->tag.microbatch + 1] += op->tag.layer == layers ? seconds : 0.0;
        }
        glance->live_bytes = plan.activation_live_bytes;
    }
    plan_free(&plan);
    return result;
}

void sweep_look_at_layer(struct sweep_layer *layer, const struct plan_request *request, const struct machine *machine)
{
    struct glance few, more;
    *layer = (struct sweep_layer){.walked = 0.0};
    if (!has_like_layers(request)) {
        return;
    }
    status first = look(&few, request, machine, LAYERS), second = look(&more, request, machine, LAYERS + 1);
    if (failed(&first) || failed(&second)) {
        return;
    }
    layer->walked = layer->alone = layer->head = INFINITY;
    for (int m = 1; m <= MICROBATCHES; m++) {
        layer->walked = fmin(layer->walked, more.walked[m] - few.walked[m]);
        layer->alone  = fmin(layer->alone, more.alone[m] - few.alone[m]);
        layer->head   = fmin(layer->head, few.head[m]);
    }
    layer->walked = fmax(layer->walked, layer->alone);
    // With narrow linears copies of weights are among what is live, once a step and not for each microbatch.
    bool counts  = recomputes_alike(request) && request->precision.narrow_linears == 0;
    layer->bytes = counts ? more.live_bytes - few.live_bytes : 0;
}

// A turn of so many layers, both ways. What its first layer waits for may have come before it begins.
static double turn_seconds(const struct sweep_layer *layer, int64_t layers)
{
    return layers > 0 ? (double)(layers - 1) * layer->walked + layer->alone : 0.0;
}

// A stage has its first turn when those before it have had theirs, and its last before theirs; behind that the weight
// gradient of one layer may be left. The first stage keeps what as many microbatches as there are stages have left.
struct sweep_bound sweep_find_rough_bound(const struct sweep_layer *layer, const struct plan_request *request)
{
    int64_t              stages = request->mesh.size[AXIS_PP], all = request->train.accumulation;
    struct schedule_deal deal   = plan_deal(request);
    struct sweep_bound   bound  = {.bytes = sweep_state_bytes(request)};
    double               before = 0.0;
    for (int64_t stage = 0; stage < stages; stage++) {
        double  own  = 0.0;
        int64_t held = 0;
        for (int64_t chunk = stage; chunk < deal.chunks; chunk += stages) {
            int64_t layers   = schedule_layers(&deal, chunk).count;
            bool    has_head = chunk == deal.chunks - 1 && request->parallel.deferred_head_gradients == 0;
            own += (double)all * (turn_seconds(layer, layers) + (has_head ? layer->head : 0.0));
            held += layers;
        }
        bound.seconds = fmax(bound.seconds, before + own - (before > 0.0 ? layer->alone : 0.0));
        before += turn_seconds(layer, schedule_layers(&deal, stage).count);
        bound.bytes += stage == 0 ? layer->bytes * held * (all < stages ? all : stages) : 0;
    }
    return bound;
}

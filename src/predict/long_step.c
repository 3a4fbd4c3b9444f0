// SPDX-License-Identifier: MIT
// Predicts a step that has more ops than a plan may have, from two steps with fewer microbatches. Both have enough
// microbatches to fill the pipeline and to defer as many head gradients as the whole step (deferred_head_gradients).
// So each further microbatch adds the same time.
#include <math.h>

#include "internal.h"

struct short_step {
    struct prediction prediction;
    struct waterfall  waterfall;    // without the wait for the slowest replica, which is not linear in the microbatches
    double            seconds;      // simulated seconds, without step_overhead and the wait for the slowest replica
};

static status predict_short(struct short_step *step, const struct predict_explanation *explanation,
                            const struct plan_request *request, int64_t microbatches, const struct machine *machine)
{
    struct plan_request        shorter = plan_shorten(request, microbatches);
    struct predict_explanation own     = *explanation;
    own.ideal_seconds *= (double)shorter.train.accumulation / (double)request->train.accumulation;
    TRY(predict_explain(&own, &step->prediction, &shorter, machine));
    step->waterfall = own.waterfall;
    step->waterfall.seconds[WATERFALL_STRAGGLERS] -= step->prediction.straggler_seconds;
    step->seconds =
        step->prediction.step_seconds - step->prediction.straggler_seconds - machine->software->step_overhead.value;
    return OK;
}

static int64_t extend_bytes(int64_t first, int64_t second, double more)
{
    return second + (int64_t)((double)(second - first) * more);
}

// Extrapolates each part of the waterfall linearly. A part that shrinks with more microbatches, such as exposed
// gradient communication, stops at zero. All parts are then scaled to keep the sum.
static void extend_waterfall(struct waterfall *waterfall, const struct short_step *first,
                             const struct short_step *second, double more)
{
    double sum = 0.0, kept = 0.0;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        double seconds =
            second->waterfall.seconds[part] + (second->waterfall.seconds[part] - first->waterfall.seconds[part]) * more;
        waterfall->seconds[part] = fmax(seconds, 0.0);
        sum += seconds;
        kept += waterfall->seconds[part];
    }
    for (int part = 0; part < WATERFALL_PARTS && kept > 0.0; part++) {
        waterfall->seconds[part] *= sum / kept;
    }
}

// Extrapolates the memory. Once the pipeline is full, the memory grows with the microbatches only if the framework has
// a buffer for each microbatch.
static void extend_footprint(struct footprint *footprint, const struct footprint *first, double more)
{
    for (int part = 0; part < FOOTPRINT_PARTS; part++) {
        footprint->bytes[part] = extend_bytes(first->bytes[part], footprint->bytes[part], more);
    }
    footprint->allocated = extend_bytes(first->allocated, footprint->allocated, more);
    footprint->reserved  = extend_bytes(first->reserved, footprint->reserved, more);
    footprint->device    = extend_bytes(first->device, footprint->device, more);
}

status predict_long_step(struct predict_explanation *explanation, struct prediction *prediction,
                         const struct plan_request *request, const struct machine *machine)
{
    struct short_step first, second;
    int64_t           longer = plan_enough_microbatches(request), shorter = longer * 2 / 3;
    double            more = (double)(request->train.accumulation - longer) / (double)(longer - shorter);
    TRY(predict_short(&first, explanation, request, shorter, machine));
    TRY(predict_short(&second, explanation, request, longer, machine));
    double seconds = second.seconds + (second.seconds - first.seconds) * more;
    *prediction    = second.prediction;
    if (machine->software->pipeline_buffers) {
        extend_footprint(&prediction->footprint, &first.prediction.footprint, more);
    }
    extend_waterfall(&explanation->waterfall, &first, &second, more);
    prediction->step_seconds = predict_whole_seconds(request, machine, seconds);
    prediction->straggler_seconds =
        fmax(prediction->step_seconds - seconds - machine->software->step_overhead.value, 0.0);
    explanation->waterfall.seconds[WATERFALL_STRAGGLERS] += prediction->straggler_seconds;
    return OK;
}

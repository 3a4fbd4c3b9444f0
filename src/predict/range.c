// SPDX-License-Identifier: MIT
// How far a prediction may be off: every value is moved by its spread, one at a time, and what the step then takes
// longer or shorter adds up as independent errors do, with what the program is off by besides.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/predict.h"

// A step is so much once and so much for each microbatch: two short steps tell what a long one takes. A pipeline is
// full with as many microbatches as it has stages.
enum { STEPS = 2 };

struct probe {
    struct predict_range   *range;
    struct plan_request     requests[STEPS];
    struct predict_pipeline pipelines[STEPS];
    int                     step_count;
    struct machine          machine;
    int64_t                 microbatches;
    double                  step_seconds;    // with all values as they are
    double                  squares;
};

static status probe_open(struct probe *probe, const struct plan_request *request)
{
    int64_t enough = request->mesh.size[AXIS_PP], all = request->train.accumulation;
    status  result      = OK;
    probe->microbatches = all;
    probe->step_count   = all > STEPS * enough ? STEPS : 1;
    for (int i = 0; i < probe->step_count && !failed(&result); i++) {
        probe->requests[i]         = *request;
        struct train_config *train = &probe->requests[i].train;
        train->accumulation        = probe->step_count > 1 ? (i + 1) * enough : all;
        train->global_batch        = train->global_batch / all * train->accumulation;
        result                     = predict_pipeline_init(&probe->pipelines[i], &probe->requests[i]);
    }
    return result;
}

static void probe_close(struct probe *probe)
{
    for (int i = 0; i < probe->step_count; i++) {
        predict_pipeline_free(&probe->pipelines[i]);
    }
}

static status predict_step(struct probe *probe, double *seconds)
{
    struct prediction predictions[STEPS] = {{.step_seconds = 0.0}};
    for (int i = 0; i < probe->step_count; i++) {
        TRY(predict_time_pipeline(&predictions[i], &probe->pipelines[i], &probe->requests[i], &probe->machine));
    }
    *seconds = predictions[0].step_seconds;
    if (probe->step_count > 1) {
        double first  = (double)probe->requests[0].train.accumulation,
               second = (double)probe->requests[1].train.accumulation;
        *seconds += (predictions[1].step_seconds - predictions[0].step_seconds) *
                    ((double)probe->microbatches - first) / (second - first);
    }
    return OK;
}

// What the step takes longer, in percent.
static status compare(struct probe *probe, double *percent)
{
    double moved;
    TRY(predict_step(probe, &moved));
    *percent = 100.0 * (moved / probe->step_seconds - 1.0);
    return OK;
}

static void note(struct probe *probe, const char *section, const char *key, double percent)
{
    struct predict_range *range = probe->range;
    probe->squares += percent * percent;
    if (range->effect_count < PREDICT_EFFECTS_MAX) {
        range->effects[range->effect_count++] = (struct predict_effect){section, key, percent};
    }
}

// The section is the machine's own copy.
static status move_values(struct probe *probe, const char *name, const struct option *options, void *section)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        struct quantity *quantity = option->type == OPTION_QUANTITY ? option_quantity(option, section) : NULL;
        if (quantity == NULL || quantity->value * quantity->spread_percent == 0.0) {
            continue;
        }
        double value = quantity->value, percent;
        quantity->value *= 1.0 + quantity->spread_percent / 100.0;
        TRY(compare(probe, &percent));
        quantity->value = value;
        note(probe, name, option->key, percent);
    }
    return OK;
}

// Ops that were measured in one go are off together.
static status move_measured(struct probe *probe)
{
    const struct measured_ops *measured = probe->machine.measured;
    if (measured == NULL || measured->count == 0) {
        return OK;
    }
    struct measured_ops moved = {.ops   = memory_allocate((size_t)measured->count * sizeof(*moved.ops)),
                                 .count = measured->count};
    for (int32_t i = 0; i < measured->count; i++) {
        moved.ops[i] = measured->ops[i];
        moved.ops[i].seconds.value *= 1.0 + moved.ops[i].seconds.spread_percent / 100.0;
    }
    double percent          = 0.0;
    probe->machine.measured = &moved;
    status result           = compare(probe, &percent);
    probe->machine.measured = measured;
    measured_free(&moved);
    note(probe, "measured", "all ops", percent);
    return result;
}

// What no value stands for.
static void add_residual(struct probe *probe, const struct software_config *software)
{
    bool   has_experts = probe->requests[0].model.experts > 0;
    double percent     = has_experts ? software->expert_residual.value : software->residual.value;
    if (percent > 0.0) {
        note(probe, "software", has_experts ? "expert_residual" : "residual", percent);
    }
}

static status move_all(struct probe *probe, struct hardware_config *hardware, struct software_config *software)
{
    TRY(predict_step(probe, &probe->step_seconds));
    TRY(move_values(probe, "hardware", hardware_options, hardware));
    TRY(move_values(probe, "software", software_options, software));
    add_residual(probe, software);
    return move_measured(probe);
}

status predict_range(struct predict_range *range, const struct plan_request *request, const struct machine *machine)
{
    struct hardware_config hardware = *machine->hardware;
    struct software_config software;
    struct probe           probe = {.range = range, .machine = *machine};
    if (machine->software != NULL) {
        software = *machine->software;
    } else {
        option_set_defaults(software_options, &software);
    }
    probe.machine.hardware = &hardware;
    probe.machine.software = &software;
    *range                 = (struct predict_range){.percent = 0.0};
    status result          = probe_open(&probe, request);
    if (!failed(&result)) {
        result = move_all(&probe, &hardware, &software);
    }
    probe_close(&probe);
    range->percent = sqrt(probe.squares);
    return result;
}

// SPDX-License-Identifier: MIT
// Predicts the step time: the simulated pipeline (pipeline.c, simulate.c), plus the wait for the slowest replica, plus
// a fixed overhead per step.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "internal.h"

static status unknown(const char *name)
{
    return fail("[hardware] %s is unknown: set it, or use a profile that has it, e.g. --gpu h100-sxm; gswbench "
                "calibrate writes one of this machine",
                name);
}

// Suggests another --gpu, except for FP32: no installed profile has an FP32 peak.
static status unknown_peak(const struct hardware_config *hardware, enum rate rate)
{
    char        key[32];
    const char *profile = rate == RATE_FP32 ? "" : " another --gpu such as h100-sxm,";
    snprintf(key, sizeof(key), "peak_%s", rate_names[rate]);
    if (hardware->profile[0] == '\0' || strcmp(hardware->profile, "none") == 0) {
        return unknown(key);
    }
    return fail("[hardware] %s is unknown: %s has no %s; use --precision bf16,%s or set the peak", key,
                hardware->profile, rate_names[rate], profile);
}

status predict_supports(const struct plan_request *request, const struct hardware_config *hardware)
{
    const struct {
        const char *key;
        double      value;
        bool        is_needed;
    } facts[] = {
        {"multiprocessors", (double)hardware->multiprocessors, true},
        {"memory_bandwidth", hardware->memory_bandwidth.value, true},
        {"node_bandwidth", hardware->node_bandwidth.value, request->mesh.world > 1},
        {"network_bandwidth", hardware->network_bandwidth.value,
         request->mesh.world > hardware_domain(hardware, request->mesh.world)},
    };
    struct plan_request shorter = plan_shorten(request, plan_enough_microbatches(request));
    TRY(plan_supports(&shorter));
    for (int rate = 0; rate < RATE_COUNT; rate++) {
        bool is_needed = (precision_rates(&request->precision) >> rate & 1u) != 0;
        if (is_needed && hardware->peak[rate].value == 0.0) {
            return unknown_peak(hardware, (enum rate)rate);
        }
    }
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        if (facts[i].is_needed && facts[i].value == 0.0) {
            return unknown(facts[i].key);
        }
    }
    return OK;
}

// Returns the expected maximum of `count` standard normal values, by Blom's approximation.
static double expect_largest(double count)
{
    double target = (count - 0.375) / (count + 0.25), low = 0.0, high = 8.0;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2.0;
        if (0.5 * erfc(-middle / sqrt(2.0)) < target) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Returns the seconds that data-parallel ranks (dp x fsdp) wait for the slowest rank. If they reduce gradients once per
// step, jitter averages out over the microbatches. If they reduce gradients in every microbatch, each microbatch waits
// for its slowest rank. Each microbatch also exchanges FP8 amax values, at a constant cost (fp8_synchronization). If
// each of these exchanges waited for the slowest rank, predictions for thousands of GPUs would exceed the published
// step times.
static double straggler_seconds(const struct plan_request *request, const struct machine *machine, double seconds)
{
    double microbatches = (double)request->train.accumulation;
    double waiting      = (double)(request->parallel.dp * request->parallel.fsdp);
    bool   sums_each    = request->parallel.gradient_reduce == GRADIENT_REDUCE_MICROBATCH;
    double synchronization =
        request->precision.compute == COMPUTE_FP8 ? machine->software->fp8_synchronization.value : 0.0;
    return seconds * machine->hardware->jitter.value * expect_largest(waiting) / sqrt(sums_each ? 1.0 : microbatches) +
           synchronization * microbatches;
}

double predict_whole_seconds(const struct plan_request *request, const struct machine *machine, double seconds)
{
    return seconds + straggler_seconds(request, machine, seconds) + machine->software->step_overhead.value;
}

struct cost predict_cost(const void *state, const struct plan *plan, const struct op *op)
{
    struct op loaded = plan_op_of_load(plan, op);
    return predict_cost_op(state, plan, &loaded);
}

// Sums up the simulation. The pipeline stage that finishes last ends the step. The stage with the longest compute time
// (busiest_stage) provides the waterfall.
static void sum_up(struct prediction *prediction, const struct predict_pipeline *pipeline,
                   const struct actor_time *times)
{
    double simulated = 0.0, computed = 0.0;
    prediction->stages = pipeline->simulation.actor_count;
    for (int32_t actor = 0; actor < pipeline->simulation.actor_count; actor++) {
        const struct predict_stage *stage = &pipeline->stages[actor];
        simulated                         = fmax(simulated, times[actor].end_seconds + stage->stall_seconds);
        computed += times[actor].compute_seconds;
        if (times[actor].compute_seconds > times[prediction->busiest_stage].compute_seconds) {
            prediction->busiest_stage = actor;
        }
        if (stage->bytes > prediction->largest_bytes) {
            prediction->largest_bytes = stage->bytes;
            prediction->largest_rank  = stage->rank;
        }
    }
    const struct predict_stage *busiest  = &pipeline->stages[prediction->busiest_stage];
    double                      computes = times[prediction->busiest_stage].compute_seconds;
    prediction->imbalance_percent = 100.0 * (computes * (double)pipeline->simulation.actor_count / computed - 1.0);
    prediction->measured_percent  = 100.0 * busiest->measured_seconds / busiest->compute_seconds;
    prediction->step_seconds      = simulated;
}

// Allocates the times of every actor; if has_tasks is set, also the times of its tasks.
static struct actor_time *times_open(const struct predict_pipeline *pipeline, bool has_tasks)
{
    struct actor_time *times = memory_allocate((size_t)pipeline->simulation.actor_count * sizeof(*times));
    for (int32_t actor = 0; actor < pipeline->simulation.actor_count && has_tasks; actor++) {
        size_t count       = (size_t)pipeline->simulation.actors[actor].task_count;
        times[actor].tasks = memory_allocate(count * sizeof(*times[actor].tasks));
    }
    return times;
}

static void times_close(const struct predict_pipeline *pipeline, struct actor_time *times)
{
    for (int32_t actor = 0; actor < pipeline->simulation.actor_count; actor++) {
        free(times[actor].tasks);
    }
    free(times);
}

// Assigns pipeline stages to nodes. Ranks without a GPU share the CPU cores of their node.
static void place_actors(struct predict_pipeline *pipeline, const struct plan_request *request,
                         const struct hardware_config *hardware)
{
    struct simulation *simulation = &pipeline->simulation;
    double             sharers    = fmin((double)hardware->core_ranks, (double)request->mesh.world);
    double             per_stage  = (double)request->mesh.world / simulation->actor_count;
    simulation->cores             = (struct simulated_cores){.count   = (double)hardware->cores,
                                                             .threads = fmax(floor((double)hardware->cores / sharers), 1.0),
                                                             .communication_delay = hardware->communication_delay.value};
    for (int32_t i = 0; i < simulation->actor_count; i++) {
        simulation->actors[i].ranks = fmin(per_stage, sharers);
        simulation->actors[i].node =
            i == 0 ? 0
                   : simulation->actors[i - 1].node + (pipeline->stages[i].rank / hardware->core_ranks !=
                                                       pipeline->stages[i - 1].rank / hardware->core_ranks);
    }
}

// Computes the cost of every task and simulates the job. Fills times[].tasks if it is not NULL.
static status time_pipeline(struct prediction *prediction, struct predict_pipeline *pipeline, struct actor_time *times,
                            const struct plan_request *request, const struct machine *machine)
{
    const struct hardware_config *hardware = machine->hardware;
    struct gemm_memo              gemms    = {0};
    struct machine                copy     = *machine;
    copy.gemms                             = &gemms;
    *prediction                            = (struct prediction){.stages = 0};
    predict_pipeline_cost(pipeline, &(struct cost_model){.cost = predict_cost, .state = &copy});
    place_actors(pipeline, request, hardware);
    pipeline->simulation.contention = hardware->contention.value;
    pipeline->simulation.processors = hardware->cores > 0 ? 0.0 : (double)hardware->multiprocessors;
    pipeline->simulation.sm_margin  = (int32_t)machine->sm_margin;
    TRY(simulate(&pipeline->simulation, times));
    sum_up(prediction, pipeline, times);
    prediction->straggler_seconds = straggler_seconds(request, machine, prediction->step_seconds);
    prediction->step_seconds += prediction->straggler_seconds + machine->software->step_overhead.value;
    return OK;
}

status predict_time_pipeline(struct prediction *prediction, struct predict_pipeline *pipeline,
                             const struct plan_request *request, const struct machine *machine)
{
    struct actor_time *times  = times_open(pipeline, false);
    status             result = time_pipeline(prediction, pipeline, times, request, machine);
    times_close(pipeline, times);
    return result;
}

// Replaces *largest by the plan's footprint if that reserves more. `device` is the maximum of both in any case, because
// middle pipeline stages have more connections. Returns the bytes of connections and context in gswbench itself.
static int64_t take_larger(struct footprint *largest, const struct plan *plan, const struct machine *machine)
{
    struct footprint footprint;
    int64_t          own    = footprint_find(&footprint, plan, machine->software, machine->hardware,
                                             hardware_domain(machine->hardware, plan->mesh.world));
    int64_t          device = footprint.device > largest->device ? footprint.device : largest->device;
    if (footprint.reserved > largest->reserved) {
        *largest = footprint;
    }
    largest->device = device;
    return own;
}

int64_t predict_device_bytes(const struct prediction *prediction, const struct software_config *software)
{
    int64_t own = prediction->own_bytes, program = prediction->footprint.device;
    return footprint_is_modelled(software) && program > own ? program : own;
}

// Finds the largest footprint of the pipeline stages. If all layers need the same memory, stages between the second and
// the last need at most the memory of the second. Enough microbatches to fill the pipeline suffice, unless the
// framework has a buffer per microbatch.
status predict_footprint(struct footprint *largest, const struct plan_request *request, const struct machine *machine)
{
    bool                needs_all       = machine->software->pipeline_buffers != 0;
    bool                has_like_layers = request->model.pattern[0] == '\0' && machine->software->offloaded_layers == 0;
    int64_t             enough  = needs_all ? request->train.accumulation : sweep_enough_microbatches(request, true);
    struct plan_request shorter = plan_shorten(request, enough);
    int64_t             last    = request->mesh.size[AXIS_PP] - 1;
    *largest                    = (struct footprint){.allocated = 0};
    shorter.is_unplaced         = true;
    for (int64_t stage = 0; stage <= last; stage = has_like_layers && stage == 1 && last > 2 ? last : stage + 1) {
        struct plan plan;
        status      built = plan_build_stage(&plan, &shorter, stage);
        if (!failed(&built)) {
            take_larger(largest, &plan, machine);
        }
        plan_free(&plan);
        TRY(built);
    }
    return OK;
}

status predict_explain(struct predict_explanation *explanation, struct prediction *prediction,
                       const struct plan_request *request, const struct machine *machine)
{
    struct predict_pipeline    pipeline;
    struct predict_explanation unused = {.ideal_seconds = 0.0};
    TRY(predict_supports(request, machine->hardware));
    if (plan_is_long(request) && (explanation == NULL || explanation->visit == NULL)) {
        return predict_long_step(explanation != NULL ? explanation : &unused, prediction, request, machine);
    }
    status result = predict_pipeline_init(&pipeline, request);
    if (!failed(&result)) {
        struct actor_time *times = times_open(&pipeline, explanation != NULL);
        result                   = time_pipeline(prediction, &pipeline, times, request, machine);
        for (int32_t stage = 0; stage < pipeline.simulation.actor_count && !failed(&result); stage++) {
            int64_t own = pipeline.stages[stage].bytes +
                          take_larger(&prediction->footprint, &pipeline.stages[stage].plan, machine);
            prediction->own_bytes = own > prediction->own_bytes ? own : prediction->own_bytes;
        }
        if (!failed(&result) && explanation != NULL) {
            explain_pipeline(explanation, prediction, &(struct explained){machine, &pipeline, times});
        }
        times_close(&pipeline, times);
    }
    predict_pipeline_free(&pipeline);
    return result;
}

status predict(struct prediction *prediction, const struct plan_request *request, const struct machine *machine)
{
    return predict_explain(NULL, prediction, request, machine);
}

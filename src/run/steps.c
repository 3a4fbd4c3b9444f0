// SPDX-License-Identifier: MIT
// The timed step loop. Ranks start a step together after a barrier, and each times it from its first op to the end of
// its last. Inputs are filled before the barrier; losses and times are exchanged after the step. With [run] graphs =
// auto, the loop also decides whether to replay the step as a CUDA graph, which saves host time. On one node it
// replays. On several nodes, NCCL's network proxy threads also need host time, so it times warm-up steps both ways and
// keeps the faster one.
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/clock.h"
#include "gswbench/report.h"
#include "gswbench/statistics.h"
#include "internal.h"

enum { TRIED_MAX = 3 };

struct graphs_plan graphs_plan(enum graphs choice, bool can_capture, int nodes, int64_t warmup)
{
    struct graphs_plan plan = {.capture_after = -1};
    if (choice == GRAPHS_OFF || !can_capture) {
        return plan;
    }
    // Each mode gets at most half of the warm-up steps. The first step and the first replay are cold and do not count.
    int64_t room       = (warmup - 2) / 2;
    plan.tried         = choice != GRAPHS_AUTO || nodes == 1 || room < 1 ? 0 : room < TRIED_MAX ? room : TRIED_MAX;
    plan.capture_after = plan.tried;
    return plan;
}

bool graphs_is_captured_faster(const struct graphs_plan *plan, const struct result_step *steps, double seconds[2])
{
    double times[2][TRIED_MAX];
    for (int64_t i = 0; i < plan->tried; i++) {
        times[0][i] = steps[1 + i].seconds;
        times[1][i] = steps[plan->capture_after + 2 + i].seconds;
    }
    seconds[0] = statistics_median(times[0], plan->tried);
    seconds[1] = statistics_median(times[1], plan->tried);
    return seconds[1] <= seconds[0];
}

// Captures the step as a CUDA graph on all ranks, or on none if one rank cannot. Eager and replayed ranks must not be
// mixed.
static status capture(struct steps *steps)
{
    ranges_begin(steps->ranges, RANGE_CAPTURE, 0);
    double began = clock_seconds();
    status own   = step_capture(steps->step);
    steps->result->capture_seconds += clock_seconds() - began;
    ranges_end(steps->ranges);
    status captured = comm_agree(steps->comm, own);
    if (!failed(&captured)) {
        return OK;
    }
    FAIL_AS_IF(steps->benchmark->job.config.run.graphs == GRAPHS_ON, captured.exit_code,
               "[run] graphs = on: %.800s; use graphs = auto to run without a CUDA graph", captured.text);
    step_forget(steps->step);
    steps->graphs.tried = 0;
    result_note(steps->result, NOTE("graphs-off"), "no CUDA graph, ops are launched one by one: %.180s", captured.text);
    return OK;
}

status graphs_follow(struct steps *steps, int64_t index)
{
    if (index == 0 && steps->backend->ops->streams != NULL && steps->plan->row_count_total > 0 &&
        steps->benchmark->job.config.run.graphs == GRAPHS_AUTO) {
        result_note(steps->result, NOTE("graphs-off"),
                    "no CUDA graph, ops are launched one by one: dropless experts need token counts on the host");
    }
    return index == steps->graphs.capture_after ? capture(steps) : OK;
}

// Drops the CUDA graph if eager steps were faster. Rank 0 decides, so that all ranks do the same.
void graphs_decide(struct steps *steps, int64_t index)
{
    const struct graphs_plan *plan   = &steps->graphs;
    struct result            *result = steps->result;
    double                    seconds[2];
    if (plan->tried == 0 || index != plan->capture_after + 1 + plan->tried) {
        return;
    }
    int32_t stays = graphs_is_captured_faster(plan, result->steps, seconds);
    steps->comm->ops->share(steps->comm, &stays, sizeof(stays), 0);
    result->eager_seconds  = seconds[0];
    result->replay_seconds = seconds[1];
    if (stays == 0) {
        step_forget(steps->step);
    }
    result_note(result, NOTE("graphs-timed"),
                "on %d nodes, a step takes %.6g s as a CUDA graph and %.6g s op by op (medians of %" PRId64
                " warm-up steps each): steps run %s",
                steps->comm->topology.nodes, seconds[1], seconds[0], plan->tried,
                stays != 0 ? "as a CUDA graph" : "op by op");
}

#define PROCESSOR_TIMES "/proc/stat"

// Values of a rank that all ranks exchange after each step.
struct step_facts {
    double                seconds, device_seconds, compute_seconds;
    float                 loss, prediction_loss, gradient_norm;
    float                 clip_scale;    // the factor that AdamW applied to this rank's gradients
    int32_t               signal;        // signal that the process caught; 0: none
    int32_t               has_failed;    // on rank 0: it cannot write its output
    int32_t               is_enough;     // on rank 0: the steps before this one were precise enough for run.until
    struct step_departure departure;     // ops that the step left out; planned is 0 if it left out none
};

static float read_scalar(const struct step *step, int32_t tensor)
{
    float value = NAN;    // stays NaN if the plan has no such tensor
    if (tensor >= 0) {
        step_read(step, tensor, &value);
    }
    return value;
}

void steps_fill(const struct steps *steps, int64_t index)
{
    const struct run_config *run = &steps->benchmark->job.config.run;
    data_fill(steps->step, steps->plan, (enum data_kind)run->data, (uint64_t)run->seed,
              steps->result->checkpoint.first_step + index);
}

double steps_run_one(const struct steps *steps, int64_t index)
{
    steps_fill(steps, index);
    steps->comm->ops->barrier(steps->comm);
    ranges_begin(steps->ranges, RANGE_STEP, index);
    double begin = clock_seconds();
    step_run(steps->step);
    double seconds = clock_seconds() - begin;
    ranges_end(steps->ranges);
    return seconds;
}

void fault_begin(struct steps *steps, int64_t index, bool is_repetition)
{
    const struct fault_config *fault = &steps->benchmark->job.config.fault;
    bool                       is_on = fault->kind == FAULT_SLOW ? index >= fault->step : index == fault->step;
    if (steps->fault.kind != FAULT_NONE && is_on && (!is_repetition || fault->repeats != 0)) {
        step_set_fault(steps->step, &steps->fault);
    }
}

static struct step_facts run_step(const struct steps *steps, int64_t index)
{
    double                seconds   = steps_run_one(steps, index);
    struct step_departure departure = {.planned = 0};
    step_followed_plan(steps->step, &departure);
    return (struct step_facts){.seconds         = seconds,
                               .device_seconds  = step_device_seconds(steps->step),
                               .compute_seconds = step_compute_seconds(steps->step),
                               .loss            = read_scalar(steps->step, steps->plan->loss),
                               .prediction_loss = read_scalar(steps->step, steps->plan->prediction_loss),
                               .gradient_norm   = read_scalar(steps->step, steps->plan->gradient_norm),
                               .clip_scale      = read_scalar(steps->step, steps->plan->clip_scale),
                               .departure       = departure};
}

// Makes the run INVALID if a rank's clip scale, the factor that limits the gradient norm, is NaN. AdamW then skips the
// update on this rank, so its weights differ from the other ranks' although loss and norm are finite.
static void check_clip_scales(struct steps *steps, int64_t index, const struct step_facts *facts)
{
    for (int rank = 0; rank < steps->comm->topology.ranks && steps->plan->clip_scale >= 0; rank++) {
        if (isfinite(facts[rank].gradient_norm) && !isfinite(facts[rank].clip_scale) &&
            steps->result->verdict < VERDICT_INVALID) {
            result_note(steps->result, (struct result_reason){"scale-not-finite", VERDICT_INVALID, rank, index, ""},
                        "step %" PRId64 ", rank %d: the clip scale is %g, but loss and gradient norm are finite: AdamW "
                        "did not update the weights of this rank",
                        index, rank, (double)facts[rank].clip_scale);
            return;
        }
    }
}

static void check_departures(struct steps *steps, int64_t index, const struct step_facts *facts)
{
    for (int rank = 0; rank < steps->comm->topology.ranks && steps->result->verdict < VERDICT_INVALID; rank++) {
        const struct step_departure *departure = &facts[rank].departure;
        if (departure->planned > 0) {
            result_note(steps->result, (struct result_reason){"ops-left-out", VERDICT_INVALID, rank, index, ""},
                        "step %" PRId64 ", rank %d: the %s stream executed %d ops, not the plan's %d in order", index,
                        rank, op_stream_name((enum stream)departure->stream), departure->executed, departure->planned);
        }
    }
}

// Records a step with the time of the slowest rank. All ranks must report the same loss and gradient norm, because both
// are global.
static void record(struct steps *steps, int64_t index, const struct step_facts *facts)
{
    struct result      *result = steps->result;
    struct result_step *step   = &result->steps[result->step_count++];
    *step                      = (struct result_step){.index           = index,
                                                      .phase           = index < result->planned_warmup ? STEP_WARMUP : STEP_MEASURE,
                                                      .seconds         = facts[0].seconds,
                                                      .rank0_seconds   = facts[0].seconds,
                                                      .device_seconds  = facts[0].device_seconds,
                                                      .loss            = facts[0].loss,
                                                      .prediction_loss = facts[0].prediction_loss,
                                                      .gradient_norm   = facts[0].gradient_norm,
                                                      .dropped         = NAN,
                                                      .is_run_twice    = validation_repeats(steps, index)};
    bool agree                 = true;
    for (int rank = 1; rank < steps->comm->topology.ranks; rank++) {
        if (facts[rank].seconds > step->seconds) {
            step->seconds      = facts[rank].seconds;
            step->slowest_rank = rank;
        }
        agree &= memcmp(&facts[rank].loss, &facts[0].loss, sizeof(float)) == 0 &&
                 memcmp(&facts[rank].gradient_norm, &facts[0].gradient_norm, sizeof(float)) == 0;
    }
    if (!agree && result->verdict < VERDICT_INVALID) {
        result_note(result, (struct result_reason){"ranks-differ", VERDICT_INVALID, -1, index, ""},
                    "step %" PRId64 ": loss or gradient norm is not the same on all ranks", index);
    }
}

static void record_compute_times(struct steps *steps, const struct step_facts *facts)
{
    const struct comm_topology *topology = &steps->comm->topology;
    double                     *seconds  = memory_allocate((size_t)topology->ranks * sizeof(*seconds));
    for (int rank = 0; rank < topology->ranks; rank++) {
        seconds[rank] = facts[rank].compute_seconds;
    }
    compute_times_add(steps->observed.compute_times, topology, seconds, steps->result);
    free(seconds);
}

// Adds the statistics of expert routing, which the step has summed over all ranks.
static void record_routing(struct steps *steps)
{
    int32_t tensor = steps->plan->routing;
    if (tensor >= 0) {
        float *routing = memory_allocate((size_t)steps->plan->tensors[tensor].bytes);
        step_read(steps->step, tensor, routing);
        result_add_routing(steps->result, routing, steps->plan->model.experts);
        free(routing);
    }
}

static bool print_step(struct steps *steps, int64_t index)
{
    const struct benchmark   *benchmark = steps->benchmark;
    const struct result_step *step      = &steps->result->steps[index];
    bool                      prints    = !benchmark->json && !benchmark->is_quiet;
    if (prints) {
        const struct config *config = &benchmark->job.config;
        report_write_styled_step(steps->result, step, config->run.log_style, config->train.learning_rate, stdout);
    }
    if (!benchmark->is_quiet && !(prints && isatty(STDOUT_FILENO))) {
        char seconds[32];
        snprintf(seconds, sizeof(seconds), "%.3f s/step", step->seconds);
        steps->progress.total = steps->result->planned_steps;
        progress_show(&steps->progress, index + 1, seconds);
    }
    return !prints || fflush(stdout) == 0;
}

// Writes a step to the journal and then prints it, so that every printed step can be recovered.
static status keep_step(struct steps *steps, int64_t index)
{
    watch_enter_file(steps->hang_watch, steps->journal->path);
    TRY(journal_add_step(steps->journal, steps->result));
    watch_enter_file(steps->hang_watch, "standard output");    // blocks if it is a pipe that nobody reads
    pthread_mutex_lock(&steps->printing);
    bool is_printed = print_step(steps, index);
    pthread_mutex_unlock(&steps->printing);
    return is_printed ? OK : output_cannot("write to", "standard output");
}

// Returns a signal that some rank caught, or 0. All ranks return the same.
static int find_signal(const struct step_facts *facts, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        if (facts[rank].signal != 0) {
            return facts[rank].signal;
        }
    }
    return 0;
}

static bool are_finite(const struct step_facts *facts, int ranks)
{
    bool are = true;
    for (int rank = 0; rank < ranks; rank++) {
        are &= isfinite(facts[rank].loss) && isfinite(facts[rank].gradient_norm);
    }
    return are;
}

bool steps_test_precision(int64_t count)
{
    int64_t interval = 1;
    while (count >= 64 * interval) {
        interval *= 2;
    }
    return count % interval == 0;
}

// Returns on rank 0 whether the result is as precise as run.until asks. The other ranks learn this with the values of
// the next step (was_enough). All ranks then run one more step, because they must know in advance which step is the
// last, to verify it.
static bool decide_end(struct steps *steps, int64_t index, bool was_enough)
{
    const struct run_config *run = &steps->benchmark->job.config.run;
    if (was_enough && index + 2 < steps->result->planned_steps) {
        steps->result->planned_steps = index + 2;
    }
    return steps->comm->topology.rank == 0 && run->until > 0 && index + 3 >= run->steps &&
           steps_test_precision(index + 1) && 100 * result_half_width(steps->result) <= run->until;
}

static void begin_step(struct steps *steps, int64_t index)
{
    if (index == steps->result->planned_warmup) {
        processors_begin(&steps->observed.machine, PROCESSOR_TIMES);
        if (steps->observed.device != NULL) {
            observer_begin(steps->observed.device);
        }
    }
    profile_begin(steps, index);
    watch_enter(steps->hang_watch, index == 0 ? WATCH_OPENING : WATCH_STEP, index);
    fault_begin(steps, index, false);
}

static void end_steps(struct steps *steps, struct clock_moment began)
{
    struct result *result = steps->result;
    watch_enter(steps->hang_watch, WATCH_CLOSING, result->planned_steps);
    while (steps->hang_watch != NULL && !watch_claim_end(steps->hang_watch)) {
        pause();    // wait while the watchdog ends the process
    }
    struct clock_moment ended   = clock_moment();
    result->wall_seconds        = ended.seconds - began.seconds;
    steps->observed.clock_drift = ended.wall_seconds - began.wall_seconds - result->wall_seconds;
    processors_end(&steps->observed.machine, PROCESSOR_TIMES);
    if (steps->observed.device != NULL) {
        observer_end(steps->observed.device);
    }
    const struct run_config *run   = &steps->benchmark->job.config.run;
    double                   width = 100 * result_half_width(result);
    if (run->until > 0 && result->step_count == run_steps_max(run) && !(width <= run->until)) {
        result_note(result, NOTE("until"),
                    "run.until = %g%% was not reached: stopped at the limit of %" PRId64
                    " steps; the median's 95 %% CI is +-%.3g %%",
                    run->until, result->step_count, width);
    }
}

// Exchanges the values of a step between all ranks, and records and checks them.
static void gather_step(struct steps *steps, int64_t index, const struct step_facts *own, struct step_facts *facts)
{
    struct result *result = steps->result;
    steps->comm->ops->gather_all(steps->comm, own, facts, sizeof(*own));
    check_departures(steps, index, facts);    // checked first, because left-out ops cause other errors
    record(steps, index, facts);
    check_clip_scales(steps, index, facts);
    if (index >= result->planned_warmup && !isnan(own->compute_seconds)) {    // true on all ranks or on none
        record_compute_times(steps, facts);
    }
    watch_learn(steps->hang_watch, result->steps[index].seconds);
    record_routing(steps);
}

struct loop {
    struct step_facts *facts;               // [ranks]
    status             output, captured;    // output: error of rank 0's output; captured: of the capture
    bool               is_enough;           // on rank 0: the result is precise enough for run.until
};

// Returns whether another step may run: no check has failed, no rank caught a signal, and rank 0 can write. All ranks
// return the same.
static bool may_continue(struct steps *steps, const struct loop *loop, int64_t index)
{
    int number = find_signal(loop->facts, steps->comm->topology.ranks);
    if (!validation_end(steps, index, are_finite(loop->facts, steps->comm->topology.ranks))) {
        return false;
    }
    if (number != 0 && index + 1 < steps->result->planned_steps) {
        result_note(steps->result, (struct result_reason){"stopped", VERDICT_PARTIAL, -1, index, ""},
                    "stopped after step %" PRId64 " by %s", index, signals_name(number));
        return false;
    }
    return loop->facts[0].has_failed == 0;
}

// Runs, verifies and records one step. Returns whether the loop continues.
static bool measure_step(struct steps *steps, struct loop *loop, int64_t index)
{
    validation_start(steps, index);
    begin_step(steps, index);
    struct step_facts own = run_step(steps, index);
    step_set_fault(steps->step, NULL);
    watch_enter(steps->hang_watch, WATCH_BETWEEN, index);
    own.signal                     = signals_caught();
    own.has_failed                 = failed(&loop->output);
    own.is_enough                  = loop->is_enough;
    steps->observed.seconds[index] = own.seconds;
    loop->captured                 = graphs_follow(steps, index);
    if (failed(&loop->captured)) {
        profile_end(steps, index, true);
        return false;
    }
    gather_step(steps, index, &own, loop->facts);
    graphs_decide(steps, index);
    loop->is_enough = decide_end(steps, index, loop->facts[0].is_enough != 0) || loop->is_enough;
    if (steps->comm->topology.rank == 0 && !failed(&loop->output)) {
        loop->output = keep_step(steps, index);
    }
    watch_enter(steps->hang_watch, WATCH_BETWEEN, index);    // the other ranks wait for rank 0 from here
    bool goes_on  = may_continue(steps, loop, index);
    bool is_saved = checkpoints_follow(steps, index, !goes_on || index + 1 == steps->result->planned_steps);
    profile_end(steps, index, !goes_on || !is_saved);
    return goes_on && is_saved;
}

status steps_measure(struct steps *steps)
{
    struct comm        *comm        = steps->comm;
    struct result      *result      = steps->result;
    int64_t             allocations = steps->backend->allocations;
    bool                goes_on     = true;
    struct clock_moment began       = clock_moment();
    struct loop         loop        = {
                       .facts = memory_allocate((size_t)comm->topology.ranks * sizeof(*loop.facts)), .output = OK, .captured = OK};
    steps->graphs   = graphs_plan((enum graphs)steps->benchmark->job.config.run.graphs, step_can_capture(steps->step),
                                  comm->topology.nodes, result->planned_warmup);
    steps->progress = progress_begin("steps", result->planned_steps);
    for (int64_t index = 0; index < result->planned_steps && goes_on; index++) {
        goes_on = measure_step(steps, &loop, index);
    }
    progress_clear(&steps->progress);
    result->step_allocations = steps->backend->allocations - allocations;
    end_steps(steps, began);
    checkpoints_judge(steps);
    free(loop.facts);
    TRY(loop.captured);
    return loop.output;
}

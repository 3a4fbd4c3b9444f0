// SPDX-License-Identifier: MIT
// Runs the traced steps after the measured ones. Records the op times of the last traced step on every rank, and the
// waterfall of the rank with the longest compute time.
#include "trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/measured.h"
#include "gswbench/plan_build.h"
#include "gswbench/waterfall.h"

// Values of a rank that all ranks exchange after the traced steps.
struct traced {
    double           compute_seconds;
    int64_t          lost_records;
    struct waterfall waterfall;
    struct op_totals totals;
};

// Fails if a profiler is attached to a rank, because CUPTI allows only one subscriber per process.
static status check_profilers(const struct environment_peer *peers, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        FAIL_AS_IF(peers[rank].profiler[0] != '\0', EXIT_LAUNCH,
                   "a profiler already uses CUPTI on rank %d (%s is set): run without the profiler", rank,
                   peers[rank].profiler);
    }
    return OK;
}

static status try_open(struct backend *backend, const struct environment_peer *peers, int ranks)
{
    FAIL_IF(backend->ops->activity == NULL, "backend %s has no device", backend->ops->name);
    TRY(check_profilers(peers, ranks));
    return backend->ops->activity->open(backend);
}

static status cupti_error(const status *why)
{
    return fail_as(why->exit_code, "[trace] source = cupti: %.800s; or set source = auto or events", why->text);
}

status trace_source_check(const struct trace_config *config, struct backend *backend, struct comm *comm,
                          const struct environment_peer *peers)
{
    if (config->steps == 0 || config->source != TRACE_CUPTI) {
        return OK;
    }
    status own = try_open(backend, peers, comm->topology.ranks);
    // agreed before any rank closes CUPTI, because all ranks must be able to use it at the same time
    status agreed = comm_agree(comm, own);
    if (!failed(&own)) {
        backend->ops->activity->close(backend);
    }
    comm->ops->barrier(comm);    // another rank of the process must not use the device until CUPTI is detached
    return failed(&agreed) ? cupti_error(&agreed) : OK;
}

// Runs a traced step with watchdog and injected faults, like a measured step.
static double run_step_traced(struct steps *steps, int64_t index)
{
    watch_enter(steps->hang_watch, WATCH_STEP, index);
    fault_begin(steps, index, false);
    double seconds = steps_run_one(steps, index);
    step_set_fault(steps->step, NULL);
    watch_enter(steps->hang_watch, WATCH_BETWEEN, index);
    return seconds;
}

// Runs the traced steps, and stops after a signal. Returns the time of the last step on its slowest rank.
static double run_steps_traced(struct steps *steps)
{
    int64_t first = steps->result->planned_steps, end = first + steps->benchmark->job.config.trace.steps;
    int     ranks = steps->comm->topology.ranks;
    struct pace {
        double seconds, signal;
    } *paces       = memory_allocate((size_t)ranks * sizeof(*paces));
    double slowest = 0.0, is_stopped = 0.0;
    for (int64_t index = first; index < end && is_stopped == 0.0; index++) {
        struct pace own = {.seconds = run_step_traced(steps, index), .signal = signals_caught() != 0};
        steps->comm->ops->gather_all(steps->comm, &own, paces, sizeof(own));
        slowest = 0.0;
        for (int rank = 0; rank < ranks; rank++) {
            slowest    = fmax(slowest, paces[rank].seconds);
            is_stopped = fmax(is_stopped, paces[rank].signal);
        }
    }
    watch_enter(steps->hang_watch, WATCH_CLOSING, end);
    free(paces);
    return slowest;
}

struct trace_outcome {
    const char *timed_by;        // source of the op times, as in struct result_trace
    double      step_seconds;    // time of the last step
    int64_t     lost_records;    // records that CUPTI lost on this rank
};

static status run_with_cupti(struct steps *steps, struct op_time *times, struct trace_outcome *outcome)
{
    struct comm *comm = steps->comm;
    TRY(check_profilers(steps->peers, comm->topology.ranks));
    status noted = comm_agree(comm, step_trace_noted(steps->step, times));
    if (!failed(&noted)) {
        outcome->step_seconds = run_steps_traced(steps);
        noted                 = comm_agree(comm, step_read_noted(steps->step, &outcome->lost_records));
    }
    step_trace(steps->step, NULL);
    comm->ops->barrier(comm);    // another rank of the process must not use the device until CUPTI is detached
    return noted;
}

// Times ops by CUPTI if every rank can use it, else by CUDA events on all ranks, so that times are comparable. If CUPTI
// fails and [trace] source is auto, the steps run again with events; a source that the user set must work. Collective.
static status run_timed(struct steps *steps, struct op_time *times, struct trace_outcome *outcome)
{
    int64_t                   source = steps->benchmark->job.config.trace.source;
    const struct backend_ops *ops    = steps->backend->ops;
    if (source == TRACE_CUPTI || (source == TRACE_AUTO && ops->activity != NULL)) {
        *outcome     = (struct trace_outcome){.timed_by = "cupti"};
        status noted = run_with_cupti(steps, times, outcome);
        if (!failed(&noted)) {
            return OK;
        }
        if (source == TRACE_CUPTI) {
            return cupti_error(&noted);
        }
        result_note(steps->result, NOTE("trace-events"), "ops of the traced step are timed by events, not by CUPTI: %s",
                    noted.text);
    }
    *outcome = (struct trace_outcome){.timed_by = ops->streams != NULL ? "events" : "clock"};
    step_trace(steps->step, times);
    outcome->step_seconds = run_steps_traced(steps);
    step_trace(steps->step, NULL);
    return OK;
}

static struct traced summarise(const struct steps *steps, const struct op_time *times, double step_seconds)
{
    const struct config  *config     = &steps->benchmark->job.config;
    const struct plan    *plan       = steps->plan;
    enum flop_convention  convention = (enum flop_convention)steps->result->figures.convention;
    double                ideal      = result_ideal_seconds(steps->result, convention);
    struct waterfall_step step       = {
              .plan            = plan,
              .times           = times,
              .step_seconds    = step_seconds,
              .ideal_seconds   = isnan(ideal) ? 0.0 : ideal,
              .attention_share = layers_attention_share(&plan->model, &config->published, convention, plan->train.sequence)};
    struct traced traced = {.compute_seconds = waterfall_compute_seconds(plan, times)};
    waterfall_compute(&traced.waterfall, &step);
    waterfall_sum_ops(&traced.totals, plan, times);
    return traced;
}

static bool is_in_timeline(const void *state, int64_t rank)
{
    return trace_config_draws(state, rank);
}

// Writes trace.json. The selected ranks append their ops one after the other. The first of them also writes the start
// of the file, and the last its end. Returns the status on rank 0, and OK on other ranks.
static status write_timeline(const struct steps *steps, const struct op_time *times, const struct output_folder *folder)
{
    const struct trace_config   *config   = &steps->benchmark->job.config.trace;
    const struct result_trace   *trace    = &steps->result->trace;
    const struct comm_topology  *topology = &steps->comm->topology;
    const struct timeline_source source   = {trace->timed_by, trace->lost_records};
    struct output                file     = {.is_open = false};
    status                       written  = OK;
    int                          first = topology->ranks, last = 0;
    for (int rank = 0; rank < topology->ranks; rank++) {
        if (trace_config_draws(config, rank)) {
            first = rank < first ? rank : first;
            last  = rank;
        }
    }
    if (topology->rank == 0) {
        written = output_begin_in(&file, folder, "trace.json");
    }
    for (int rank = first; rank <= last; rank++) {
        struct text_stream own = {.data = NULL};
        if (!trace_config_draws(config, rank)) {
            continue;
        }
        if (rank == topology->rank) {
            text_stream_open(&own);
            if (rank == first) {
                timeline_begin(own.file);
            }
            timeline_write_rank(steps->plan, times, &(struct timeline_ranks){is_in_timeline, config}, rank == first,
                                own.file);
            if (rank == last) {
                timeline_end(&source, own.file);
            }
            text_stream_close(&own);
        }
        collect_text(steps->comm, rank, &own, &file, &written);
        free(own.data);
    }
    return failed(&written) || topology->rank != 0 ? written : output_finish(&file);
}

// Adds the times of the traced step's collectives, sends and receives to the result, next to their predicted times, and
// writes their files. Predictions use measured op times if the hardware profile has them.
static status add_communications(const struct steps *steps, const struct op_time *times,
                                 const struct output_folder *folder)
{
    const struct config   *config = &steps->benchmark->job.config;
    struct hardware_config hardware;
    struct measured_ops    measured;
    bool                   is_known     = expectation_hardware(&hardware, config, steps->backend) == NULL;
    status                 read         = measured_read_profile(&measured, config);
    bool                   has_measured = !failed(&read) && strcmp(hardware.profile, config->hardware.profile) == 0;
    const struct communication_times_setup setup = {.config   = config,
                                                    .plan     = steps->plan,
                                                    .step     = steps->step,
                                                    .comm     = steps->comm,
                                                    .times    = times,
                                                    .hardware = is_known ? &hardware : NULL,
                                                    .measured = has_measured ? &measured : NULL,
                                                    .result   = steps->result};
    struct communication_rows             *rows  = memory_allocate(sizeof(*rows));
    communication_times_add(&setup, rows);
    status written = communication_files_write(&setup, rows, folder);
    free(rows);
    measured_free(&measured);
    return written;
}

// Sends the pipeline actions of every stage, as its first rank ran them, to rank 0.
static void gather_actions(struct steps *steps, const struct op_time *times)
{
    const struct mesh *mesh              = &steps->plan->mesh;
    int64_t            place[AXIS_COUNT] = {0};
    struct actions {
        int64_t              count;
        struct result_action list[RESULT_ACTIONS];
    } *actions = memory_allocate(sizeof(*actions));
    for (int64_t stage = 0; stage < mesh->size[AXIS_PP] && mesh->size[AXIS_PP] > 1; stage++) {
        place[AXIS_PP] = stage;
        int rank       = (int)mesh_rank(mesh, place);
        actions->count =
            steps->comm->topology.rank == rank ? result_find_actions(actions->list, steps->plan, times) : 0;
        steps->comm->ops->share(steps->comm, actions, sizeof(*actions), rank);
        result_add_actions(steps->result, actions->list, actions->count);
    }
    free(actions);
}

status steps_trace(struct steps *steps, const struct output_folder *folder)
{
    status               drawn = OK;
    struct comm         *comm  = steps->comm;
    struct op_time      *times = memory_allocate((size_t)steps->plan->op_count * sizeof(*times));
    struct traced       *all   = memory_allocate((size_t)comm->topology.ranks * sizeof(*all));
    struct trace_outcome outcome;
    status               ran = run_timed(steps, times, &outcome);
    if (failed(&ran)) {
        steps->untraced = ran;
        result_note(steps->result, NOTE("trace-failed"), "%s", ran.text);
        free(all);
        free(times);
        return OK;
    }
    struct result_trace *trace   = &steps->result->trace;
    struct traced        own     = summarise(steps, times, outcome.step_seconds);
    int                  busiest = 0;
    own.lost_records             = outcome.lost_records;
    comm->ops->gather_all(comm, &own, all, sizeof(own));
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        trace->lost_records += all[rank].lost_records;
        busiest = all[rank].compute_seconds > all[busiest].compute_seconds ? rank : busiest;
    }
    trace->source = RESULT_MEASURED;
    text_copy(trace->timed_by, sizeof(trace->timed_by), outcome.timed_by);
    trace->rank         = busiest;
    trace->step_seconds = outcome.step_seconds;
    trace->waterfall    = all[busiest].waterfall;
    if (trace->lost_records > 0) {
        result_note(steps->result, NOTE("trace-lost"),
                    "CUPTI lost %" PRId64 " records of traced steps: ops may have taken longer than shown",
                    trace->lost_records);
    }
    result_set_op_times(steps->result, &all[busiest].totals);
    result_set_moments(steps->result, steps->plan, times);
    gather_actions(steps, times);
    if (steps->benchmark->job.config.trace.timeline[0] != '\0') {
        drawn = write_timeline(steps, times, folder);
    }
    status listed = add_communications(steps, times, folder);
    free(all);
    free(times);
    return failed(&drawn) ? drawn : listed;
}

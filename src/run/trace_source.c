// SPDX-License-Identifier: MIT
// Uses CUPTI if every rank can, else CUDA events, to keep times comparable.
#include "trace_source.h"

#include <stdio.h>

// CUPTI allows one subscriber per process; an attached profiler already holds it.
static status check_profilers(const struct environment_peer *peers, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        if (peers[rank].profiler[0] != '\0') {
            return fail_as(EXIT_LAUNCH,
                           "a profiler already uses CUPTI on rank %d (%s is set): run without the profiler", rank,
                           peers[rank].profiler);
        }
    }
    return OK;
}

static status try_open(struct backend *backend, const struct environment_peer *peers, int ranks)
{
    if (backend->ops->activity == NULL) {
        return fail("backend %s has no device", backend->ops->name);
    }
    TRY(check_profilers(peers, ranks));
    return backend->ops->activity->open(backend);
}

static status refuse(const status *why)
{
    return fail_as(why->exit_code, "[trace] source = cupti: %.800s; or set source = auto or events", why->text);
}

status trace_source_check(const struct trace_config *config, struct backend *backend, struct comm *comm,
                          const struct environment_peer *peers)
{
    if (config->steps == 0 || config->source != TRACE_CUPTI) {
        return OK;
    }
    status own    = try_open(backend, peers, comm->topology.ranks);
    status agreed = comm_agree(comm, own);    // while all ranks hold it
    if (!failed(&own)) {
        backend->ops->activity->close(backend);
    }
    comm->ops->barrier(comm);    // detaches before another rank of the process uses the device
    return failed(&agreed) ? refuse(&agreed) : OK;
}

void trace_source_note(struct result *result, const char *id, const char *message)
{
    struct result_reason reason = {.verdict = VERDICT_VALID, .rank = -1, .step = -1};
    text_copy(reason.id, sizeof(reason.id), id);
    text_copy(reason.message, sizeof(reason.message), message);
    result_add_reason(result, &reason);
}

static status run_noted(struct steps *steps, struct op_time *times, trace_steps *run, struct trace_outcome *outcome)
{
    struct comm *comm = steps->comm;
    TRY(check_profilers(steps->peers, comm->topology.ranks));
    status noted = comm_agree(comm, step_trace_noted(steps->step, times));
    if (!failed(&noted)) {
        outcome->step_seconds = run(steps);
        noted                 = comm_agree(comm, step_read_noted(steps->step, &outcome->lost_records));
    }
    step_trace(steps->step, NULL);
    comm->ops->barrier(comm);    // detaches before another rank of the process uses the device
    return noted;
}

status trace_source_run(struct steps *steps, struct op_time *times, trace_steps *run, struct trace_outcome *outcome)
{
    int64_t                   source = steps->benchmark->job.config.trace.source;
    const struct backend_ops *ops    = steps->backend->ops;
    if (source == TRACE_CUPTI || (source == TRACE_AUTO && ops->activity != NULL)) {
        char message[512];
        *outcome     = (struct trace_outcome){.timed_by = "cupti"};
        status noted = run_noted(steps, times, run, outcome);
        if (!failed(&noted)) {
            return OK;
        }
        if (source == TRACE_CUPTI) {
            return refuse(&noted);
        }
        snprintf(message, sizeof(message), "ops of the traced step are timed by events, not by CUPTI: %.400s",
                 noted.text);
        trace_source_note(steps->result, "trace-events", message);
    }
    *outcome = (struct trace_outcome){.timed_by = ops->streams != NULL ? "events" : "clock"};
    step_trace(steps->step, times);
    outcome->step_seconds = run(steps);
    step_trace(steps->step, NULL);
    return OK;
}

// SPDX-License-Identifier: MIT
// Times each op of a step: with the host's clock if the backend computes on the host, otherwise with timed events or
// the device's activity records (CUPTI). Also times the stalls of the compute stream.
#include "internal.h"

#include <math.h>

#include "gswbench/clock.h"

// Timed events before and after an op, or before and after its waits; NULL: none.
struct event_pair {
    void *begin, *end;
};

struct trace {
    struct op_time                *times;       // [ops]
    double                         origin;      // start of the step on the host's clock
    const struct backend_activity *activity;    // CUPTI; NULL: ops are timed by events or the host's clock
    struct event_pair             *events;      // [ops]: events around each op; NULL: the op is timed without events
};

static struct event_pair open_pair(const struct streams *streams)
{
    return (struct event_pair){streams->device_streams->event_open(streams->backend, EVENT_TIMED),
                               streams->device_streams->event_open(streams->backend, EVENT_TIMED)};
}

static void close_pairs(const struct streams *streams, struct event_pair *pairs, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (pairs[i].begin != NULL) {
            streams->device_streams->event_close(pairs[i].begin);
            streams->device_streams->event_close(pairs[i].end);
        }
    }
    free(pairs);
}

static void start(struct step *step, void *state)
{
    struct trace *trace = state;
    trace->origin       = clock_seconds();
    if (trace->activity != NULL) {
        trace->activity->start(step->backend);
    }
}

static void mark(const struct streams *streams, const struct queued_op *queued, void *event, double *time,
                 double origin)
{
    if (event != NULL) {
        streams->device_streams->record(streams->backend, queued->op->stream, event);
    } else {
        *time = clock_seconds() - origin;
    }
}

static bool begin_op(struct streams *streams, const struct queued_op *queued, void *state)
{
    const struct trace *trace = state;
    int32_t             index = queued->number - 1;
    if (trace->activity != NULL) {
        trace->activity->begin(streams->backend, index);
    } else {
        mark(streams, queued, trace->events[index].begin, &trace->times[index].begin, trace->origin);
    }
    return true;
}

static void end_op(struct streams *streams, const struct queued_op *queued, void *state)
{
    const struct trace *trace = state;
    int32_t             index = queued->number - 1;
    if (trace->activity != NULL) {
        trace->activity->end(streams->backend);
    } else {
        mark(streams, queued, trace->events[index].end, &trace->times[index].end, trace->origin);
    }
}

// Called after a step. Ends its trace without blocking; activity records are read later.
static void stop(struct step *step, void *state)
{
    const struct trace           *trace   = state;
    const struct backend_streams *streams = step->streams.device_streams;
    if (trace->activity != NULL) {
        trace->activity->stop(step->backend);
        return;
    }
    for (int32_t i = 0; i < step->plan->op_count && streams != NULL; i++) {
        trace->times[i].begin = streams->seconds_between(step->begin, trace->events[i].begin);
        trace->times[i].end   = streams->seconds_between(step->begin, trace->events[i].end);
    }
}

// The hooks of a trace exclude an op's waits for other streams from the op's time.
static const struct op_hooks trace_hooks = {
    .before_step = start, .before = begin_op, .after = end_op, .after_step = stop};

static void close_trace(struct step *step)
{
    struct trace *trace = step->trace;
    observers_set(&step->streams, OBSERVER_TRACE, NULL, NULL);
    if (trace == NULL) {
        return;
    }
    if (trace->activity != NULL) {
        trace->activity->close(step->backend);
    }
    close_pairs(&step->streams, trace->events, step->plan->op_count);
    free(step->streams.carried);
    free(trace);
    step->trace           = NULL;
    step->streams.carried = NULL;
}

static void open_trace(struct step *step, struct op_time *times, const struct backend_activity *activity)
{
    int32_t       count = step->plan->op_count;
    struct trace *trace = memory_allocate(sizeof(*trace));
    *trace              = (struct trace){
                     .times = times, .activity = activity, .events = memory_allocate((size_t)count * sizeof(*trace->events))};
    if (activity != NULL) {
        step->streams.carried = memory_allocate((size_t)count * sizeof(*step->streams.carried));
    }
    for (int32_t i = 0; i < count && step->streams.device_streams != NULL && activity == NULL; i++) {
        trace->events[i] = open_pair(&step->streams);
    }
    step->trace = trace;
    observers_set(&step->streams, OBSERVER_TRACE, &trace_hooks, trace);
}

void step_trace(struct step *step, struct op_time *times)
{
    close_trace(step);
    if (times != NULL) {
        open_trace(step, times, NULL);
    }
}

status step_trace_noted(struct step *step, struct op_time *times)
{
    const struct backend_ops *ops = step->backend->ops;
    close_trace(step);
    if (ops->activity == NULL) {
        return fail_as(EXIT_LAUNCH, "backend %s has no device to trace", ops->name);
    }
    TRY(ops->activity->open(step->backend));
    open_trace(step, times, ops->activity);
    return OK;
}

// Returns the earliest time at which the op could start: the latest end of its dependencies and of the previous op on
// its stream.
static double find_ready(const struct trace *trace, const struct op *op, double stream_end)
{
    double ready = stream_end;
    for (int i = 0; i < op->wait_count; i++) {
        ready = fmax(ready, trace->times[op->wait[i]].end);
    }
    return ready;
}

// Fails if CUPTI recorded no op. Every step computes something, so CUPTI does not work then.
static status check_spans(const struct backend_span *spans, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (spans[i].is_known) {
            return OK;
        }
    }
    return fail_as(EXIT_LAUNCH, "CUPTI recorded nothing in the traced step: set trace.source = events");
}

// Extends the span of an op that is staged through host memory by its communication on the host (`carried`), since the
// device records only the copies.
static void add_carried(struct backend_span *span, const struct op_time *carried)
{
    if (carried->end > 0) {
        span->begin    = span->is_known ? fmin(span->begin, carried->begin) : carried->begin;
        span->end      = span->is_known ? fmax(span->end, carried->end) : carried->end;
        span->is_known = true;
    }
}

// Computes op times from activity records. Kernels of one stream may overlap, so an op's time starts no earlier than
// the previous op's end: it is the time that the op adds to its stream. An op without device work takes no time.
status step_read_noted(const struct step *step, int64_t *lost)
{
    const struct trace  *trace              = step->trace;
    int32_t              count              = step->plan->op_count;
    struct backend_span *spans              = memory_allocate((size_t)count * sizeof(*spans));
    double               ends[STREAM_COUNT] = {0.0};
    status               read               = trace->activity->read(step->backend, spans, count, lost);
    read                                    = failed(&read) ? read : check_spans(spans, count);
    for (int32_t i = 0; i < count && !failed(&read); i++) {
        const struct backend_span *span = &spans[i];
        const struct op           *op   = step->ops[i].op;
        add_carried(&spans[i], &step->streams.carried[i]);
        double *end     = &ends[op->stream];
        double  begin   = span->is_known ? fmax(span->begin - trace->origin, *end) : find_ready(trace, op, *end);
        *end            = span->is_known ? fmax(span->end - trace->origin, begin) : begin;
        trace->times[i] = (struct op_time){.begin = begin, .end = *end};
    }
    free(spans);
    return read;
}

struct stalls {
    int32_t            count;
    struct event_pair *list;    // [count]: events around an op's waits; NULL: no compute op, or no waits
    void              *end;     // event after the last compute op
};

static struct stalls *open_stalls(const struct streams *streams, const struct queued_op *ops, int32_t count)
{
    struct stalls *stalls = memory_allocate(sizeof(*stalls));
    *stalls     = (struct stalls){.count = count, .list = memory_allocate((size_t)count * sizeof(*stalls->list))};
    stalls->end = streams->device_streams->event_open(streams->backend, EVENT_TIMED);
    for (int32_t i = 0; i < count; i++) {
        if (ops[i].op->stream == STREAM_COMPUTE && ops[i].wait_count > 0) {
            stalls->list[i] = open_pair(streams);
        }
    }
    return stalls;
}

void stalls_close(const struct streams *streams, struct stalls *stalls)
{
    close_pairs(streams, stalls->list, stalls->count);
    streams->device_streams->event_close(stalls->end);
    free(stalls);
}

static void mark_stall(const struct streams *streams, void *event)
{
    if (event != NULL) {
        streams->device_streams->mark(streams->backend, STREAM_COMPUTE, event);
    }
}

void stalls_begin(const struct streams *streams, const struct queued_op *queued)
{
    if (streams->stalls != NULL) {
        mark_stall(streams, streams->stalls->list[queued->number - 1].begin);
    }
}

void stalls_end(const struct streams *streams, const struct queued_op *queued)
{
    if (streams->stalls != NULL) {
        mark_stall(streams, streams->stalls->list[queued->number - 1].end);
    }
}

void stalls_mark_end(const struct streams *streams)
{
    if (streams->stalls != NULL) {
        mark_stall(streams, streams->stalls->end);
    }
}

void step_time_stalls(struct step *step)
{
    if (step->streams.device_streams != NULL) {
        step->streams.stalls = open_stalls(&step->streams, step->ops, step->plan->op_count);
    }
}

double step_compute_seconds(const struct step *step)
{
    const struct backend_streams *streams = step->streams.device_streams;
    const struct stalls          *stalls  = step->streams.stalls;
    if (streams == NULL || stalls == NULL) {
        return streams == NULL ? step->streams.compute_seconds : NAN;
    }
    double seconds = streams->seconds_between(step->begin, stalls->end);
    for (int32_t i = 0; i < stalls->count; i++) {
        if (stalls->list[i].begin != NULL) {
            seconds -= streams->seconds_between(stalls->list[i].begin, stalls->list[i].end);
        }
    }
    return seconds;
}

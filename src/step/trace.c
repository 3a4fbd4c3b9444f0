// SPDX-License-Identifier: MIT
// Sources of op times: events, the host's clock, or activity records.
#include "trace.h"

#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"

static status open_activity(struct trace *trace, const struct lanes *lanes)
{
    const struct backend_ops *ops = lanes->backend->ops;
    if (ops->activity == NULL) {
        return fail_as(EXIT_LAUNCH, "backend %s has no device to trace", ops->name);
    }
    TRY(ops->activity->open(lanes->backend));
    trace->activity = ops->activity;
    return OK;
}

status trace_open(struct trace **opened, const struct lanes *lanes, const struct queue_entry *entries, int32_t count,
                  struct op_time *times, bool is_noted)
{
    struct trace new = {.entries = entries, .count = count, .times = times};
    if (is_noted) {
        TRY(open_activity(&new, lanes));
        new.carried = memory_allocate((size_t)count * sizeof(*new.carried));
    }
    new.events = memory_allocate((size_t)count * sizeof(*new.events));
    for (int32_t i = 0; i < count && lanes->streams != NULL && !is_noted; i++) {
        new.events[i].begin = lanes->streams->event_open(lanes->backend, true);
        new.events[i].end   = lanes->streams->event_open(lanes->backend, true);
    }
    *opened  = memory_allocate(sizeof(new));
    **opened = new;
    return OK;
}

void trace_start(const struct lanes *lanes)
{
    struct trace *trace = lanes->trace;
    trace->origin       = clock_seconds();
    if (trace->activity != NULL) {
        trace->activity->start(lanes->backend);
    }
}

static void mark(const struct lanes *lanes, const struct queue_entry *entry, void *event, double *time)
{
    if (event != NULL) {
        lanes->streams->record(lanes->backend, entry->op->lane, event);
    } else {
        *time = clock_seconds() - lanes->trace->origin;
    }
}

void trace_begin(const struct lanes *lanes, const struct queue_entry *entry)
{
    const struct trace *trace = lanes->trace;
    int64_t             index = entry - trace->entries;
    if (trace->activity != NULL) {
        trace->activity->begin(lanes->backend, (int32_t)index);
    } else {
        mark(lanes, entry, trace->events[index].begin, &trace->times[index].begin);
    }
}

void trace_end(const struct lanes *lanes, const struct queue_entry *entry)
{
    const struct trace *trace = lanes->trace;
    int64_t             index = entry - trace->entries;
    if (trace->activity != NULL) {
        trace->activity->end(lanes->backend);
    } else {
        mark(lanes, entry, trace->events[index].end, &trace->times[index].end);
    }
}

void trace_stop(const struct lanes *lanes, void *begin)
{
    const struct trace *trace = lanes->trace;
    if (trace->activity != NULL) {
        trace->activity->stop(lanes->backend);
        return;
    }
    for (int32_t i = 0; i < trace->count && lanes->streams != NULL; i++) {
        trace->times[i].begin = lanes->streams->seconds_between(begin, trace->events[i].begin);
        trace->times[i].end   = lanes->streams->seconds_between(begin, trace->events[i].end);
    }
}

void trace_carried(const struct lanes *lanes, const struct queue_entry *entry, double begin)
{
    if (lanes->trace->carried != NULL) {
        lanes->trace->carried[entry->number - 1] = (struct op_time){.begin = begin, .end = clock_seconds()};
    }
}

// Earliest time at which the op could start: the end of its dependencies and of the previous op on its stream.
static double find_ready(const struct trace *trace, int32_t index, double lane_end)
{
    const struct op *op    = trace->entries[index].op;
    double           ready = lane_end;
    for (int i = 0; i < op->wait_count; i++) {
        ready = fmax(ready, trace->times[op->wait[i]].end);
    }
    return ready;
}

// Every step computes something, so an empty set of records is an error of the library.
static status check_spans(const struct backend_span *spans, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (spans[i].is_known) {
            return OK;
        }
    }
    return fail_as(EXIT_LAUNCH, "CUPTI recorded nothing in the traced step: set trace.source = events");
}

// For a staged op the device records only the copies; adds the host's part between or beside them.
static void add_carried(struct backend_span *span, const struct op_time *carried)
{
    if (carried->end > 0) {
        span->begin    = span->is_known ? fmin(span->begin, carried->begin) : carried->begin;
        span->end      = span->is_known ? fmax(span->end, carried->end) : carried->end;
        span->is_known = true;
    }
}

// Kernels of one stream may overlap. An op's time starts no earlier than the end of the op before it, so it counts only
// the time that the op adds to its stream. An op without device work takes no time.
status trace_read(const struct lanes *lanes, int64_t *lost)
{
    const struct trace  *trace            = lanes->trace;
    struct backend_span *spans            = memory_allocate((size_t)trace->count * sizeof(*spans));
    double               ends[LANE_COUNT] = {0.0};
    status               read             = trace->activity->read(lanes->backend, spans, trace->count, lost);
    read                                  = failed(&read) ? read : check_spans(spans, trace->count);
    for (int32_t i = 0; i < trace->count && !failed(&read); i++) {
        const struct backend_span *span = &spans[i];
        add_carried(&spans[i], &trace->carried[i]);
        double *end     = &ends[trace->entries[i].op->lane];
        double  begin   = span->is_known ? fmax(span->begin - trace->origin, *end) : find_ready(trace, i, *end);
        *end            = span->is_known ? fmax(span->end - trace->origin, begin) : begin;
        trace->times[i] = (struct op_time){.begin = begin, .end = *end};
    }
    free(spans);
    return read;
}

void trace_close(const struct lanes *lanes, struct trace *trace)
{
    if (trace->activity != NULL) {
        trace->activity->close(lanes->backend);
    }
    for (int32_t i = 0; i < trace->count && trace->events[i].begin != NULL; i++) {
        lanes->streams->event_close(trace->events[i].begin);
        lanes->streams->event_close(trace->events[i].end);
    }
    free(trace->carried);
    free(trace->events);
    free(trace);
}

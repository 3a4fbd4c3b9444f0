// SPDX-License-Identifier: MIT
// When each op of a step ran: by the host's clock where run() computes, by timed events where it enqueues.
#include "internal.h"

#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"

struct trace *trace_open(const struct lanes *lanes, const struct queue_entry *entries, int32_t count,
                         struct op_time *times)
{
    struct trace *trace = memory_allocate(sizeof(*trace));
    *trace              = (struct trace){.entries = entries, .count = count, .times = times};
    trace->events       = memory_allocate((size_t)count * sizeof(*trace->events));
    for (int32_t i = 0; i < count && lanes->streams != NULL; i++) {
        trace->events[i].begin = lanes->streams->event_open(lanes->backend, true);
        trace->events[i].end   = lanes->streams->event_open(lanes->backend, true);
    }
    return trace;
}

void trace_start(struct trace *trace)
{
    trace->origin = clock_seconds();
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
    int64_t index = entry - lanes->trace->entries;
    mark(lanes, entry, lanes->trace->events[index].begin, &lanes->trace->times[index].begin);
}

void trace_end(const struct lanes *lanes, const struct queue_entry *entry)
{
    int64_t index = entry - lanes->trace->entries;
    mark(lanes, entry, lanes->trace->events[index].end, &lanes->trace->times[index].end);
}

void trace_read(const struct lanes *lanes, void *begin)
{
    const struct trace *trace = lanes->trace;
    for (int32_t i = 0; i < trace->count && lanes->streams != NULL; i++) {
        trace->times[i].begin = lanes->streams->seconds_between(begin, trace->events[i].begin);
        trace->times[i].end   = lanes->streams->seconds_between(begin, trace->events[i].end);
    }
}

void trace_close(const struct lanes *lanes, struct trace *trace)
{
    for (int32_t i = 0; i < trace->count && lanes->streams != NULL; i++) {
        lanes->streams->event_close(trace->events[i].begin);
        lanes->streams->event_close(trace->events[i].end);
    }
    free(trace->events);
    free(trace);
}

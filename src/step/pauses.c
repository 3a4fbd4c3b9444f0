// SPDX-License-Identifier: MIT
// Timed events around each wait of the compute stream. In a captured step they are graph nodes.
#include "pauses.h"

#include <stdlib.h>

#include "gswbench/arena.h"

struct pauses *pauses_open(const struct lanes *lanes, const struct queue_entry *entries, int32_t count)
{
    struct pauses *pauses = memory_allocate(sizeof(*pauses));
    *pauses               = (struct pauses){.entries = entries,
                                            .count   = count,
                                            .list    = memory_allocate((size_t)count * sizeof(*pauses->list)),
                                            .end     = lanes->streams->event_open(lanes->backend, true)};
    for (int32_t i = 0; i < count; i++) {
        if (entries[i].op->lane == LANE_COMPUTE && entries[i].wait_count > 0) {
            pauses->list[i].begin = lanes->streams->event_open(lanes->backend, true);
            pauses->list[i].end   = lanes->streams->event_open(lanes->backend, true);
        }
    }
    return pauses;
}

void pauses_close(const struct lanes *lanes, struct pauses *pauses)
{
    for (int32_t i = 0; i < pauses->count; i++) {
        if (pauses->list[i].begin != NULL) {
            lanes->streams->event_close(pauses->list[i].begin);
            lanes->streams->event_close(pauses->list[i].end);
        }
    }
    lanes->streams->event_close(pauses->end);
    free(pauses->list);
    free(pauses);
}

static void mark(const struct lanes *lanes, void *event)
{
    if (event != NULL) {
        lanes->streams->mark(lanes->backend, LANE_COMPUTE, event);
    }
}

void pauses_begin(const struct lanes *lanes, const struct queue_entry *entry)
{
    mark(lanes, lanes->pauses->list[entry - lanes->pauses->entries].begin);
}

void pauses_end(const struct lanes *lanes, const struct queue_entry *entry)
{
    mark(lanes, lanes->pauses->list[entry - lanes->pauses->entries].end);
}

void pauses_finish(const struct lanes *lanes)
{
    mark(lanes, lanes->pauses->end);
}

double pauses_compute_seconds(const struct lanes *lanes, void *begin)
{
    const struct pauses *pauses  = lanes->pauses;
    double               seconds = lanes->streams->seconds_between(begin, pauses->end);
    for (int32_t i = 0; i < pauses->count; i++) {
        if (pauses->list[i].begin != NULL) {
            seconds -= lanes->streams->seconds_between(pauses->list[i].begin, pauses->list[i].end);
        }
    }
    return seconds;
}

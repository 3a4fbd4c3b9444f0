// SPDX-License-Identifier: MIT
// When each op of a step ran: by the host's clock where run() computes, and where it enqueues by timed events, or by
// what the device notes down of its own work.
#ifndef GSWBENCH_STEP_TRACE_H
#define GSWBENCH_STEP_TRACE_H

#include "internal.h"

struct trace {
    const struct queue_entry      *entries;    // [count], in list order
    int32_t                        count;
    struct op_time                *times;       // [count]
    double                         origin;      // of the host's clock: the step's begin
    const struct backend_activity *activity;    // NULL: events, or the host's clock, time ops
    struct op_time *carried;    // [count], of staged transfers, by the host's clock; NULL without activity
    struct {
        void *begin, *end;
    } * events;    // [count]; NULL ones: something else times ops
};

// is_noted: by the device's own notes, which may fail (EXIT_LAUNCH).
status trace_open(struct trace **trace, const struct lanes *lanes, const struct queue_entry *entries, int32_t count,
                  struct op_time *times, bool is_noted);
void   trace_close(const struct lanes *lanes, struct trace *trace);

// Around a step that began with that event, and around each of its ops, behind what the op waits for. stop waits for
// nothing; but for notes, times are there.
void trace_start(const struct lanes *lanes);
void trace_begin(const struct lanes *lanes, const struct queue_entry *entry);
void trace_end(const struct lanes *lanes, const struct queue_entry *entry);
void trace_stop(const struct lanes *lanes, void *begin);
// The host has carried a staged transfer from that moment on: no work of the device, which it waits for.
void trace_carried(const struct lanes *lanes, const struct queue_entry *entry, double begin);

// The times of the latest step by the device's notes, and how many of these were lost.
status trace_read(const struct lanes *lanes, int64_t *lost);

#endif

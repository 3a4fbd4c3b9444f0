// SPDX-License-Identifier: MIT
// Times each op of a step: with the host's clock if run() computes, otherwise with timed events or the device's
// activity records (CUPTI).
#ifndef GSWBENCH_STEP_TRACE_H
#define GSWBENCH_STEP_TRACE_H

#include "internal.h"

struct trace {
    const struct queue_entry      *entries;    // [count], in list order
    int32_t                        count;
    struct op_time                *times;       // [count]
    double                         origin;      // start of the step on the host's clock
    const struct backend_activity *activity;    // NULL: events or the host's clock time ops
    struct op_time                *carried;     // [count], host part of staged communication ops; NULL without activity
    struct {
        void *begin, *end;
    } * events;    // [count]; NULL members: events do not time ops
};

// is_noted: use the device's activity records. Fails with EXIT_LAUNCH if there are none.
status trace_open(struct trace **trace, const struct lanes *lanes, const struct queue_entry *entries, int32_t count,
                  struct op_time *times, bool is_noted);
void   trace_close(const struct lanes *lanes, struct trace *trace);

// trace_start and trace_stop enclose a step; begin is the event at its start. trace_begin and trace_end enclose one op,
// after its waits. trace_stop does not block, and fills times unless activity records provide them.
void trace_start(const struct lanes *lanes);
void trace_begin(const struct lanes *lanes, const struct queue_entry *entry);
void trace_end(const struct lanes *lanes, const struct queue_entry *entry);
void trace_stop(const struct lanes *lanes, void *begin);
// Records that the host carried a staged op from begin until now. Activity records lack this time, because the device
// only waits.
void trace_carried(const struct lanes *lanes, const struct queue_entry *entry, double begin);

// Fills times of the latest step from activity records. lost: dropped records.
status trace_read(const struct lanes *lanes, int64_t *lost);

#endif

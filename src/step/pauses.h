// SPDX-License-Identifier: MIT
// Measures the stalls of a device's compute stream on other streams, to find its time without them.
#ifndef GSWBENCH_STEP_PAUSES_H
#define GSWBENCH_STEP_PAUSES_H

#include "internal.h"

struct pauses {
    const struct queue_entry *entries;    // in list order
    int32_t                   count;
    struct pause {
        void *begin, *end;    // events around the op's waits; NULL: not a compute op, or it has no waits
    } * list;                 // [count]
    void *end;                // event after the last compute op
};

struct pauses *pauses_open(const struct lanes *lanes, const struct queue_entry *entries, int32_t count);
void           pauses_close(const struct lanes *lanes, struct pauses *pauses);

// pauses_begin and pauses_end enclose an op's waits. pauses_finish follows the last compute op, before streams join.
void pauses_begin(const struct lanes *lanes, const struct queue_entry *entry);
void pauses_end(const struct lanes *lanes, const struct queue_entry *entry);
void pauses_finish(const struct lanes *lanes);

// Seconds of the compute stream without stalls, in a completed step that started at the event begin.
double pauses_compute_seconds(const struct lanes *lanes, void *begin);

#endif

// SPDX-License-Identifier: MIT
// How long a device's compute lane waits for other lanes, so that what it does without waiting is known.
#ifndef GSWBENCH_STEP_PAUSES_H
#define GSWBENCH_STEP_PAUSES_H

#include "internal.h"

struct pauses {
    const struct queue_entry *entries;    // in list order
    int32_t                   count;
    struct pause {
        void *begin, *end;    // events around what the op waits for; NULL: it computes without waiting, or transfers
    } * list;                 // [count]
    void *end;                // event after the last op that computes
};

struct pauses *pauses_open(const struct lanes *lanes, const struct queue_entry *entries, int32_t count);
void           pauses_close(const struct lanes *lanes, struct pauses *pauses);

// Around an op's waits; and behind all ops of the compute lane, before it meets the others.
void pauses_begin(const struct lanes *lanes, const struct queue_entry *entry);
void pauses_end(const struct lanes *lanes, const struct queue_entry *entry);
void pauses_finish(const struct lanes *lanes);

// Seconds of the compute lane without them, in a step that is done and began with that event.
double pauses_compute_seconds(const struct lanes *lanes, void *begin);

#endif

// SPDX-License-Identifier: MIT
// Activity records: start and end times of an op's kernels as the device records them (CUPTI).
#ifndef GSWBENCH_BACKEND_ACTIVITY_H
#define GSWBENCH_BACKEND_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/status.h"

struct backend;

// Device time span of one op: first kernel start to last kernel end, in seconds of clock_seconds.
struct backend_span {
    double begin, end;
    bool   is_known;    // false: there is no record for the op
};

// Recording runs from open to close and slows down launches. Only one backend of a process can record at a time.
struct backend_activity {
    status (*open)(struct backend *backend);               // fails with the reason: missing library, other subscriber
    void (*start)(struct backend *backend);                // later records belong to the next step
    void (*begin)(struct backend *backend, int32_t op);    // assigns this thread's launches to the op until end
    void (*end)(struct backend *backend);
    void (*stop)(struct backend *backend);    // the device has completed the step
    // Fills spans[ops] of the latest step and sets *lost to the number of records lost since open. Fails if a CUPTI
    // call failed since open; the spans are then invalid.
    status (*read)(struct backend *backend, struct backend_span *spans, int32_t ops, int64_t *lost);
    void (*close)(struct backend *backend);
};

#endif

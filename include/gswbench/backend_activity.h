// SPDX-License-Identifier: MIT
// What a device notes down of its own work, where its libraries let a program read that.
#ifndef GSWBENCH_BACKEND_ACTIVITY_H
#define GSWBENCH_BACKEND_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/status.h"

struct backend;

// When the device worked for an op, from the first begin to the last end, in seconds of clock_seconds.
struct backend_span {
    double begin, end;
    bool   is_known;    // false: the device has noted down nothing for the op
};

// Notes are taken from open to close, which slows down what a device is given. Of a process one backend at a time may
// have it.
struct backend_activity {
    status (*open)(struct backend *backend);               // why there are none: the library, another reader
    void (*start)(struct backend *backend);                // notes from here on are of the next step
    void (*begin)(struct backend *backend, int32_t op);    // what this thread enqueues up to end is the op's
    void (*end)(struct backend *backend);
    void (*stop)(struct backend *backend);    // the step's work is done
    // Of the latest step, spans[ops], and how many notes the device or the library has lost since open. Fails where a
    // call did since open; the spans are then of no use.
    status (*read)(struct backend *backend, struct backend_span *spans, int32_t ops, int64_t *lost);
    void (*close)(struct backend *backend);
};

#endif

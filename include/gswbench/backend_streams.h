// SPDX-License-Identifier: MIT
// Streams, events and graph capture of a backend with an asynchronous device.
#ifndef GSWBENCH_BACKEND_STREAMS_H
#define GSWBENCH_BACKEND_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/status.h"

struct backend;

// Functions of a backend that enqueues ops and returns. lane is the stream's index. Events order the streams. Captured
// work is not executed but recorded as a graph.
struct backend_streams {
    void (*attach)(struct backend *backend);               // call first on every thread that uses the backend
    void *(*handle)(struct backend *backend, int lane);    // native stream handle (cudaStream_t)
    void *(*event_open)(struct backend *backend, bool is_timed);
    void (*event_close)(void *event);
    void (*record)(struct backend *backend, int lane, void *event);    // after all work enqueued so far
    // records a timed event; a captured one fires in each launch
    void (*mark)(struct backend *backend, int lane, void *event);
    void (*wait)(struct backend *backend, int lane, void *event);    // stream waits for the event
    void (*synchronize)(struct backend *backend, int lane);          // blocks the caller until the stream is idle
    double (*seconds_between)(void *begin, void *end);               // between two completed events

    // Pinned host memory, and an asynchronous copy between any two memories.
    void *(*allocate_host)(struct backend *backend, int64_t bytes);
    void (*release_host)(struct backend *backend, void *data);
    void (*copy)(struct backend *backend, int lane, void *to, const void *from, int64_t bytes);

    // Captures work that this stream, and streams ordered after it by events, enqueue between begin and end. A backend
    // holds one graph. If begin or end fails there is no graph, and nothing has executed. Call end after each
    // successful begin.
    status (*capture_begin)(struct backend *backend, int lane);
    status (*capture_end)(struct backend *backend, int lane);
    void (*capture_launch)(struct backend *backend, int lane);
    void (*capture_release)(struct backend *backend);    // call before the events and communicators that the graph uses
                                                         // are closed
};

#endif

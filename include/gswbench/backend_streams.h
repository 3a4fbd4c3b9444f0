// SPDX-License-Identifier: MIT
// What a backend whose device has streams can do besides computing.
#ifndef GSWBENCH_BACKEND_STREAMS_H
#define GSWBENCH_BACKEND_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/status.h"

struct backend;

// What only a backend has whose run() enqueues on a stream and returns; each lane is a stream. Events order streams;
// work that is captured is not executed but kept, as a graph.
struct backend_streams {
    void (*attach)(struct backend *backend);               // first, on every thread that calls any other function
    void *(*handle)(struct backend *backend, int lane);    // the stream as the device's own libraries know it
    void *(*event_open)(struct backend *backend, bool is_timed);
    void (*event_close)(void *event);
    void (*record)(struct backend *backend, int lane, void *event);    // what the lane holds so far
    void (*mark)(struct backend *backend, int lane, void *event);      // a timed one; if captured, in each launch
    void (*wait)(struct backend *backend, int lane, void *event);      // holds the lane back until it is done
    void (*synchronize)(struct backend *backend, int lane);            // blocks the caller until the lane is done
    double (*seconds_between)(void *begin, void *end);                 // of two recorded and finished events

    // Host memory that a lane reads and writes by itself, and a copy between any two memories.
    void *(*allocate_host)(struct backend *backend, int64_t bytes);
    void (*release_host)(struct backend *backend, void *data);
    void (*copy)(struct backend *backend, int lane, void *to, const void *from, int64_t bytes);

    // Everything enqueued between begin and end, on the lane and on lanes ordered after it by events and before the
    // end, is captured. One graph a backend. Where either fails there is no graph, and nothing was executed; end comes
    // after each begin that did not fail.
    status (*capture_begin)(struct backend *backend, int lane);
    status (*capture_end)(struct backend *backend, int lane);
    void (*capture_launch)(struct backend *backend, int lane);
    void (*capture_release)(struct backend *backend);    // before what was captured in it is closed
};

#endif

// SPDX-License-Identifier: MIT
// A device that is none: the host's ops, deferred. run() puts an op in its lane's queue; nothing happens before
// somebody waits for a lane, and then the lanes proceed in the order that serves the waiter worst, held back by events
// alone.
#ifndef GSWBENCH_TESTS_STREAM_BACKEND_H
#define GSWBENCH_TESTS_STREAM_BACKEND_H

#include "gswbench/backend.h"

extern const struct backend_ops stream_backend;

// Before the first open: what the host executes, the device does.
void stream_fill_table(void);

// Opened by this thread, and a copy on one of its lanes: for communicators that enqueue.
extern _Thread_local struct backend *stream_latest;
void stream_copy(struct backend *backend, int lane, void *to, const void *from, int64_t bytes);

#endif

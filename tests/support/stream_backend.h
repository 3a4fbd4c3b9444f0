// SPDX-License-Identifier: MIT
// A fake device with streams: the host's ops, deferred. run() appends an op to its lane's queue. Queues advance only
// when a caller waits for a lane, and then in the worst order for the caller that events allow.
#ifndef GSWBENCH_TESTS_STREAM_BACKEND_H
#define GSWBENCH_TESTS_STREAM_BACKEND_H

#include "gswbench/backend.h"

extern const struct backend_ops stream_backend;

// Call before the first open: fills the device's table with the host's ops.
void stream_fill_table(void);

// The backend that this thread opened last, and a copy on one of its lanes, for communicators that enqueue.
extern _Thread_local struct backend *stream_latest;
void stream_copy(struct backend *backend, int lane, void *to, const void *from, int64_t bytes);

#endif

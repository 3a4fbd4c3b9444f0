// SPDX-License-Identifier: MIT
// Declares the thread pool of a rank. Idle threads sleep, so there may be more ranks than cores.
#pragma once

#include <stdint.h>

struct pool;

// Executes indices first .. last - 1 of a loop on one thread. thread: number of this thread in the pool, from 0.
typedef void pool_body(void *context, int64_t first, int64_t last, int thread);

// Opens a pool. threads includes the thread that calls pool_run; 0 or less: one for each core that the process may use.
struct pool *pool_open(int threads);
void         pool_close(struct pool *pool);
int          pool_threads(const struct pool *pool);

// Divides indices 0 .. count - 1 evenly among the threads, and returns when all are done. Only one thread may call it
// at a time.
void pool_run(struct pool *pool, pool_body *body, void *context, int64_t count);

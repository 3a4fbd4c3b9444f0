// SPDX-License-Identifier: MIT
// A rank's own threads. They sleep between loops, so that ranks may outnumber the cores.
#ifndef GSWBENCH_POOL_H
#define GSWBENCH_POOL_H

#include <stdint.h>

struct pool;

// A thread's share of a loop: indices first .. last - 1. thread is 0 .. threads - 1.
typedef void pool_body(void *context, int64_t first, int64_t last, int thread);

// threads counts the caller of pool_run, who works too; <= 0: every core that the process may use.
struct pool *pool_open(int threads);
void         pool_close(struct pool *pool);
int          pool_threads(const struct pool *pool);

// Splits 0 .. count - 1 into one even run of indices a thread and returns when all are done. One caller at a time.
void pool_run(struct pool *pool, pool_body *body, void *context, int64_t count);

#endif

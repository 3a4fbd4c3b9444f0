// SPDX-License-Identifier: MIT
// Replaces nvtx/ranges.c in builds without the NVTX header. It marks no ranges.
#include "gswbench/observe.h"

struct ranges *ranges_open(const struct plan *plan, bool is_one_thread)
{
    (void)plan, (void)is_one_thread;
    return NULL;
}

void ranges_close(struct ranges *ranges)
{
    (void)ranges;
}

void ranges_begin(struct ranges *ranges, enum range_kind range, int64_t step)
{
    (void)ranges, (void)range, (void)step;
}

void ranges_end(struct ranges *ranges)
{
    (void)ranges;
}

void ranges_begin_op(const void *ranges, const struct op *op)
{
    (void)ranges, (void)op;
}

void ranges_end_op(const void *ranges, const struct op *op)
{
    (void)ranges, (void)op;
}

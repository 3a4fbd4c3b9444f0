// SPDX-License-Identifier: MIT
// Which cases of a long table run in the short form of a test. Every commit draws others; GSWBENCH_ROWS=all, as
// scripts/test --long sets it, runs all of them.
#ifndef GSWBENCH_TESTS_DRAW_H
#define GSWBENCH_TESTS_DRAW_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// One of so many cases. GSWBENCH_DRAW is a number that follows from the commit.
static inline bool is_drawn(int index, int of)
{
    const char *which = getenv("GSWBENCH_ROWS"), *draw = getenv("GSWBENCH_DRAW");
    bool        is_whole = which != NULL && strcmp(which, "all") == 0;
    return is_whole || index % of == (draw != NULL ? atoi(draw) : 0) % of;
}

#endif

// SPDX-License-Identifier: MIT
// Selects the cases of a long table for the short form of a test. Every commit selects others; GSWBENCH_ROWS=all
// (scripts/test --long) runs all of them.
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Selects one case in `of`. GSWBENCH_DRAW is a number derived from the commit.
static inline bool is_drawn(int index, int of)
{
    const char *which = getenv("GSWBENCH_ROWS"), *draw = getenv("GSWBENCH_DRAW");
    bool        is_whole = which != NULL && strcmp(which, "all") == 0;
    return is_whole || index % of == (draw != NULL ? atoi(draw) : 0) % of;
}

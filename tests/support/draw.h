// SPDX-License-Identifier: MIT
// Selects cases of a long table for the short form of a test. Each commit selects others; GSWBENCH_ROWS=all
// (scripts/test --long) runs all of them.
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Returns whether this case is selected; one in `of` cases is. GSWBENCH_DRAW is a number derived from the commit.
static inline bool is_drawn(int index, int of)
{
    const char *which = getenv("GSWBENCH_ROWS"), *draw = getenv("GSWBENCH_DRAW");
    bool        is_whole = which != NULL && strcmp(which, "all") == 0;
    return is_whole || index % of == (draw != NULL ? atoi(draw) : 0) % of;
}

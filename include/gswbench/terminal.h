// SPDX-License-Identifier: MIT
// Shows a progress line and colours, but not in files, pipes and dumb terminals (TERM=dumb).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Disables the progress line and colours. A launcher may give a process a terminal, and write the terminal's output to
// a file.
void terminal_hide(void);

// A progress line on standard error with the estimated time left. Not thread-safe.
struct progress {
    const char *what;     // "sweep"
    int64_t     total;    // pieces of work; 0: unknown
    double      began, drawn;
    bool        is_live;
};

struct progress progress_begin(const char *what, int64_t total);

// Redraws the line, at most ten times a second. A nonempty detail follows the time left.
void progress_show(struct progress *progress, int64_t done, const char *detail);

// Erases the line, before other output or at the end.
void progress_clear(struct progress *progress);

enum colour { COLOUR_GOOD, COLOUR_DOUBTFUL, COLOUR_BAD, COLOUR_END };

// Escape sequence before a word in that colour, or after it (COLOUR_END); "" without a terminal or with NO_COLOR.
const char *terminal_colour(FILE *file, enum colour colour);

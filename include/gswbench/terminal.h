// SPDX-License-Identifier: MIT
// What only somebody at a terminal sees: a live line for work that takes long, and colours. Neither reaches a file or a
// pipe, nor a terminal that cannot draw them (TERM=dumb).
#ifndef GSWBENCH_TERMINAL_H
#define GSWBENCH_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// From then on there is none, whatever the files seem to be: launchers give their processes terminals, and write what
// comes of them to a file.
void terminal_hide(void);

// One line on standard error that is drawn again and again. It says how far the work is, and how long the rest takes if
// it goes on as it did. Of one thread.
struct progress {
    const char *what;     // "sweep"
    int64_t     total;    // pieces of work; 0: nobody knows
    double      began, drawn;
    bool        is_live;
};

struct progress progress_begin(const char *what, int64_t total);

// After so many pieces; detail follows the time that is left, "": none. At most ten times a second.
void progress_show(struct progress *progress, int64_t done, const char *detail);

// Takes the line away, so that something else can be printed or the work ends.
void progress_clear(struct progress *progress);

enum colour { COLOUR_GOOD, COLOUR_DOUBTFUL, COLOUR_BAD, COLOUR_END };

// What to print before a word in that colour, COLOUR_END what to print after it: "" where the file is no terminal or
// where NO_COLOR is set.
const char *terminal_colour(FILE *file, enum colour colour);

#endif

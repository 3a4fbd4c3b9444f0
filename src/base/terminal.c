// SPDX-License-Identifier: MIT
// Progress line and colours for terminals.
#include "gswbench/terminal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/clock.h"

static const double drawn_every = 0.1;    // minimum seconds between two updates of a progress line

static bool is_hidden;

void terminal_hide(void)
{
    is_hidden = true;
}

static bool draws(FILE *file)
{
    const char *terminal = getenv("TERM");
    return !is_hidden && isatty(fileno(file)) && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

struct progress progress_begin(const char *what, int64_t total)
{
    return (struct progress){.what = what, .total = total, .began = clock_seconds(), .is_live = draws(stderr)};
}

// Prints a duration: "2 h 5 min", "4 min 10 s", "12 s".
static const char *print_time(char *text, int size, double seconds)
{
    int64_t whole = (int64_t)(seconds + 0.5);
    if (whole >= 3600) {
        snprintf(text, (size_t)size, "%" PRId64 " h %" PRId64 " min", whole / 3600, whole % 3600 / 60);
    } else if (whole >= 60) {
        snprintf(text, (size_t)size, "%" PRId64 " min %" PRId64 " s", whole / 60, whole % 60);
    } else {
        snprintf(text, (size_t)size, "%" PRId64 " s", whole);
    }
    return text;
}

void progress_show(struct progress *progress, int64_t done, const char *detail)
{
    double now = clock_seconds();
    char   left[32];
    if (!progress->is_live || now - progress->drawn < drawn_every) {
        return;
    }
    progress->drawn = now;
    fprintf(stderr, "\r\033[K%s: %" PRId64, progress->what, done);
    if (progress->total > 0) {
        fprintf(stderr, " of %" PRId64, progress->total);
    }
    if (done > 0 && done <= progress->total) {
        double rest = (now - progress->began) * (double)(progress->total - done) / (double)done;
        fprintf(stderr, ", %s left", print_time(left, sizeof(left), rest));
    }
    fprintf(stderr, "%s%s", detail[0] != '\0' ? "; " : "", detail);
    fflush(stderr);
}

void progress_clear(struct progress *progress)
{
    if (progress->is_live && progress->drawn > 0.0) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
        progress->drawn = 0.0;
    }
}

const char *terminal_colour(FILE *file, enum colour colour)
{
    static const char *const codes[] = {[COLOUR_GOOD]     = "\033[1;32m",
                                        [COLOUR_DOUBTFUL] = "\033[1;33m",
                                        [COLOUR_BAD]      = "\033[1;31m",
                                        [COLOUR_END]      = "\033[0m"};
    const char              *refused = getenv("NO_COLOR");
    return draws(file) && (refused == NULL || refused[0] == '\0') ? codes[colour] : "";
}

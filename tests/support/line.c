// SPDX-License-Identifier: MIT
// Keeps formatted texts in an arena.
#include "line.h"

#include <stdarg.h>
#include <stdio.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/status.h"

const char *line_of(const char *format, ...)
{
    static struct arena arena;
    char                line[4096];
    va_list             values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    if (length >= (int)sizeof(line)) {
        FATAL(EXIT_INTERNAL, "a line of a test is too long: %s", line);
    }
    return arena_format(&arena, "%s", line);
}

// SPDX-License-Identifier: MIT
// Prints a fatal error and ends the job.
#include "gswbench/fatal.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "gswbench/text.h"

static fatal_hook       *end_job;
static _Thread_local int rank_of_thread = -1;

void fatal_set_hook(fatal_hook *hook)
{
    end_job = hook;
}

void fatal_set_rank(int rank)
{
    rank_of_thread = rank;
}

noreturn void fatal_at(const char *file, int line, int exit_code, const char *format, ...)
{
    char    text[1024], reason[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    text_printable(reason, sizeof(reason), text);

    char host[256] = "unknown";
    gethostname(host, sizeof(host) - 1);
    fflush(stdout);
    fprintf(stderr, "gswbench: rank %d on %s: %s (%s:%d)\n", rank_of_thread, host, reason, file, line);
    if (end_job != NULL) {
        end_job(exit_code);
    }
    _exit(exit_code);
}

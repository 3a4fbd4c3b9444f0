// SPDX-License-Identifier: MIT
// Prints a fatal error and ends the job. If the cause is damage, such as an impossible row count from another rank, a
// hook is called first, which may end the job with a better explanation.
#include "gswbench/fatal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "gswbench/output.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

enum { SECONDS_TO_JUDGE = 5 };    // time for the damage hook to end the job

static fatal_hook       *end_job;
static _Thread_local int rank_of_thread = -1;
static pthread_mutex_t   mutex          = PTHREAD_MUTEX_INITIALIZER;
static damage_hook      *judge;
static void             *judge_context;

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
    if (!output_is_blocked()) {
        fflush(stdout);
    }
    fprintf(stderr, "gswbench: rank %d on %s: %s (%s:%d)\n", rank_of_thread, host, reason, file, line);
    if (end_job != NULL) {
        end_job(exit_code);
    }
    _exit(exit_code);
}

void fatal_set_damage_hook(damage_hook *hook, void *context)
{
    pthread_mutex_lock(&mutex);
    judge         = hook;
    judge_context = context;
    pthread_mutex_unlock(&mutex);
}

noreturn void damage_at(const char *file, int line, const char *format, ...)
{
    char    text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&mutex);
    bool is_judged = judge != NULL;
    if (is_judged) {
        judge(judge_context, rank_of_thread, text);
    }
    pthread_mutex_unlock(&mutex);
    for (unsigned left = is_judged ? SECONDS_TO_JUDGE : 0; left > 0;) {
        left = sleep(left);    // sleep returns early if the launcher sends SIGTERM
    }
    fatal_at(file, line, EXIT_INVALID, "%s", text);
}

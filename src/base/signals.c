// SPDX-License-Identifier: MIT
// Handlers of the signals that end a run or request a status report.
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/signals.h"
#include "gswbench/status.h"

static atomic_int  caught;    // any thread may run the handler
static atomic_bool is_asked, is_kept, is_mute;

static char out_of_time[160];    // printed if SIGALRM comes before any measurement; a handler must not format

// Handles signals that end the run. Exits at once while there is no result to keep, because opening devices may block.
static void catch_end(int number)
{
    static const char signalled[] = "gswbench: stopped by a signal before anything was measured\n";
    caught                        = number;
    if (!is_kept) {
        const char *early  = number == SIGALRM && out_of_time[0] != '\0' ? out_of_time : signalled;
        ssize_t     unused = is_mute ? 0 : write(STDERR_FILENO, early, strlen(early));
        (void)unused;
        _exit(EXIT_STOPPED);
    }
}

static void catch_question(int number)
{
    (void)number;
    is_asked = true;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGUSR1};

static void set_handlers(void)
{
    struct sigaction end      = {.sa_handler = catch_end, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    struct sigaction question = {.sa_handler = catch_question, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        sigaction(ends[i], &end, NULL);
    }
    sigaction(SIGUSR2, &question, NULL);
    // SIGPIPE would end the process silently. Without it, a write to a closed pipe fails with EPIPE and is reported.
    signal(SIGPIPE, SIG_IGN);
}

void signals_catch(bool is_first, int64_t seconds)
{
    is_mute = !is_first;
    if (seconds > 0) {
        snprintf(out_of_time, sizeof(out_of_time),
                 "gswbench: the time limit of %" PRId64 " s ended before anything was measured: raise --time-limit "
                 "(run.time_limit), or set it to 0 for none\n",
                 seconds);
    }
    set_handlers();
    alarm((unsigned)seconds);
}

void signals_keep(void)
{
    is_kept = true;
    if (caught == 0) {
        set_handlers();    // libraries of MPI may have replaced them: UCX uses SIGHUP
    }
}

void signals_release(void)
{
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        signal(ends[i], SIG_DFL);
    }
}

int signals_caught(void)
{
    return caught;
}

int signals_caught_end(void)
{
    return caught == SIGUSR1 ? 0 : caught;
}

const char *signals_name(int number)
{
    static const char *const names[] = {
        [0] = "the end of its launcher", [SIGINT] = "SIGINT",  [SIGTERM] = "SIGTERM", [SIGHUP] = "SIGHUP",
        [SIGALRM] = "its time limit",    [SIGUSR1] = "SIGUSR1"};
    bool has_name = number >= 0 && number < (int)(sizeof(names) / sizeof(names[0])) && names[number] != NULL;
    return has_name ? names[number] : "a signal";
}

bool signals_take_question(void)
{
    return is_asked && atomic_exchange(&is_asked, false);
}

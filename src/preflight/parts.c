// SPDX-License-Identifier: MIT
// Tells the watchdog each rank's current work.
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "gswbench/signals.h"
#include "internal.h"

// Runs on rank 0's watchdog thread.
static void leave(void *context, int signal)
{
    (void)context;
    fprintf(stderr, "gswbench: stopped by %s: the preflight has no result\n", signals_name(signal));
    _exit(EXIT_STOPPED);
}

// The first phase is WATCH_OPENING, which has a longer timeout.
status flight_open_watch(struct flight *flight)
{
    int64_t                  seconds = flight->preflight->benchmark.job.config.run.hang_seconds;
    const struct watch_setup setup   = {.comm              = flight->comm,
                                        .plan              = &flight->plan,
                                        .seconds           = seconds < 0 ? 0 : (double)seconds,
                                        .caught            = signals_caught_end,
                                        .is_asked          = signals_take_question,
                                        .has_lost_launcher = comm_has_lost_launcher,
                                        .leave             = flight->comm->topology.rank == 0 ? leave : NULL};
    if (seconds == 0) {
        return OK;
    }
    TRY(comm_agree(flight->comm, watch_open(&flight->watch, &setup)));
    signals_keep();    // the watchdog polls for signals now
    watch_enter_part(flight->watch, WATCH_OPENING, NULL, "opening the job's plan");
    return OK;
}

void flight_run(struct flight *flight, const struct plan *plan, struct step *step, const char *format, ...)
{
    char    words[160];
    va_list values;
    if (flight->watch == NULL) {
        return;
    }
    va_start(values, format);
    vsnprintf(words, sizeof(words), format, values);
    va_end(values);
    if (step != NULL) {
        step_set_progress(step, watch_progress(flight->watch));
    }
    watch_enter_part(flight->watch, WATCH_STEP, plan, words);
}

void flight_meet(struct flight *flight, const char *after)
{
    char words[160];
    snprintf(words, sizeof(words), "after %.150s", after);
    if (flight->watch != NULL) {
        watch_enter_part(flight->watch, WATCH_BETWEEN, NULL, words);
    }
}

// SPDX-License-Identifier: MIT
// Controls the measurements: repeats them within the time budget, gives time slots to ranks that share cores, and tells
// the watchdog the work of this rank.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/signals.h"
#include "internal.h"

// Ends rank 0 after a signal, or (signal 0) after its launcher has ended. The watchdog thread calls it.
static void leave(void *context, int signal)
{
    (void)context;
    fprintf(stderr, "gswbench: stopped by %s: the preflight has no result\n", signals_name(signal));
    _exit(EXIT_STOPPED);
}

// Starts the watchdog in phase WATCH_OPENING, which has a longer timeout than the measurements.
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
    signals_keep();    // from now on the watchdog acts on signals
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
    watch_enter_part(flight->watch, WATCH_BETWEEN, NULL, words);
}

bool flight_has_time(struct flight *flight, double share)
{
    double elapsed = clock_seconds() - flight->began;
    flight->comm->ops->share(flight->comm, &elapsed, sizeof(elapsed), 0);
    return elapsed < share * flight->preflight->seconds;
}

// Returns a hash of the outliers from index `first` on, without their values. If it is equal after two batches, both
// found the same outliers. 0: no outliers.
static uint64_t find_fingerprint(const struct preflight_report *report, int64_t first)
{
    uint64_t hash = 0;
    for (int64_t i = first; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier   = &report->outliers[i];
        const int64_t                   numbers[] = {outlier->blame, outlier->rank, outlier->other_rank};
        hash = XXH3_64bits_withSeed(outlier->class_name, sizeof(outlier->class_name),
                                    XXH3_64bits_withSeed(numbers, sizeof(numbers), hash));
    }
    return hash;
}

static uint64_t judge(struct preflight_report *report, int64_t first_class, int64_t first_outlier)
{
    report->outlier_count = first_outlier;
    for (int64_t i = first_class; i < report->class_count; i++) {
        preflight_judge(report, &report->classes[i]);
    }
    return find_fingerprint(report, first_outlier);
}

bool flight_is_outlier(const struct flight *flight, int64_t first_class, int64_t rank)
{
    const struct preflight_report *report = &flight->report;
    for (int64_t i = 0; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier = &report->outliers[i];
        bool is_host = outlier->rank < 0 && strcmp(outlier->host, report->ranks[rank].host) == 0;
        for (int64_t j = first_class; j < report->class_count && (is_host || outlier->rank == rank); j++) {
            if (strcmp(outlier->class_name, report->classes[j].name) == 0) {
                return true;
            }
        }
    }
    return false;
}

// Returns whether two outliers blame the same host, device, link or group. A host and one of its devices count as same.
static bool is_same_finding(const struct preflight_outlier *one, const struct preflight_outlier *other)
{
    bool is_class = strcmp(one->class_name, other->class_name) == 0, is_host = strcmp(one->host, other->host) == 0;
    if (one->blame == other->blame) {
        return is_class && is_host && one->rank == other->rank && one->other_rank == other->other_rank;
    }
    return is_class && is_host && one->blame <= BLAME_DEVICE && other->blame <= BLAME_DEVICE;
}

// Of the outliers from index `first` on, keeps only those that the previous batch found, too (before[count]).
static void keep_confirmed(struct preflight_report *report, int64_t first, const struct preflight_outlier *before,
                           int64_t count)
{
    int64_t kept = first;
    for (int64_t i = first; i < report->outlier_count; i++) {
        bool is_confirmed = false;
        for (int64_t j = 0; j < count && !is_confirmed; j++) {
            is_confirmed = is_same_finding(&report->outliers[i], &before[j]);
        }
        if (is_confirmed) {
            report->outliers[kept++] = report->outliers[i];
        }
    }
    report->outlier_count = kept;
}

status flight_repeat(struct flight *flight, const struct flight_series *series)
{
    enum { CONFIRMATIONS = 4 };
    struct preflight_report  *report = &flight->report;
    int64_t                   first = report->outlier_count, count = 0;
    struct preflight_outlier *before = NULL;    // [count]: outliers of the batch before
    uint64_t                  last   = 0;
    status                    result = OK;
    for (int confirmed = 0, batches = 1; confirmed < CONFIRMATIONS; batches++) {
        for (int i = 0; i < series->batch && (i == 0 || flight_has_time(flight, series->share)); i++) {
            result = failed(&result) ? result : series->run(flight, series->state);
        }
        if (failed(&result)) {
            break;
        }
        count = report->outlier_count - first;
        if (count > 0) {
            before = memory_resize(before, (size_t)count * sizeof(*before));
            memcpy(before, report->outliers + first, (size_t)count * sizeof(*before));
        }
        uint64_t found      = judge(report, series->first_class, first);
        bool     settled    = series->has_settled == NULL || series->has_settled(series->state);
        confirmed           = settled && found == last ? confirmed + 1 : settled;
        last                = found;
        bool is_confirmable = found == 0 || batches > 1;
        if ((found == 0 && settled) || (is_confirmable && !flight_has_time(flight, series->share))) {
            break;
        }
    }
    keep_confirmed(report, first, before, count);
    free(before);
    return result;
}

static bool shares_cores(const struct flight *flight, int rank)
{
    const struct environment_peer *peers = flight->environment.peers;
    return peers[rank].cores_hash == peers[flight->comm->topology.rank].cores_hash;
}

// Outside their slots ranks sleep, because polling would take cores from the rank that measures. Ranks that share cores
// are on one host, so their clocks agree. The total time does not depend on the number of ranks that take part, so
// fewer ranks get longer slots.
struct flight_turn flight_take_turn(struct flight *flight, const bool *takes_part, double seconds)
{
    static const double settling = 2e-3;    // time in which all ranks return from the gather
    int                 ranks = flight->comm->topology.ranks, own = flight->comm->topology.rank, turns = 0, index = 0;
    double              start  = clock_seconds();
    struct flight_turn  turn   = {.takes_part = takes_part[own]};
    double             *starts = comm_gather(flight->comm, &start, sizeof(start));
    for (int rank = ranks - 1; rank >= 0 && flight->takes_turns; rank--) {
        start = shares_cores(flight, rank) ? starts[rank] + settling : start;
        turns += shares_cores(flight, rank) && takes_part[rank];
        index += shares_cores(flight, rank) && takes_part[rank] && rank < own;
    }
    free(starts);
    turn.all      = start + seconds * (double)(flight->takes_turns ? flight->environment.cores.sharers : 1);
    double length = (turn.all - start) / (turns > 0 ? turns : 1);
    turn.begin    = start + index * length;
    turn.end      = turn.begin + length;
    if (flight->takes_turns && turn.takes_part) {
        clock_sleep_until(turn.begin);
    }
    return turn;
}

// SPDX-License-Identifier: MIT
// Runs the watchdog thread of a rank. It polls the rank's progress, and starts the alarm (alarm.c) if there has been
// none for too long.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/statistics.h"
#include "gswbench/text.h"
#include "internal.h"

static const double PERIOD_SECONDS = 0.1;

static const double MIN_SECONDS       = 60;
static const double STEPS_OF_PATIENCE = 10;    // time limit of a step, in median steps
static const double SLOW_PHASES       = 10;    // factor of the time limit in phases except WATCH_STEP and WATCH_BETWEEN
static const double PAUSE_SECONDS     = 1;     // a longer gap between two polls means that this process was stopped
static const double GRACE_SECONDS     = 0.4;    // default time to finish a step after a signal; mpirun kills after 1 s

// Returns a hash of the counters that show progress. Pieces of files count only in WATCH_FILE, which is between steps.
// During a step, a checkpoint that is written in the background would hide that the step hangs.
static uint64_t hash_progress(const struct watch *watch)
{
    const struct shown *shown = watch->shown;
    unsigned            files = shown->phase == WATCH_FILE ? watch->pieces : 0;
    uint64_t            sum   = ((uint64_t)shown->step * 8 + (uint64_t)shown->phase) * 1000003 + files + watch->beats;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        sum = sum * 1000003 + (uint64_t)(uint32_t)shown->progress.op[stream];
    }
    return sum;
}

const struct plan *watch_named_plan(const struct watch *watch)
{
    return watch->words[0] == '\0' ? watch->setup.plan : NULL;
}

static void print_states(const struct watch *watch)
{
    const struct comm_topology *topology = &watch->setup.comm->topology;
    for (int i = 0; i < topology->local_ranks; i++) {
        struct slot slot;
        char        where[300];
        slot_read(&slot, &watch->segment->ranks[i], topology->host);
        slot_name_place(&slot, watch_named_plan(watch), where, sizeof(where));
        fprintf(stderr, "gswbench: rank %d (%s, pid %d, state %c): %s; last progress %.1f s ago\n", slot.rank,
                slot.host, slot.pid, slot.state, where, slot.still);
    }
}

bool watch_claim_end(struct watch *watch)
{
    return !atomic_exchange(&watch->is_claimed, true);
}

static void look_for_signals(struct watch *watch, double now)
{
    const struct watch_setup *setup  = &watch->setup;
    double                    grace  = setup->grace > 0 ? setup->grace : GRACE_SECONDS;
    int                       signal = setup->caught();
    if (signal != 0) {
        watch->segment->signal = signal;
    }
    if (watch->segment->signal != 0 && watch->caught == 0) {
        watch->caught = now;
    }
    if (setup->leave != NULL && watch->caught != 0 && now - watch->caught > grace && watch_claim_end(watch)) {
        setup->leave(setup->context, watch->segment->signal);
    }
    if (setup->leave != NULL && setup->has_lost_launcher() && watch_claim_end(watch)) {
        setup->leave(setup->context, 0);
    }
    if (setup->is_asked()) {
        print_states(watch);
    }
}

double watch_limit(const struct watch *watch, int phase)
{
    return watch->limit * (phase == WATCH_STEP || phase == WATCH_BETWEEN ? 1 : SLOW_PHASES);
}

static void poll_rank(struct watch *watch, uint64_t *seen)
{
    struct shown *shown = watch->shown;
    double        now   = clock_seconds();
    uint64_t      sum   = hash_progress(watch);
    // there was progress, or this process was stopped and now continues
    if (sum != *seen || now - shown->looked > PAUSE_SECONDS) {
        shown->moved    = now;
        shown->extended = 0;    // an extension of the deadline (alarm.c) ends with the next progress
        *seen           = sum;
        if (watch->is_counted) {
            slot_count_messages(shown, NULL);
        }
        watch->is_counted = false;
    } else if (!watch->is_counted) {    // only once, because a plan may have 100,000 ops
        slot_count_messages(shown, watch_named_plan(watch));
        watch->is_counted = true;
    }
    if (watch->words[0] != '\0') {
        slot_show_part(shown, watch->part, watch->words);
    } else if (shown->phase == WATCH_FILE) {
        slot_show_part(shown, NULL, watch->file);
    } else {
        slot_show(shown, watch->setup.plan);
    }
    shown->sequence = watch->setup.comm->ops->is_enqueued ? slot_sequence(watch_named_plan(watch)) : 0;
    shown->looked   = now;
    look_for_signals(watch, now);
    alarm_answer(watch, NULL);
    damage_look(watch);
    if (now - fmax(shown->moved, shown->extended) > watch_limit(watch, shown->phase) || watch->segment->called != 0 ||
        watch->segment->verdict != 0) {
        alarm_end_job(watch);
        shown->looked = clock_seconds();    // else the next poll could take a long alarm_end_job for SIGSTOP
    }
}

static void *run_watchdog(void *argument)
{
    struct watch *watch = argument;
    uint64_t      seen  = ~hash_progress(watch);
    fatal_set_rank(watch->setup.comm->topology.rank);
    watch->shown->looked = clock_seconds();
    pthread_mutex_lock(&watch->mutex);
    while (!watch->is_closing) {
        poll_rank(watch, &seen);
        clock_wait(&watch->closes, &watch->mutex, clock_seconds() + PERIOD_SECONDS);
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

status watch_open(struct watch **opened, const struct watch_setup *setup)
{
    struct watch *watch = memory_allocate(sizeof(*watch));
    *watch              = (struct watch){.setup = *setup, .limit = setup->seconds > 0 ? setup->seconds : MIN_SECONDS};
    *opened             = watch;
    status shared       = segment_open(&watch->segment, setup->comm);
    watch->channel      = setup->comm->topology.nodes > 1 ? channel_open(setup->comm) : NULL;
    TRY(shared);    // only here, because both calls are collective, and segment_open may fail on one host only
    watch->shown        = &watch->segment->ranks[setup->comm->topology.local_rank];
    watch->shown->rank  = setup->comm->topology.rank;
    watch->shown->pid   = getpid();
    watch->shown->moved = clock_seconds();
    pthread_mutex_init(&watch->mutex, NULL);
    clock_open_condition(&watch->closes);
    if (pthread_create(&watch->thread, NULL, run_watchdog, watch) != 0) {
        segment_close(watch->segment, &setup->comm->topology);
        watch->segment = NULL;
        return fail_as(EXIT_LAUNCH, "cannot start the thread that watches the run");
    }
    // A process has one hook. If ranks are threads, the last one sets it for all of them, since they share the segment.
    fatal_set_damage_hook(damage_found, watch);
    return OK;
}

void watch_close(struct watch *watch)
{
    if (watch == NULL) {
        return;
    }
    if (watch->segment != NULL) {
        fatal_set_damage_hook(NULL, NULL);
        pthread_mutex_lock(&watch->mutex);
        watch->is_closing = true;
        pthread_cond_signal(&watch->closes);
        pthread_mutex_unlock(&watch->mutex);
        pthread_join(watch->thread, NULL);
        pthread_cond_destroy(&watch->closes);
        pthread_mutex_destroy(&watch->mutex);
        segment_close(watch->segment, &watch->setup.comm->topology);
    }
    if (watch->channel != NULL) {
        channel_close(watch->channel);
    }
    free(watch);
}

struct step_progress *watch_progress(struct watch *watch)
{
    return &watch->shown->progress;
}

static void forget_ops(struct shown *shown)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        shown->progress.op[stream]    = 0;
        shown->progress.moves[stream] = 0;
    }
}

void watch_enter(struct watch *watch, enum watch_phase phase, int64_t step)
{
    if (watch == NULL) {
        return;
    }
    forget_ops(watch->shown);    // of the previous phase
    watch->shown->step  = step;
    watch->shown->phase = phase;
    watch->shown->phases++;
}

// The mutex keeps the watchdog thread out: the thread holds it except while it waits for its next poll.
void watch_enter_part(struct watch *watch, enum watch_phase phase, const struct plan *plan, const char *words)
{
    if (watch == NULL) {
        return;
    }
    struct shown *shown = watch->shown;
    pthread_mutex_lock(&watch->mutex);
    shown->step += (int)phase == shown->phase && phase == WATCH_BETWEEN;
    shown->step += phase == WATCH_STEP && shown->phase != WATCH_STEP;
    shown->phase  = phase;
    shown->phases = 2 * shown->step + (phase == WATCH_BETWEEN);    // counts skipped WATCH_STEP phases, too
    forget_ops(shown);
    watch->part = plan;
    text_copy(watch->words, sizeof(watch->words), words);
    slot_show_part(shown, plan, words);
    pthread_mutex_unlock(&watch->mutex);
}

void watch_move(struct watch *watch)
{
    if (watch != NULL) {
        atomic_fetch_add_explicit(&watch->pieces, 1, memory_order_relaxed);
    }
}

void watch_beat(struct watch *watch)
{
    if (watch != NULL) {
        atomic_fetch_add_explicit(&watch->beats, 1, memory_order_relaxed);
    }
}

// Stores the path for messages. Keeps only the end of a long path, because the end identifies the file.
void watch_enter_file(struct watch *watch, const char *path)
{
    enum { SHOWN = 140 };
    if (watch == NULL) {
        return;
    }
    watch_move(watch);
    if (path != NULL) {
        size_t length = strlen(path), skipped = length > SHOWN ? length - SHOWN : 0;
        pthread_mutex_lock(&watch->mutex);
        snprintf(watch->file, sizeof(watch->file), "at file %s%s", skipped > 0 ? "..." : "", path + skipped);
        pthread_mutex_unlock(&watch->mutex);
    }
    watch->shown->phase = path != NULL ? WATCH_FILE : WATCH_FILES;
    watch->shown->phases += path == NULL;
}

void watch_learn(struct watch *watch, double seconds)
{
    if (watch == NULL) {
        return;
    }
    watch->steps[watch->learnt++ % WATCH_STEPS] = seconds;
    int64_t count                               = watch->learnt < WATCH_STEPS ? watch->learnt : WATCH_STEPS;
    if (watch->setup.seconds <= 0) {
        watch->limit = fmax(MIN_SECONDS, STEPS_OF_PATIENCE * statistics_median(watch->steps, count));
    }
}

// SPDX-License-Identifier: MIT
// The thread of a rank that looks whether it moves, and what happens when it has not for too long.
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "internal.h"

enum { PERIOD_NS = 100000000, STEPS_KEPT = 15 };

static const double LEAST_SECONDS     = 60;
static const double STEPS_OF_PATIENCE = 10;     // median steps
static const double SLOW_PHASES       = 10;     // other phases may take so many times as long
static const double PAUSE_SECONDS     = 1;      // ten looks
static const double GRACE_SECONDS     = 0.4;    // of a step after a signal: mpirun kills a second after it
static const double SPEAKER_SECONDS   = 1;      // in which the speaker must have spoken

struct watch {
    struct watch_setup setup;
    struct board      *board;
    struct shown      *shown;    // of this rank
    pthread_t          thread;
    pthread_mutex_t    mutex;
    pthread_cond_t     closes;
    bool               is_closing;
    _Atomic double     limit;
    atomic_bool        is_claimed;           // who writes the result
    double             caught;               // when a signal was seen; 0: none was
    double             steps[STEPS_KEPT];    // seconds of the latest
    int64_t            learnt;
};

// All that moves, as one number that changes when any of it does.
static uint64_t sum_of(const struct shown *shown)
{
    uint64_t sum = (uint64_t)shown->step * 8 + (uint64_t)shown->phase;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        sum = sum * 1000003 + (uint64_t)(uint32_t)shown->progress.op[lane];
    }
    return sum;
}

// "all_gather "weight gather", forward, layer 3", of another rank: by that rank's own plan where ours is another.
static void name_place(const struct watch *watch, const struct post *post, char *text, size_t bytes)
{
    const struct plan *plan  = watch->setup.plan;
    int32_t            found = post_op(post);
    if (found >= 0 && found < plan->op_count && post->phase <= WATCH_STEP) {
        char name[240];
        snprintf(text, bytes, "step %" PRId64 ", %s", post->step, plan_op_name(plan, found, name, sizeof(name)));
    } else {
        static const char *const names[]  = {[WATCH_OPENING] = "before the first step",
                                             [WATCH_STEP]    = "between ops of step",
                                             [WATCH_BETWEEN] = "after step",
                                             [WATCH_CLOSING] = "after the last step"};
        bool                     has_step = post->phase == WATCH_STEP || post->phase == WATCH_BETWEEN;
        snprintf(text, bytes, has_step ? "%s %" PRId64 : "%s", names[post->phase], post->step);
    }
}

static void tell_all(const struct watch *watch)
{
    const struct comm_place *place = &watch->setup.comm->place;
    for (int i = 0; i < place->local_ranks; i++) {
        struct post post;
        char        where[300];
        post_read(&post, &watch->board->ranks[i], place->host);
        name_place(watch, &post, where, sizeof(where));
        fprintf(stderr, "gswbench: rank %d (%s, pid %d, state %c): %s; it moved %.1f s ago\n", post.rank, post.host,
                post.pid, post.state, where, post.still);
    }
}

static void speak(const struct watch *watch, double still)
{
    const struct comm_place *place = &watch->setup.comm->place;
    struct post             *posts = memory_allocate((size_t)place->local_ranks * sizeof(*posts));
    int64_t                  index, waiting;
    char                     where[300];
    for (int i = 0; i < place->local_ranks; i++) {
        post_read(&posts[i], &watch->board->ranks[i], place->host);
    }
    enum blame               blame = blame_find(posts, place->local_ranks, &watch->setup.plan->mesh, &index, &waiting);
    const struct post       *post  = &posts[index];
    static const char *const why[] = {[BLAME_GONE]    = "its process is gone",
                                      [BLAME_STOPPED] = "its process is stopped",
                                      [BLAME_DEAF]    = "its process does not get to run",
                                      [BLAME_AWAITED] = "the others wait for it"};
    name_place(watch, post, where, sizeof(where));
    fflush(stdout);
    if (blame == BLAME_NOBODY) {
        fprintf(stderr,
                "gswbench: hang: nothing has moved for %.1f s, and all ranks wait for each other; rank %d: %s\n", still,
                post->rank, where);
    } else {
        fprintf(stderr,
                "gswbench: hang: rank %d (%s, pid %d, state %c): %s; nothing has moved for %.1f s; last: %s; %" PRId64
                " other%s wait\n",
                post->rank, post->host, post->pid, post->state, why[blame], still, where, waiting,
                waiting == 1 ? "" : "s");
    }
    watch->board->verdict = 1;
    // A stopped process takes no other signal. The launcher is to see the others' exit code first.
    if (blame == BLAME_STOPPED) {
        nanosleep(&(struct timespec){.tv_nsec = 5 * PERIOD_NS}, NULL);
        kill(post->pid, SIGKILL);
    }
    free(posts);
}

// No call that may wait for a library: the job ends because its processes do.
static void end_job(const struct watch *watch, double still)
{
    int nobody = 0;
    if (atomic_compare_exchange_strong(&watch->board->speaker, &nobody, watch->setup.comm->place.local_rank + 1)) {
        speak(watch, still);
    }
    double begin = clock_seconds();
    while (watch->board->verdict == 0 && clock_seconds() - begin < SPEAKER_SECONDS) {
        nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS / 10}, NULL);
    }
    _exit(EXIT_HANG);
}

bool watch_claim_end(struct watch *watch)
{
    return !atomic_exchange(&watch->is_claimed, true);
}

static void look_for_signals(struct watch *watch, double now)
{
    const struct watch_setup *setup  = &watch->setup;
    int                       signal = setup->caught();
    if (signal != 0) {
        watch->board->signal = signal;
    }
    if (watch->board->signal != 0 && watch->caught == 0) {
        watch->caught = now;
    }
    if (setup->leave != NULL && watch->caught != 0 && now - watch->caught > GRACE_SECONDS && watch_claim_end(watch)) {
        setup->leave(setup->context, watch->board->signal);
    }
    if (setup->is_asked()) {
        tell_all(watch);
    }
}

static double limit_of(const struct watch *watch)
{
    return watch->limit *
           (watch->shown->phase == WATCH_OPENING || watch->shown->phase == WATCH_CLOSING ? SLOW_PHASES : 1);
}

static void look(struct watch *watch, uint64_t *seen)
{
    struct shown *shown = watch->shown;
    double        now   = clock_seconds();
    uint64_t      sum   = sum_of(shown);
    if (sum != *seen || now - shown->looked > PAUSE_SECONDS) {    // or this process was stopped itself, and goes on
        shown->moved = now;
        *seen        = sum;
    }
    post_show_transfers(shown, watch->setup.plan);
    shown->looked = now;
    look_for_signals(watch, now);
    if (now - shown->moved > limit_of(watch) || watch->board->verdict != 0) {
        end_job(watch, now - shown->moved);
    }
}

static void *look_on(void *argument)
{
    struct watch *watch = argument;
    uint64_t      seen  = ~sum_of(watch->shown);
    fatal_set_rank(watch->setup.comm->place.rank);
    watch->shown->looked = clock_seconds();
    pthread_mutex_lock(&watch->mutex);
    while (!watch->is_closing) {
        struct timespec until;
        look(watch, &seen);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PERIOD_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&watch->closes, &watch->mutex, &until);
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

status watch_open(struct watch **opened, const struct watch_setup *setup)
{
    struct watch *watch = memory_allocate(sizeof(*watch));
    *watch              = (struct watch){.setup = *setup, .limit = setup->seconds > 0 ? setup->seconds : LEAST_SECONDS};
    *opened             = watch;
    TRY(board_open(&watch->board, setup->comm));
    watch->shown        = &watch->board->ranks[setup->comm->place.local_rank];
    watch->shown->rank  = setup->comm->place.rank;
    watch->shown->pid   = getpid();
    watch->shown->moved = clock_seconds();
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->closes, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&watch->thread, NULL, look_on, watch) != 0) {
        board_close(watch->board, &setup->comm->place);
        watch->board = NULL;
        return fail_as(EXIT_LAUNCH, "cannot start the thread that watches the run");
    }
    return OK;
}

void watch_close(struct watch *watch)
{
    if (watch->board != NULL) {
        pthread_mutex_lock(&watch->mutex);
        watch->is_closing = true;
        pthread_cond_signal(&watch->closes);
        pthread_mutex_unlock(&watch->mutex);
        pthread_join(watch->thread, NULL);
        pthread_cond_destroy(&watch->closes);
        pthread_mutex_destroy(&watch->mutex);
        board_close(watch->board, &watch->setup.comm->place);
    }
    free(watch);
}

struct step_progress *watch_progress(struct watch *watch)
{
    return &watch->shown->progress;
}

void watch_enter(struct watch *watch, enum watch_phase phase, int64_t step)
{
    watch->shown->step  = step;
    watch->shown->phase = phase;
}

static int compare_seconds(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

void watch_learn(struct watch *watch, double seconds)
{
    double  sorted[STEPS_KEPT];
    int64_t count;
    watch->steps[watch->learnt++ % STEPS_KEPT] = seconds;
    count                                      = watch->learnt < STEPS_KEPT ? watch->learnt : STEPS_KEPT;
    memcpy(sorted, watch->steps, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare_seconds);
    if (watch->setup.seconds <= 0) {
        watch->limit = fmax(LEAST_SECONDS, STEPS_OF_PATIENCE * sorted[count / 2]);
    }
}

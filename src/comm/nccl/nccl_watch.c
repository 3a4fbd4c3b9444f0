// SPDX-License-Identifier: MIT
// A thread that monitors NCCL. Calls block while ranks connect, and later failures show only if polled; neither may
// hang the job. Polling reads host memory only, so it does not disturb stream capture.
#include "nccl_internal.h"

#include <time.h>

#include "gswbench/clock.h"
#include "gswbench/fatal.h"

enum { PERIOD_NS = 100000000, SECOND_NS = 1000000000 };

// Many ranks notice a lost rank at the same time, in unrelated groups. To get one error message, they report one after
// the other, and the first report ends the job. Ranks 0 to 7 report first, then each group's members by index. The
// longer interval for these lets a busy machine end all processes in time.
static bool is_my_turn(double seconds_since, int rank, int index)
{
    static const double turn_seconds = 0.5, group_turn_seconds = 4, last_seconds = 30;
    enum { TURNS = 8 };
    double turn = rank < TURNS ? turn_seconds * rank : TURNS * turn_seconds + group_turn_seconds * index;
    return seconds_since > (turn < last_seconds ? turn : last_seconds);
}

static void check_opening(const struct nccl_state *state)
{
    const struct nccl_watch *watch = &state->watch;
    double                   since = clock_seconds() - watch->opened_seconds - state->setup.connect_seconds;
    if (watch->opening != NULL && is_my_turn(since, state->rank, watch->opening_index)) {
        FATAL(EXIT_LOST,
              "NCCL did not connect %s in %d s: a rank is missing, or the network between them does not work (see "
              "NCCL_DEBUG=INFO and NCCL_SOCKET_IFNAME; run.connect_seconds is the limit)",
              watch->opening, state->setup.connect_seconds);
    }
}

static void check_connections(const struct nccl_state *state)
{
    double                     now  = clock_seconds();
    const struct nccl_library *nccl = &state->library;
    for (struct nccl_connection *one = state->watch.connections; one != NULL; one = one->next) {
        ncclResult_t error;
        NCCL_CHECK(nccl, ncclCommGetAsyncError(one->handle, &error));
        if (error != ncclSuccess && one->lost_seconds == 0) {
            one->lost_seconds = now;
        }
        if (error != ncclSuccess && is_my_turn(now - one->lost_seconds + 1e-9, state->rank, one->index)) {
            FATAL(EXIT_LOST, "NCCL lost %s: %s: %s", one->name, nccl->ncclGetErrorString(error),
                  nccl->ncclGetLastError(one->handle));
        }
    }
}

static void wait_period(struct nccl_watch *watch)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (until.tv_nsec + PERIOD_NS) / SECOND_NS;
    until.tv_nsec = (until.tv_nsec + PERIOD_NS) % SECOND_NS;
    pthread_cond_timedwait(&watch->closes, &watch->mutex, &until);
}

static void *watch_all(void *argument)
{
    struct nccl_state *state = argument;
    struct nccl_watch *watch = &state->watch;
    fatal_set_rank(state->rank);
    pthread_mutex_lock(&watch->mutex);
    while (!watch->is_closing) {
        check_opening(state);
        check_connections(state);
        wait_period(watch);
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

void nccl_watch_open(struct nccl_state *state)
{
    struct nccl_watch *watch = &state->watch;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->closes, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&watch->thread, NULL, watch_all, state) != 0) {
        FATAL(EXIT_LAUNCH, "cannot start the thread that watches NCCL");
    }
}

void nccl_watch_close(struct nccl_state *state)
{
    struct nccl_watch *watch = &state->watch;
    pthread_mutex_lock(&watch->mutex);
    watch->is_closing = true;
    pthread_cond_signal(&watch->closes);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->closes);
    pthread_mutex_destroy(&watch->mutex);
}

void nccl_watch_begin(struct nccl_state *state, const char *opening, int64_t index)
{
    pthread_mutex_lock(&state->watch.mutex);
    state->watch.opening        = opening;
    state->watch.opening_index  = (int)index;
    state->watch.opened_seconds = clock_seconds();
    pthread_mutex_unlock(&state->watch.mutex);
}

void nccl_watch_end(struct nccl_state *state)
{
    nccl_watch_begin(state, NULL, 0);
}

void nccl_watch_add(struct nccl_state *state, struct nccl_connection *connection)
{
    pthread_mutex_lock(&state->watch.mutex);
    connection->next         = state->watch.connections;
    state->watch.connections = connection;
    pthread_mutex_unlock(&state->watch.mutex);
}

void nccl_watch_remove(struct nccl_state *state, const struct nccl_connection *connection)
{
    pthread_mutex_lock(&state->watch.mutex);
    struct nccl_connection **next = &state->watch.connections;
    while (*next != connection) {
        next = &(*next)->next;
    }
    *next = connection->next;
    pthread_mutex_unlock(&state->watch.mutex);
}

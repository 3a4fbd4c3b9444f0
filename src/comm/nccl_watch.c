// SPDX-License-Identifier: MIT
// Watches NCCL from a thread of its own. Calls of NCCL block while ranks connect, and a failure after that shows only
// when it is asked for; neither may leave a job hanging. Asking reads the host's memory alone, so that it cannot
// disturb the capture of a step.
#include "nccl_internal.h"

#include <time.h>

#include "gswbench/clock.h"
#include "gswbench/fatal.h"

enum { PERIOD_NS = 100000000, SECOND_NS = 1000000000 };

static void check_opening(const struct nccl_state *state)
{
    const struct nccl_watch *watch = &state->watch;
    if (watch->opening != NULL && clock_seconds() - watch->opened_seconds > state->setup.connect_seconds) {
        FATAL(EXIT_LOST,
              "NCCL did not connect %s in %d s: a rank has not come, or the network between them does not carry "
              "(NCCL_DEBUG=INFO, NCCL_SOCKET_IFNAME; run.connect_seconds allows more time)",
              watch->opening, state->setup.connect_seconds);
    }
}

static void check_connections(const struct nccl_state *state)
{
    const struct nccl_library *nccl = &state->library;
    for (const struct nccl_connection *one = state->watch.connections; one != NULL; one = one->next) {
        ncclResult_t error;
        NCCL_CHECK(nccl, ncclCommGetAsyncError(one->handle, &error));
        if (error != ncclSuccess) {
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

void nccl_watch_begin(struct nccl_state *state, const char *opening)
{
    pthread_mutex_lock(&state->watch.mutex);
    state->watch.opening        = opening;
    state->watch.opened_seconds = clock_seconds();
    pthread_mutex_unlock(&state->watch.mutex);
}

void nccl_watch_end(struct nccl_state *state)
{
    nccl_watch_begin(state, NULL);
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
    struct nccl_connection **place = &state->watch.connections;
    while (*place != connection) {
        place = &(*place)->next;
    }
    *place = connection->next;
    pthread_mutex_unlock(&state->watch.mutex);
}

// SPDX-License-Identifier: MIT
// Opens NCCL communicators: distributes unique ids over the control plane, and sets the configuration. A monitoring
// thread ends the job if ranks do not connect in time or a communicator fails later. Without it the job would hang:
// calls block while ranks connect, and NCCL reports later failures only if polled. Polling reads only host memory, so
// it does not disturb stream capture.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "nccl_internal.h"

static const double PERIOD_SECONDS = 0.1;

// Returns whether this rank reports a lost connection now. Many ranks notice a lost rank at the same time, in different
// groups. To get one error message, they report at different times, and the first report ends the job. Ranks 0 to 7
// report first, 0.5 s apart. The others follow 4 s apart, in the order of their index in the group; 4 s are enough for
// a busy machine to end all processes. After 30 s any rank reports.
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

static void *watch_all(void *argument)
{
    struct nccl_state *state = argument;
    struct nccl_watch *watch = &state->watch;
    fatal_set_rank(state->rank);
    pthread_mutex_lock(&watch->mutex);
    while (!watch->is_closing) {
        check_opening(state);
        check_connections(state);
        clock_wait(&watch->closes, &watch->mutex, clock_seconds() + PERIOD_SECONDS);
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

void nccl_watch_open(struct nccl_state *state)
{
    struct nccl_watch *watch = &state->watch;
    pthread_mutex_init(&watch->mutex, NULL);
    clock_open_condition(&watch->closes);
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

void nccl_watch_add(struct nccl_state *state, struct nccl_connection *connection)
{
    pthread_mutex_lock(&state->watch.mutex);
    state->watch.opening     = NULL;
    connection->next         = state->watch.connections;
    state->watch.connections = connection;
    pthread_mutex_unlock(&state->watch.mutex);
}

void nccl_exchange(const struct comm_group *group, enum op_kind kind, int64_t words, const void *in, void *out)
{
    struct comm       *control    = group->state->control;
    struct comm_group *rendezvous = control->ops->group_open(control, group->members, group->size, STREAM_COMPUTE, 0);
    struct op          op         = {.kind = (uint8_t)kind, .shape.communication.elements = words};
    control->ops->run(rendezvous, &op, in, out, FORMAT_I32);
    control->ops->group_close(rendezvous);
}

ncclUniqueId nccl_create_id(const struct nccl_state *state)
{
    ncclUniqueId id;
    NCCL_CHECK(&state->library, ncclGetUniqueId(&id));
    return id;
}

// Value of ncclConfig_t.CTAPolicy. Headers before 2.28 have the field, but not this value.
enum { CTA_POLICY_ZERO = 2 };

static ncclConfig_t configure(const struct nccl_state *state, struct nccl_connection *connection)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int          plan = connection->processors, user = state->comm->processors;
    config.commName = connection->name;
    if (plan > 0 || user > 0) {    // the smaller of the two limits
        config.maxCTAs = user > 0 && (plan == 0 || user < plan) ? user : plan;
    }
    connection->is_copying = state->setup.copies && connection->is_near;
    if (connection->is_copying) {
        config.CTAPolicy = CTA_POLICY_ZERO;
    }
    return config;
}

void nccl_join_id(struct nccl_state *state, struct nccl_connection *connection, int64_t size, ncclUniqueId id)
{
    ncclConfig_t config = configure(state, connection);
    NCCL_CHECK(&state->library, ncclCommInitRankConfig(&connection->handle, (int)size, id, connection->index, &config));
}

// Connects a large group with several unique ids. Every rank connects to the member that created its id, so several
// members share the work of accepting ranks.
static void join_by_many(const struct comm_group *group, struct nccl_connection *connection, int count)
{
    struct nccl_state *state  = group->state;
    ncclConfig_t       config = configure(state, connection);
    ncclUniqueId      *all    = memory_allocate((size_t)group->size * sizeof(*all)), own;
    memset(&own, 0, sizeof(own));
    for (int id = 0; id < count; id++) {
        own = nccl_id_owner(group->size, count, id) == group->index ? nccl_create_id(state) : own;
    }
    nccl_exchange(group, OP_ALL_GATHER, group->size * (int64_t)sizeof(*all) / 4, &own, all);
    for (int id = 0; id < count; id++) {
        all[id] = all[nccl_id_owner(group->size, count, id)];
    }
    NCCL_CHECK(&state->library,
               ncclCommInitRankScalable(&connection->handle, (int)group->size, connection->index, count, all, &config));
    connection->is_scalable = true;
    free(all);
}

void nccl_join(const struct comm_group *group, struct nccl_connection *connection)
{
    struct nccl_state *state = group->state;
    int                count = nccl_ids(group->size, state->setup.ranks_per_id);
    ncclUniqueId       id;
    if (count > 1 && state->library.ncclCommInitRankScalable != NULL) {
        join_by_many(group, connection, count);
        return;
    }
    if (group->index == 0) {
        id = nccl_create_id(state);
    }
    nccl_exchange(group, OP_BROADCAST, (int64_t)sizeof(id) / 4, NULL, &id);
    nccl_join_id(state, connection, group->size, id);
}

void nccl_disconnect(struct nccl_state *state, struct nccl_connection *connection)
{
    pthread_mutex_lock(&state->watch.mutex);
    struct nccl_connection **next = &state->watch.connections;
    while (*next != connection) {
        next = &(*next)->next;
    }
    *next = connection->next;
    pthread_mutex_unlock(&state->watch.mutex);
    nccl_memory_forget(state, connection);
    NCCL_CHECK(&state->library, ncclCommDestroy(connection->handle));
    free(connection);
}

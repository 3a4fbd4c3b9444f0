// SPDX-License-Identifier: MIT
// Handles a hang. On each host, the first rank that notices acts as leader. It asks all hosts for the state of their
// ranks, names the rank that blocks the others, and tells all hosts to exit. Nothing here may wait for a library: the
// job ends because its processes exit.
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "gswbench/arena.h"
#include "gswbench/clock.h"

static const double ANSWER_SECONDS  = 1;      // timeout for the answers of the hosts
static const double FEW_SECONDS     = 0.3;    // timeout before asking more than FEW ranks per host
static const double VERDICT_SECONDS = 2;      // per preceding host: time to wait for its report
static const double LEADER_SECONDS  = 12;     // timeout for the leader of this host
enum { FEW = 2, LOOK_NS = 10000000, GRACE_NS = 500000000 };

// The roll call of a leader: states of the ranks that answered.
struct roll {
    struct slot *slots;    // [count]
    int64_t      count;
    bool        *has_come;    // [ranks]
};

static void pause_for(long nanoseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

static void read_host(const struct watch *watch, struct datagram *datagram)
{
    const struct comm_topology *topology = &watch->setup.comm->topology;
    datagram->kind                       = DATAGRAM_ANSWER;
    datagram->count = topology->local_ranks < DATAGRAM_SLOTS ? topology->local_ranks : (int32_t)DATAGRAM_SLOTS;
    for (int32_t i = 0; i < datagram->count; i++) {
        slot_read(&datagram->slots[i], &watch->segment->ranks[i], topology->host);
    }
}

static void enter(struct roll *roll, const struct datagram *datagram, int ranks)
{
    for (int32_t i = 0; i < datagram->count; i++) {
        const struct slot *slot = &datagram->slots[i];
        if (slot->rank >= 0 && slot->rank < ranks && !roll->has_come[slot->rank]) {
            roll->has_come[slot->rank] = true;
            roll->slots[roll->count++] = *slot;
        }
    }
}

void alarm_answer(struct watch *watch, struct roll *roll)
{
    if (watch->channel == NULL) {
        return;
    }
    struct datagram *datagram = memory_allocate(sizeof(*datagram));
    while (channel_receive(watch->channel, datagram)) {
        int from = datagram->from;
        switch ((enum datagram_kind)datagram->kind) {
        case DATAGRAM_ASK:
            read_host(watch, datagram);
            channel_send(watch->channel, from, datagram);
            break;
        case DATAGRAM_ANSWER:
            if (roll != NULL) {
                enter(roll, datagram, watch->setup.comm->topology.ranks);
            }
            break;
        case DATAGRAM_HANG:
            watch->segment->called = 1;
            break;
        case DATAGRAM_VERDICT:
            watch->segment->verdict = 1;
            break;
        case DATAGRAM_DAMAGE:
            if (datagram->count == 1) {
                damage_note(watch->segment, datagram->slots[0].rank, datagram->slots[0].step, datagram->slots[0].where);
            }
            break;
        }
    }
    free(datagram);
}

// Sends to the first few ranks of every other host, except those in the roll.
static void send_to_others(const struct watch *watch, enum datagram_kind kind, const struct roll *roll, int few)
{
    const struct comm_topology *topology = &watch->setup.comm->topology;
    struct datagram            *datagram = memory_allocate(sizeof(*datagram));
    datagram->kind                       = (int32_t)kind;
    for (int rank = 0; rank < topology->ranks; rank++) {
        bool is_meant =
            channel_node(watch->channel, rank) != topology->node && channel_local_rank(watch->channel, rank) < few;
        if (is_meant && (roll == NULL || !roll->has_come[rank])) {
            channel_send(watch->channel, rank, datagram);
        }
    }
    free(datagram);
}

static void call_roll(struct watch *watch, struct roll *roll)
{
    int              ranks = watch->setup.comm->topology.ranks;
    struct datagram *own   = memory_allocate(sizeof(*own));
    double           begin = clock_seconds();
    bool             all   = false;
    *roll                  = (struct roll){.slots    = memory_allocate((size_t)ranks * sizeof(*roll->slots)),
                                           .has_come = memory_allocate((size_t)ranks * sizeof(*roll->has_come))};
    read_host(watch, own);
    enter(roll, own, ranks);
    free(own);
    if (watch->channel == NULL) {
        return;
    }
    send_to_others(watch, DATAGRAM_ASK, roll, FEW);
    while (roll->count < ranks && clock_seconds() - begin < ANSWER_SECONDS) {
        if (!all && clock_seconds() - begin > FEW_SECONDS) {
            all = true;
            send_to_others(watch, DATAGRAM_ASK, roll, ranks);
        }
        pause_for(LOOK_NS);
        alarm_answer(watch, roll);
    }
}

// Finds the rank to blame for the hang. If another host answered, a rank without an answer is to blame. If no other
// host did, the network may not connect the hosts, so silence proves nothing.
static enum blame find_blame(const struct watch *watch, const struct roll *roll, struct slot *blamed, int64_t *waiting)
{
    int        ranks = watch->setup.comm->topology.ranks;
    int64_t    index;
    enum blame blame     = blame_find(roll->slots, roll->count, &watch->setup.plan->mesh, &index, waiting);
    bool       has_heard = roll->count > watch->setup.comm->topology.local_ranks;
    *blamed              = roll->slots[index];
    for (int rank = 0; rank < ranks && has_heard && blame > BLAME_SILENT; rank++) {
        if (!roll->has_come[rank]) {
            *blamed  = (struct slot){.rank = rank, .pid = -1, .state = '?', .host = "its host", .where = "not known"};
            *waiting = roll->count;
            return BLAME_SILENT;
        }
    }
    return blame;
}

// Prints the hang: the rank to blame, why, and the op in which it is.
static void speak(const struct watch *watch, const struct roll *roll)
{
    static const char *const why[] = {[BLAME_GONE]    = "its process is gone",
                                      [BLAME_STOPPED] = "its process is stopped",
                                      [BLAME_DEAF]    = "its process does not get to run",
                                      [BLAME_SILENT]  = "no rank of its host answers",
                                      [BLAME_AWAITED] = "the others wait for it"};
    struct slot              slot;
    int64_t                  waiting;
    double                   still = 0;
    char                     where[300];
    enum blame               blame = find_blame(watch, roll, &slot, &waiting);
    for (int64_t i = 0; i < roll->count; i++) {
        still = fmax(still, roll->slots[i].still);
    }
    slot_name_place(&slot, watch_named_plan(watch), where, sizeof(where));
    fflush(stdout);
    if (blame == BLAME_NOBODY) {
        fprintf(stderr, "gswbench: hang: no progress for %.1f s, and all ranks wait for each other; rank %d: %s\n",
                still, slot.rank, where);
    } else {
        fprintf(stderr,
                "gswbench: hang: rank %d (%s, pid %d, state %c): %s; no progress for %.1f s; last: %s; %" PRId64
                " other%s\n",
                slot.rank, slot.host, slot.pid, slot.state, why[blame], still, where, waiting,
                waiting == 1 ? " waits" : "s wait");
    }
}

// Waits for a verdict or a new excuse. Returns false after a timeout.
static bool await_verdict(struct watch *watch, unsigned excuses, double seconds)
{
    double begin = clock_seconds();
    while (watch->segment->verdict == 0 && watch->segment->excuses == excuses && clock_seconds() - begin < seconds) {
        pause_for(LOOK_NS);
        alarm_answer(watch, NULL);
    }
    return watch->segment->verdict != 0 || watch->segment->excuses != excuses;
}

// Kills this host's stopped processes (SIGSTOP, debugger), which act on no signal but SIGKILL. Waits first, so that the
// launcher sees the exit code of the other processes, and not the kill.
static void kill_stopped(const struct watch *watch)
{
    struct datagram *own        = memory_allocate(sizeof(*own));
    bool             has_waited = false;
    read_host(watch, own);
    for (int32_t i = 0; i < own->count; i++) {
        if (own->slots[i].state == 'T' || own->slots[i].state == 't') {
            if (!has_waited) {
                pause_for(GRACE_NS);
            }
            has_waited = true;
            kill(own->slots[i].pid, SIGKILL);
        }
    }
    free(own);
}

static void free_roll(struct roll *roll)
{
    free(roll->slots);
    free(roll->has_come);
}

// Ranks that wait for checkpoint files of other ranks do not hang while one of these files grows. If one grew within
// its time limit, extends the deadlines of this host's ranks until that limit has passed without progress.
static bool find_excuse(struct watch *watch, const struct roll *roll)
{
    double still = INFINITY, limit = watch_limit(watch, WATCH_FILE);
    for (int64_t i = 0; i < roll->count; i++) {
        if (roll->slots[i].phase == WATCH_FILE && strchr("-ZXTt", roll->slots[i].state) == NULL) {    // alive
            still = fmin(still, roll->slots[i].still);
        }
    }
    if (still >= limit) {
        return false;
    }
    for (int i = 0; i < watch->setup.comm->topology.local_ranks; i++) {
        struct shown *shown = &watch->segment->ranks[i];
        shown->excused      = clock_seconds() - still + limit - watch_limit(watch, shown->phase);
    }
    watch->segment->called = 0;
    watch->segment->leader = 0;    // before the counter that releases waiting ranks
    watch->segment->excuses++;
    return true;
}

// Waits until a preceding host reports, at most VERDICT_SECONDS per host. If none does, this host's leader reports.
static bool is_told_elsewhere(struct watch *watch)
{
    int node = watch->setup.comm->topology.node;
    if (watch->channel == NULL || node == 0) {
        return false;
    }
    send_to_others(watch, DATAGRAM_HANG, NULL, INT32_MAX);
    await_verdict(watch, watch->segment->excuses, VERDICT_SECONDS * node);
    return watch->segment->verdict != 0;
}

// Counts excuses, because the leader's slot is ambiguous: another rank may already lead again.
void alarm_end_job(struct watch *watch)
{
    unsigned excuses = watch->segment->excuses;
    int      nobody  = 0;
    if (!atomic_compare_exchange_strong(&watch->segment->leader, &nobody, watch->setup.comm->topology.local_rank + 1)) {
        if (await_verdict(watch, excuses, LEADER_SECONDS) && watch->segment->verdict == 0) {
            return;
        }
        _exit(EXIT_HANG);
    }
    struct roll roll;
    call_roll(watch, &roll);
    if (watch->segment->verdict == 0 && find_excuse(watch, &roll)) {
        free_roll(&roll);
        return;
    }
    if (watch->segment->verdict == 0 && !is_told_elsewhere(watch)) {
        speak(watch, &roll);
        if (watch->channel != NULL) {
            send_to_others(watch, DATAGRAM_VERDICT, NULL, INT32_MAX);
        }
    }
    watch->segment->verdict = 1;
    kill_stopped(watch);
    _exit(EXIT_HANG);
}

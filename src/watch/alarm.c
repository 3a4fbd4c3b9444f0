// SPDX-License-Identifier: MIT
// Handles a suspected hang. On each host, the first rank that notices it acts as leader. The leader asks all hosts for
// the states of their ranks, names the rank that blocks the others, and tells all hosts to exit. No code here may wait
// for a library, because libraries may hang. The job ends because its processes exit.
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
#include "gswbench/output.h"
#include "gswbench/text.h"

static const double ANSWER_SECONDS  = 1;      // timeout for all answers
static const double FEW_SECONDS     = 0.3;    // time after which all ranks of a silent host are asked, not only FEW
static const double VERDICT_SECONDS = 2;      // time to wait for the report of each host with a lower number
static const double LEADER_SECONDS  = 12;     // time that the other ranks of a host wait for its leader
enum { FEW = 2, LOOK_NS = 10000000, GRACE_NS = 500000000 };    // FEW: ranks per host that are asked first

// The ranks that answered a leader, and their states.
struct responses {
    struct slot *slots;    // [count]: states of the ranks that answered
    int64_t      count;
    bool        *has_answered;    // [ranks of the job]
};

static void pause_for(long nanoseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

// Waits a short time, and answers other hosts. Counts as a poll, so that a watchdog that handles an alarm is not
// reported as BLAME_DEAF.
static void attend(struct watch *watch, struct responses *responses)
{
    pause_for(LOOK_NS);
    alarm_answer(watch, responses);
    watch->shown->looked = clock_seconds();
}

// Sends the states of this host's ranks. A host with many ranks needs several messages.
static void send_states(const struct watch *watch, int to, struct datagram *datagram)
{
    const struct comm_topology *topology = &watch->setup.comm->topology;
    datagram->kind                       = DATAGRAM_ANSWER;
    for (int32_t first = 0; first < topology->local_ranks; first += datagram->count) {
        int32_t left    = topology->local_ranks - first;
        datagram->count = left < (int32_t)DATAGRAM_SLOTS ? left : (int32_t)DATAGRAM_SLOTS;
        for (int32_t i = 0; i < datagram->count; i++) {
            slot_read(&datagram->slots[i], &watch->segment->ranks[first + i], topology->host);
        }
        channel_send(watch->channel, to, datagram);
    }
}

static void add_answer(struct responses *responses, const struct slot *slot, int ranks)
{
    if (slot->rank >= 0 && slot->rank < ranks && !responses->has_answered[slot->rank]) {
        responses->has_answered[slot->rank]  = true;
        responses->slots[responses->count++] = *slot;
    }
}

void alarm_answer(struct watch *watch, struct responses *responses)
{
    if (watch->channel == NULL) {
        return;
    }
    struct datagram *datagram = memory_allocate(sizeof(*datagram));
    while (channel_receive(watch->channel, datagram)) {
        int from = datagram->from;
        switch ((enum datagram_kind)datagram->kind) {
        case DATAGRAM_ASK:
            send_states(watch, from, datagram);
            break;
        case DATAGRAM_ANSWER:
            for (int32_t i = 0; i < datagram->count && responses != NULL; i++) {
                add_answer(responses, &datagram->slots[i], watch->setup.comm->topology.ranks);
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

// Sends a message to the first `few` ranks of every other host, except ranks that have answered already.
static void send_to_others(const struct watch *watch, enum datagram_kind kind, const struct responses *responses,
                           int few)
{
    const struct comm_topology *topology = &watch->setup.comm->topology;
    struct datagram            *datagram = memory_allocate(sizeof(*datagram));
    datagram->kind                       = (int32_t)kind;
    for (int rank = 0; rank < topology->ranks; rank++) {
        bool is_meant =
            channel_node(watch->channel, rank) != topology->node && channel_local_rank(watch->channel, rank) < few;
        if (is_meant && (responses == NULL || !responses->has_answered[rank])) {
            channel_send(watch->channel, rank, datagram);
        }
    }
    free(datagram);
}

static void collect_states(struct watch *watch, struct responses *responses)
{
    const struct comm_topology *topology = &watch->setup.comm->topology;
    int                         ranks    = topology->ranks;
    double                      begin    = clock_seconds();
    bool                        asks_all = false;
    responses->slots                     = memory_allocate((size_t)ranks * sizeof(*responses->slots));
    responses->count                     = 0;
    responses->has_answered              = memory_allocate((size_t)ranks * sizeof(*responses->has_answered));
    for (int i = 0; i < topology->local_ranks; i++) {
        struct slot slot;
        slot_read(&slot, &watch->segment->ranks[i], topology->host);
        add_answer(responses, &slot, ranks);
    }
    if (watch->channel == NULL) {
        return;
    }
    send_to_others(watch, DATAGRAM_ASK, responses, FEW);
    while (responses->count < ranks && clock_seconds() - begin < ANSWER_SECONDS) {
        if (!asks_all && clock_seconds() - begin > FEW_SECONDS) {
            asks_all = true;
            send_to_others(watch, DATAGRAM_ASK, responses, ranks);
        }
        attend(watch, responses);
    }
}

// Returns the first rank that has not answered, or the number of ranks.
static int find_silent(const struct responses *responses, int ranks)
{
    int rank = 0;
    while (rank < ranks && responses->has_answered[rank]) {
        rank++;
    }
    return rank;
}

// Finds the rank to blame for the hang. If no process is gone, stopped or without CPU time, a rank that did not answer
// is to blame, but only if some other host answered. Otherwise the network may not connect the hosts at all.
static enum blame find_blame(const struct watch *watch, const struct responses *responses, struct slot *blamed,
                             int64_t *waiting)
{
    int        ranks = watch->setup.comm->topology.ranks;
    int64_t    index;
    enum blame blame     = blame_find(responses->slots, responses->count, &watch->setup.plan->mesh, &index, waiting);
    bool       has_heard = responses->count > watch->setup.comm->topology.local_ranks;
    *blamed              = responses->slots[index];
    if (responses->count < ranks && has_heard && blame > BLAME_SILENT) {
        int rank = find_silent(responses, ranks);
        *blamed  = (struct slot){.rank = rank, .pid = -1, .where = "not known"};
        *waiting = responses->count;
        for (int stream = 0; stream < STREAM_COUNT; stream++) {
            blamed->streams[stream].op = -1;
        }
        text_copy(blamed->host, sizeof(blamed->host), channel_host(watch->channel, rank));
        return BLAME_SILENT;
    }
    return blame;
}

// Describes why no rank is to blame.
static void explain_nobody(const struct watch *watch, const struct responses *responses, char *text, size_t bytes)
{
    int     ranks = watch->setup.comm->topology.ranks, first = find_silent(responses, ranks);
    int64_t silent = ranks - responses->count;
    if (silent == 0) {
        text_copy(text, bytes, "no rank waits");
        return;
    }
    int used = snprintf(text, bytes, "%" PRId64 " of %d ranks did not answer", silent, ranks);
    if (watch->channel != NULL) {
        snprintf(text + used, bytes - (size_t)used, ", such as rank %d on %s", first,
                 channel_host(watch->channel, first));
    }
}

// Prints the rank to blame for the hang, the reason, and the op in which the rank is.
static void report_hang(const struct watch *watch, const struct responses *responses)
{
    static const char *const why[] = {[BLAME_GONE]    = "its process is gone",
                                      [BLAME_STOPPED] = "its process is stopped",
                                      [BLAME_DEAF]    = "its process does not get to run",
                                      [BLAME_SILENT]  = "no rank of its host answers",
                                      [BLAME_AWAITED] = "the others wait for it"};
    struct slot              slot;
    int64_t                  waiting;
    double                   still = 0;
    char                     where[300], process[160] = "";
    enum blame               blame = find_blame(watch, responses, &slot, &waiting);
    for (int64_t i = 0; i < responses->count; i++) {
        still = fmax(still, responses->slots[i].still);
    }
    slot_name_place(&slot, watch_named_plan(watch), where, sizeof(where));
    if (!output_is_blocked()) {
        fflush(stdout);
    }
    if (blame == BLAME_NOBODY) {
        explain_nobody(watch, responses, process, sizeof(process));
        fprintf(stderr, "gswbench: hang: no progress for %.1f s, and %s; rank %d: %s\n", still, process, slot.rank,
                where);
    } else {
        if (slot.pid >= 0) {
            snprintf(process, sizeof(process), ", pid %d, state %c", slot.pid, slot.state);
        }
        fprintf(stderr, "gswbench: hang: rank %d (%s%s): %s; no progress for %.1f s; last: %s; %" PRId64 " other%s\n",
                slot.rank, slot.host, process, why[blame], still, where, waiting, waiting == 1 ? " waits" : "s wait");
    }
}

// Waits until the hang is reported, or until the deadlines are extended because nothing hangs. Returns false after a
// timeout.
static bool await_verdict(struct watch *watch, unsigned extensions, double seconds)
{
    double begin = clock_seconds();
    while (watch->segment->verdict == 0 && watch->segment->extensions == extensions &&
           clock_seconds() - begin < seconds) {
        attend(watch, NULL);
    }
    return watch->segment->verdict != 0 || watch->segment->extensions != extensions;
}

// Kills the stopped processes of this host (SIGSTOP, debugger), because they act on no other signal. The other
// processes exit first, so that the launcher sees their exit code and not the kill.
static void kill_stopped(const struct watch *watch)
{
    const struct comm_topology *topology   = &watch->setup.comm->topology;
    bool                        has_waited = false;
    for (int i = 0; i < topology->local_ranks; i++) {
        struct slot slot;
        slot_read(&slot, &watch->segment->ranks[i], topology->host);
        if (slot.state == 'T' || slot.state == 't') {
            if (!has_waited) {
                pause_for(GRACE_NS);
            }
            has_waited = true;
            kill(slot.pid, SIGKILL);
        }
    }
}

// Ranks that wait for another rank's file do not hang while the file grows, unless a process of the job has ended.
// Returns whether no process has ended and a file has grown within its time limit. If so, extends the deadlines of this
// host's ranks to the end of that time limit.
static bool extend_deadlines(struct watch *watch, const struct responses *responses)
{
    double still = INFINITY, limit = watch_limit(watch, WATCH_FILE);
    bool   is_alive = true;    // no process of the job has ended
    for (int64_t i = 0; i < responses->count; i++) {
        is_alive &= strchr("-ZX", responses->slots[i].state) == NULL;
        // A stopped process (SIGSTOP) does not write its file, so nobody should wait longer for this file.
        if (responses->slots[i].phase == WATCH_FILE && strchr("Tt", responses->slots[i].state) == NULL) {
            still = fmin(still, responses->slots[i].still);
        }
    }
    if (still >= limit || !is_alive) {
        return false;
    }
    for (int i = 0; i < watch->setup.comm->topology.local_ranks; i++) {
        struct shown *shown = &watch->segment->ranks[i];
        shown->extended     = clock_seconds() - still + limit - watch_limit(watch, shown->phase);
    }
    watch->segment->called = 0;
    watch->segment->leader = 0;    // cleared first, because extensions++ releases the waiting ranks
    watch->segment->extensions++;
    return true;
}

// Tells all other hosts that the job hangs. Then waits until a host with a lower number reports it, for VERDICT_SECONDS
// per host. Returns false if none does, so that this host reports it.
static bool is_reported_elsewhere(struct watch *watch)
{
    int node = watch->setup.comm->topology.node;
    if (watch->channel == NULL || node == 0) {
        return false;
    }
    send_to_others(watch, DATAGRAM_HANG, NULL, INT32_MAX);
    await_verdict(watch, watch->segment->extensions, VERDICT_SECONDS * node);
    return watch->segment->verdict != 0;
}

// A rank that is not the leader waits until the leader reports the hang or extends the deadlines. It detects the latter
// by the counter `extensions` and not by the field `leader`, because another rank may be leader by then.
void alarm_end_job(struct watch *watch)
{
    unsigned extensions = watch->segment->extensions;
    int      nobody     = 0;
    if (!atomic_compare_exchange_strong(&watch->segment->leader, &nobody, watch->setup.comm->topology.local_rank + 1)) {
        if (await_verdict(watch, extensions, LEADER_SECONDS) && watch->segment->verdict == 0) {
            return;
        }
        _exit(EXIT_HANG);
    }
    struct responses responses;
    collect_states(watch, &responses);
    if (watch->segment->verdict == 0 && extend_deadlines(watch, &responses)) {
        free(responses.slots);
        free(responses.has_answered);
        return;
    }
    if (watch->segment->verdict == 0 && !is_reported_elsewhere(watch)) {
        report_hang(watch, &responses);
        if (watch->channel != NULL) {
            send_to_others(watch, DATAGRAM_VERDICT, NULL, INT32_MAX);
        }
    }
    watch->segment->verdict = 1;
    kill_stopped(watch);
    _exit(EXIT_HANG);
}

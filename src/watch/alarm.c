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
#include "gswbench/fatal.h"

static const double ANSWER_SECONDS  = 1;      // timeout for the answers of the hosts
static const double FEW_SECONDS     = 0.3;    // timeout before asking more than FEW ranks per host
static const double VERDICT_SECONDS = 2;      // per preceding host: time to wait for its report
static const double SPEAKER_SECONDS = 12;     // timeout for the leader of this host
enum { FEW = 2, LOOK_NS = 10000000, GRACE_NS = 500000000 };

// States of the ranks that answered.
struct roll {
    struct post *posts;    // [count]
    int64_t      count;
    bool        *has_come;    // [ranks]
};

static void pause_for(long nanoseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

static void read_host(const struct watch *watch, struct letter *letter)
{
    const struct comm_topology *topology = &watch->setup.comm->topology;
    letter->kind                         = LETTER_ANSWER;
    letter->count = topology->local_ranks < LETTER_POSTS ? topology->local_ranks : (int32_t)LETTER_POSTS;
    for (int32_t i = 0; i < letter->count; i++) {
        post_read(&letter->posts[i], &watch->board->ranks[i], topology->host);
    }
}

static void enter(struct roll *roll, const struct letter *letter, int ranks)
{
    for (int32_t i = 0; i < letter->count; i++) {
        const struct post *post = &letter->posts[i];
        if (post->rank >= 0 && post->rank < ranks && !roll->has_come[post->rank]) {
            roll->has_come[post->rank] = true;
            roll->posts[roll->count++] = *post;
        }
    }
}

// roll: collects the answers; NULL: this rank has not asked.
static void read_letters(struct watch *watch, struct roll *roll)
{
    struct letter *letter = memory_allocate(sizeof(*letter));
    while (watch->channel != NULL && channel_receive(watch->channel, letter)) {
        int from = letter->from;
        switch ((enum letter_kind)letter->kind) {
        case LETTER_ASK:
            read_host(watch, letter);
            channel_send(watch->channel, from, letter);
            break;
        case LETTER_ANSWER:
            if (roll != NULL) {
                enter(roll, letter, watch->setup.comm->topology.ranks);
            }
            break;
        case LETTER_HANG:
            watch->board->called = 1;
            break;
        case LETTER_VERDICT:
            watch->board->verdict = 1;
            break;
        case LETTER_DAMAGE:
            if (letter->count == 1) {
                damage_note(watch->board, letter->posts[0].rank, letter->posts[0].step, letter->posts[0].where);
            }
            break;
        }
    }
    free(letter);
}

void alarm_answer(struct watch *watch)
{
    if (watch->channel != NULL) {
        read_letters(watch, NULL);
    }
}

// Sends to the first few ranks of every other host, except those in the roll.
static void send_to_others(const struct watch *watch, enum letter_kind kind, const struct roll *roll, int few)
{
    const struct comm_topology *topology = &watch->setup.comm->topology;
    struct letter              *letter   = memory_allocate(sizeof(*letter));
    letter->kind                         = (int32_t)kind;
    for (int rank = 0; rank < topology->ranks; rank++) {
        bool is_meant =
            channel_node(watch->channel, rank) != topology->node && channel_local_rank(watch->channel, rank) < few;
        if (is_meant && (roll == NULL || !roll->has_come[rank])) {
            channel_send(watch->channel, rank, letter);
        }
    }
    free(letter);
}

static void call_roll(struct watch *watch, struct roll *roll)
{
    int            ranks = watch->setup.comm->topology.ranks;
    struct letter *own   = memory_allocate(sizeof(*own));
    double         begin = clock_seconds();
    bool           all   = false;
    *roll                = (struct roll){.posts    = memory_allocate((size_t)ranks * sizeof(*roll->posts)),
                                         .has_come = memory_allocate((size_t)ranks * sizeof(*roll->has_come))};
    read_host(watch, own);
    enter(roll, own, ranks);
    free(own);
    if (watch->channel == NULL) {
        return;
    }
    send_to_others(watch, LETTER_ASK, roll, FEW);
    while (roll->count < ranks && clock_seconds() - begin < ANSWER_SECONDS) {
        if (!all && clock_seconds() - begin > FEW_SECONDS) {
            all = true;
            send_to_others(watch, LETTER_ASK, roll, ranks);
        }
        pause_for(LOOK_NS);
        read_letters(watch, roll);
    }
}

// Finds the rank to blame. If some other host answered, a rank that did not is blamed. If none did, the network may not
// connect the hosts, so silence proves nothing.
static enum blame find_blame(const struct watch *watch, const struct roll *roll, struct post *blamed, int64_t *waiting)
{
    int        ranks = watch->setup.comm->topology.ranks;
    int64_t    index;
    enum blame blame     = blame_find(roll->posts, roll->count, &watch->setup.plan->mesh, &index, waiting);
    bool       has_heard = roll->count > watch->setup.comm->topology.local_ranks;
    *blamed              = roll->posts[index];
    for (int rank = 0; rank < ranks && has_heard && blame > BLAME_SILENT; rank++) {
        if (!roll->has_come[rank]) {
            *blamed  = (struct post){.rank = rank, .pid = -1, .state = '?', .host = "its host", .where = "not known"};
            *waiting = roll->count;
            return BLAME_SILENT;
        }
    }
    return blame;
}

static void speak(const struct watch *watch, const struct roll *roll)
{
    static const char *const why[] = {[BLAME_GONE]    = "its process is gone",
                                      [BLAME_STOPPED] = "its process is stopped",
                                      [BLAME_DEAF]    = "its process does not get to run",
                                      [BLAME_SILENT]  = "no rank of its host answers",
                                      [BLAME_AWAITED] = "the others wait for it"};
    struct post              post;
    int64_t                  waiting;
    double                   still = 0;
    char                     where[300];
    enum blame               blame = find_blame(watch, roll, &post, &waiting);
    for (int64_t i = 0; i < roll->count; i++) {
        still = fmax(still, roll->posts[i].still);
    }
    post_name_place(&post, watch_named_plan(watch), where, sizeof(where));
    fflush(stdout);
    if (blame == BLAME_NOBODY) {
        fprintf(stderr, "gswbench: hang: no progress for %.1f s, and all ranks wait for each other; rank %d: %s\n",
                still, post.rank, where);
    } else {
        fprintf(stderr,
                "gswbench: hang: rank %d (%s, pid %d, state %c): %s; no progress for %.1f s; last: %s; %" PRId64
                " other%s wait\n",
                post.rank, post.host, post.pid, post.state, why[blame], still, where, waiting, waiting == 1 ? "" : "s");
    }
}

// Waits for a verdict or a new excuse. Returns false after a timeout.
static bool await_verdict(struct watch *watch, unsigned excuses, double seconds)
{
    double begin = clock_seconds();
    while (watch->board->verdict == 0 && watch->board->excuses == excuses && clock_seconds() - begin < seconds) {
        pause_for(LOOK_NS);
        read_letters(watch, NULL);
    }
    return watch->board->verdict != 0 || watch->board->excuses != excuses;
}

// Kills stopped processes, which take no other signal. Waits first, so that the launcher sees the exit code of the
// others.
static void kill_stopped(const struct watch *watch)
{
    struct letter *own        = memory_allocate(sizeof(*own));
    bool           has_waited = false;
    read_host(watch, own);
    for (int32_t i = 0; i < own->count; i++) {
        if (own->posts[i].state == 'T' || own->posts[i].state == 't') {
            if (!has_waited) {
                pause_for(GRACE_NS);
            }
            has_waited = true;
            kill(own->posts[i].pid, SIGKILL);
        }
    }
    free(own);
}

static void free_roll(struct roll *roll)
{
    free(roll->posts);
    free(roll->has_come);
}

// A rank that waits for other ranks' checkpoint files is not hung while these make progress. Extends the deadline of
// this host's ranks until no file has moved for its limit.
static bool find_excuse(struct watch *watch, const struct roll *roll)
{
    double still = INFINITY, limit = watch_limit(watch, WATCH_FILE);
    for (int64_t i = 0; i < roll->count; i++) {
        if (roll->posts[i].phase == WATCH_FILE && strchr("-ZXTt", roll->posts[i].state) == NULL) {    // alive
            still = fmin(still, roll->posts[i].still);
        }
    }
    if (still >= limit) {
        return false;
    }
    for (int i = 0; i < watch->setup.comm->topology.local_ranks; i++) {
        struct shown *shown = &watch->board->ranks[i];
        shown->excused      = clock_seconds() - still + limit - watch_limit(watch, shown->phase);
    }
    watch->board->called  = 0;
    watch->board->speaker = 0;    // before the counter that releases waiting ranks
    watch->board->excuses++;
    return true;
}

// Leaders report in order of their hosts, so that a later one takes over if the first is faulty.
static bool is_told_elsewhere(struct watch *watch)
{
    int node = watch->setup.comm->topology.node;
    if (watch->channel == NULL || node == 0) {
        return false;
    }
    send_to_others(watch, LETTER_HANG, NULL, INT32_MAX);
    await_verdict(watch, watch->board->excuses, VERDICT_SECONDS * node);
    return watch->board->verdict != 0;
}

// Counts excuses, because the leader's slot is ambiguous: another rank may already lead again.
void alarm_end_job(struct watch *watch)
{
    unsigned excuses = watch->board->excuses;
    int      nobody  = 0;
    if (!atomic_compare_exchange_strong(&watch->board->speaker, &nobody, watch->setup.comm->topology.local_rank + 1)) {
        if (await_verdict(watch, excuses, SPEAKER_SECONDS) && watch->board->verdict == 0) {
            return;
        }
        _exit(EXIT_HANG);
    }
    struct roll roll;
    call_roll(watch, &roll);
    if (watch->board->verdict == 0 && find_excuse(watch, &roll)) {
        free_roll(&roll);
        return;
    }
    if (watch->board->verdict == 0 && !is_told_elsewhere(watch)) {
        speak(watch, &roll);
        if (watch->channel != NULL) {
            send_to_others(watch, LETTER_VERDICT, NULL, INT32_MAX);
        }
    }
    watch->board->verdict = 1;
    kill_stopped(watch);
    _exit(EXIT_HANG);
}

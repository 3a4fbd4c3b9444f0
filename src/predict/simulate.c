// SPDX-License-Identifier: MIT
// Event simulation of the streams of every actor. A running task has a rate, which changes only when another task
// starts or ends, so the simulation advances from one end to the next.
#include "gswbench/simulate.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"

enum { NONE = -1, LANE_ENDED = INT32_MAX };

// Head of a lane of an actor. Index: actor * LANE_COUNT + lane.
struct front {
    int32_t task;        // LANE_ENDED: the lane is done
    int32_t party;       // next participant of the same transfer; NONE: last
    bool    is_taken;    // running, or waiting for other participants or the host
    bool    is_launching;
    // Of the first participant, while it runs:
    double begin, since, end;      // since: start of the current rate
    double seconds, left, rate;    // duration alone; its remainder at since; progress per second
};

struct gathering {
    int32_t first, arrived;    // front; participants
    double  seconds;
};

// State of the simulation.
struct progress {
    const struct simulation *simulation;
    struct actor_time       *times;
    struct front            *fronts;
    int32_t                **next;                 // [actor][task]: next task of the same lane
    int32_t (*busy)[LINK_BITS];                    // [actor]: transfers on each link
    bool             *is_changed;                  // [actor]: a task started or ended since the last rates
    int32_t          *taken;                       // [actor]: SMs that transfers occupy
    double           *computing, *transferring;    // [node]: ranks that compute, ranks that transfer
    double           *launched;      // [actor]: when its host has launched all tasks that lanes have reached
    struct gathering *gatherings;    // [meeting]
    int32_t          *running, running_count;    // fronts: first participant of each running task
    double            now;
};

static const struct task *task_of(const struct progress *progress, int32_t front)
{
    return &progress->simulation->actors[front / LANE_COUNT].tasks[progress->fronts[front].task];
}

// Computing threads per core of the node.
static double load_of(const struct progress *progress, int32_t node)
{
    const struct simulated_cores *cores = &progress->simulation->cores;
    return cores->count > 0.0 ? progress->computing[node] * cores->threads / cores->count : 0.0;
}

// Fraction of the mutual slowdown of transfers and compute that applies. On CPU ranks it is the probability that they
// meet on a core.
static double disturbance_of(const struct progress *progress, int32_t actor)
{
    int32_t node = progress->simulation->actors[actor].node, busy = 0;
    if (progress->simulation->cores.count > 0.0) {
        return progress->transferring[node] > 0.0 ? fmin(load_of(progress, node), 1.0) : 0.0;
    }
    for (int link = 0; link < LINK_BITS; link++) {
        busy += progress->busy[actor][link];
    }
    return busy > 0 ? 1.0 : 0.0;
}

// Fraction of the SMs that transfers take from compute.
static double processors_lost(const struct progress *progress, int32_t actor)
{
    int32_t taken = progress->taken[actor] - progress->simulation->spared;
    return taken > 0 && progress->simulation->processors > 0.0 ? taken / progress->simulation->processors : 0.0;
}

// Compute keeps a minimum rate, since its blocks are scheduled between transfers.
static double compute_rate(const struct progress *progress, int32_t front)
{
    enum { LEAST_PERCENT = 10 };
    int32_t actor = front / LANE_COUNT;
    double  load  = load_of(progress, progress->simulation->actors[actor].node);
    double lost = progress->simulation->contention * disturbance_of(progress, actor) + processors_lost(progress, actor);
    return fmax(1.0 - lost, LEAST_PERCENT / 100.0) / fmax(load, 1.0);
}

static double transfer_rate(const struct progress *progress, int32_t first)
{
    const struct simulated_cores *cores   = &progress->simulation->cores;
    double                        seconds = fmax(progress->fronts[first].seconds, DBL_MIN);    // avoids a rate of 0 / 0
    double                        meets   = 0.0;
    int32_t                       most    = 1;
    for (int32_t front = first; front != NONE; front = progress->fronts[front].party) {
        meets = cores->count > 0.0 ? fmax(meets, disturbance_of(progress, front / LANE_COUNT)) : 0.0;
        for (int link = 0; link < LINK_BITS; link++) {
            int32_t sharing = progress->busy[front / LANE_COUNT][link];
            if (task_of(progress, front)->links >> link & 1 && sharing > most) {
                most = sharing;
            }
        }
    }
    return seconds / (seconds + meets * cores->transfer_delay) / most;
}

// Whether the rate may have changed. On a device it depends only on the other tasks of its participants.
static bool is_touched(const struct progress *progress, int32_t first)
{
    bool is_touched = progress->simulation->cores.count > 0.0;
    for (int32_t front = first; front != NONE; front = progress->fronts[front].party) {
        is_touched |= progress->is_changed[front / LANE_COUNT];
    }
    return is_touched;
}

static void update_rates(struct progress *progress)
{
    for (int32_t i = 0; i < progress->running_count; i++) {
        struct front *front = &progress->fronts[progress->running[i]];
        if (front->is_launching || !is_touched(progress, progress->running[i])) {
            continue;
        }
        bool   computes = task_of(progress, progress->running[i])->links == 0;
        double rate =
            computes ? compute_rate(progress, progress->running[i]) : transfer_rate(progress, progress->running[i]);
        if (rate != front->rate) {
            front->left -= (progress->now - front->since) * front->rate;
            front->rate  = rate;
            front->since = progress->now;
            front->end   = progress->now + front->left / rate;
        }
    }
    memset(progress->is_changed, 0, (size_t)progress->simulation->actor_count * sizeof(*progress->is_changed));
}

// change: 1 at the start of the task, -1 at its end.
static void count_running(struct progress *progress, int32_t first, int32_t change)
{
    for (int32_t front = first; front != NONE; front = progress->fronts[front].party) {
        const struct actor *actor                = &progress->simulation->actors[front / LANE_COUNT];
        int                 links                = task_of(progress, front)->links;
        progress->is_changed[front / LANE_COUNT] = true;
        progress->taken[front / LANE_COUNT] += change * task_of(progress, front)->processors;
        for (int link = 0; link < LINK_BITS; link++) {
            progress->busy[front / LANE_COUNT][link] += links >> link & 1 ? change : 0;
        }
        *(links == 0 ? &progress->computing[actor->node] : &progress->transferring[actor->node]) +=
            change * actor->ranks;
    }
}

static void begin(struct progress *progress, int32_t first, double seconds)
{
    struct front *front = &progress->fronts[first];
    front->begin = front->since = progress->now;
    front->seconds = front->left                 = seconds;
    front->rate                                  = 0.0;
    progress->running[progress->running_count++] = first;
    count_running(progress, first, 1);
}

static bool is_held(const struct progress *progress, int32_t front)
{
    int32_t             actor = front / LANE_COUNT;
    const struct actor *own   = &progress->simulation->actors[actor];
    const struct task  *task  = task_of(progress, front);
    for (int w = 0; w < task->wait_count; w++) {
        int32_t waited = task->wait[w];
        if (progress->fronts[actor * LANE_COUNT + own->tasks[waited].lane].task <= waited) {
            return true;
        }
    }
    return false;
}

static void arrive(struct progress *progress, int32_t index)
{
    struct front      *front = &progress->fronts[index];
    const struct task *task  = task_of(progress, index);
    front->is_taken          = true;
    front->party             = NONE;
    if (task->meeting == NONE) {
        double *launched = &progress->launched[index / LANE_COUNT];
        *launched += task->launch_seconds;
        if (task->launch_seconds > 0.0 && *launched > progress->now) {
            front->is_launching                          = true;
            front->end                                   = *launched;
            progress->running[progress->running_count++] = index;
            return;
        }
        begin(progress, index, task->seconds);
        return;
    }
    struct gathering *gathering = &progress->gatherings[task->meeting];
    front->party                = gathering->arrived == 0 ? NONE : gathering->first;
    gathering->first            = index;
    gathering->seconds          = task->seconds > gathering->seconds ? task->seconds : gathering->seconds;
    if (++gathering->arrived == progress->simulation->parties[task->meeting]) {
        begin(progress, index, gathering->seconds);
    }
}

static void begin_what_can(struct progress *progress, int32_t actor)
{
    for (int32_t front = actor * LANE_COUNT; front < (actor + 1) * LANE_COUNT; front++) {
        const struct front *at = &progress->fronts[front];
        if (at->task != LANE_ENDED && !at->is_taken && !is_held(progress, front)) {
            arrive(progress, front);
        }
    }
}

// Ends the earliest task, advances its lanes, and starts the tasks that waited for it.
static void end_first(struct progress *progress)
{
    int32_t earliest = 0;
    for (int32_t i = 1; i < progress->running_count; i++) {
        if (progress->fronts[progress->running[i]].end < progress->fronts[progress->running[earliest]].end) {
            earliest = i;
        }
    }
    int32_t first               = progress->running[earliest];
    progress->running[earliest] = progress->running[--progress->running_count];
    progress->now               = progress->fronts[first].end;
    if (progress->fronts[first].is_launching) {
        progress->fronts[first].is_launching = false;
        begin(progress, first, task_of(progress, first)->seconds);
        return;
    }
    count_running(progress, first, -1);
    if (task_of(progress, first)->is_read) {
        double *launched = &progress->launched[first / LANE_COUNT];
        *launched        = fmax(*launched, progress->now);
    }
    if (task_of(progress, first)->links == 0) {
        progress->times[first / LANE_COUNT].compute_seconds += progress->now - progress->fronts[first].begin;
    }
    for (int32_t front = first; front != NONE; front = progress->fronts[front].party) {
        struct front      *at    = &progress->fronts[front];
        struct actor_time *times = &progress->times[front / LANE_COUNT];
        if (times->tasks != NULL) {
            times->tasks[at->task] = (struct op_time){progress->fronts[first].begin, progress->now};
        }
        times->end_seconds = progress->now;
        at->task           = progress->next[front / LANE_COUNT][at->task];
        at->is_taken       = false;
    }
    for (int32_t front = first, after; front != NONE; front = after) {
        after = progress->fronts[front].party;
        begin_what_can(progress, front / LANE_COUNT);
    }
}

static void link_lanes(struct progress *progress, int32_t actor)
{
    const struct actor *own  = &progress->simulation->actors[actor];
    int32_t            *next = memory_allocate((size_t)own->task_count * sizeof(*next));
    progress->next[actor]    = next;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        progress->fronts[actor * LANE_COUNT + lane].task = LANE_ENDED;
    }
    for (int32_t i = own->task_count - 1; i >= 0; i--) {
        int32_t *head = &progress->fronts[actor * LANE_COUNT + own->tasks[i].lane].task;
        next[i]       = *head;
        *head         = i;
    }
}

static void init(struct progress *progress)
{
    size_t actors          = (size_t)progress->simulation->actor_count;
    progress->fronts       = memory_allocate(actors * LANE_COUNT * sizeof(*progress->fronts));
    progress->next         = memory_allocate(actors * sizeof(*progress->next));
    progress->busy         = memory_allocate(actors * sizeof(*progress->busy));
    progress->is_changed   = memory_allocate(actors * sizeof(*progress->is_changed));
    progress->taken        = memory_allocate(actors * sizeof(*progress->taken));
    progress->computing    = memory_allocate(actors * sizeof(double));
    progress->transferring = memory_allocate(actors * sizeof(double));
    progress->launched     = memory_allocate(actors * sizeof(double));
    progress->gatherings = memory_allocate((size_t)progress->simulation->meeting_count * sizeof(*progress->gatherings));
    progress->running    = memory_allocate(actors * LANE_COUNT * sizeof(*progress->running));
    for (int32_t actor = 0; actor < progress->simulation->actor_count; actor++) {
        progress->times[actor] = (struct actor_time){.tasks = progress->times[actor].tasks};
        link_lanes(progress, actor);
    }
}

static void release(struct progress *progress)
{
    for (int32_t actor = 0; actor < progress->simulation->actor_count; actor++) {
        free(progress->next[actor]);
    }
    free(progress->fronts);
    free(progress->next);
    free(progress->busy);
    free(progress->is_changed);
    free(progress->taken);
    free(progress->computing);
    free(progress->transferring);
    free(progress->launched);
    free(progress->gatherings);
    free(progress->running);
}

status simulate(const struct simulation *simulation, struct actor_time *times)
{
    struct progress progress = {.simulation = simulation, .times = times};
    status          result   = OK;
    init(&progress);
    for (int32_t actor = 0; actor < simulation->actor_count; actor++) {
        begin_what_can(&progress, actor);
    }
    while (progress.running_count > 0) {
        update_rates(&progress);
        end_first(&progress);
    }
    for (int32_t front = 0; front < simulation->actor_count * LANE_COUNT; front++) {
        if (progress.fronts[front].task != LANE_ENDED && !failed(&result)) {
            result = fail_as(EXIT_INTERNAL, "task %d of actor %d waits for ever", progress.fronts[front].task,
                             front / LANE_COUNT);
        }
    }
    release(&progress);
    return result;
}

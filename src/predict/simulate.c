// SPDX-License-Identifier: MIT
// Simulates the streams of every actor (the representative rank of a pipeline stage). A running task has a rate, which
// changes only when another task starts or ends. So the simulation advances from the end of one task to the end of the
// next.
#include "gswbench/predict.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "gswbench/arena.h"

enum { NONE = -1, STREAM_ENDED = INT32_MAX };

// The next or running task of a stream. Stream heads are numbered as actor * STREAM_COUNT + stream. A task that uses no
// link (task.links is 0) is a compute task.
struct stream_head {
    int32_t task;            // STREAM_ENDED: the stream is done
    int32_t participant;     // number of the next participant's stream head in a rendezvous; NONE: no further one
    bool    has_arrived;     // the task runs, or waits for other participants or the host
    bool    is_launching;    // the host launches the task until `end`
    // The following fields describe a running task. If it has several participants, only the stream head of the leader,
    // which arrived last, has these fields.
    double begin, since, end;    // since: when its rate last changed
    // seconds: duration at rate 1; left: part of this duration that remains at `since`; rate: seconds of this duration
    // that pass per simulated second
    double seconds, left, rate;
};

struct arrivals {
    // leader: stream head of the participant that arrived last. It is the first in a list of those that have arrived,
    // which stream_head.participant links. arrived: length of this list
    int32_t leader, arrived;
    double  seconds;    // maximum duration over the participants that have arrived
};

// State of the simulation.
struct progress {
    const struct simulation *simulation;
    struct actor_time       *times;
    struct arena             arena;    // holds the arrays below
    struct stream_head      *stream_heads;
    int32_t                **next;    // [actor][task]: next task of the same stream
    int32_t (*busy)[LINK_BITS];       // [actor]: number of running tasks on each link (LINK_ bit)
    // [actor]: a task of the actor started or ended since rates were last computed
    bool    *is_changed;
    int32_t *sms;                         // [actor]: SMs that communication occupies
    double  *computing, *transferring;    // [node]: number of ranks that compute, that communicate
    // [actor]: time at which its host can launch the next task. A host launches one task after another.
    double          *host_free;
    struct arrivals *all_arrivals;              // [rendezvous]
    int32_t         *running, running_count;    // stream heads: the leader of each running task
    double           now;
};

static const struct task *task_of(const struct progress *progress, int32_t head)
{
    return &progress->simulation->actors[head / STREAM_COUNT].tasks[progress->stream_heads[head].task];
}

// Returns the number of computing threads per CPU core of the node; 0 if ranks have GPUs (cores.count is 0).
static double load_of(const struct progress *progress, int32_t node)
{
    const struct simulated_cores *cores = &progress->simulation->cores;
    return cores->count > 0.0 ? progress->computing[node] * cores->threads / cores->count : 0.0;
}

// Returns the factor, from 0 to 1, of the current slowdown of an actor by overlap: contention for compute, and on CPUs
// also communication_delay for communication. With GPUs it is 1 while a link of the rank is busy, else 0. On CPUs
// (cores.count > 0) it is the probability that both run on the same core.
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

// Returns the rate of a compute task. It never falls below a minimum, because the GPU schedules blocks of compute
// between communication kernels.
static double compute_rate(const struct progress *progress, int32_t head)
{
    enum { MIN_PERCENT = 10 };
    int32_t actor      = head / STREAM_COUNT;
    double  load       = load_of(progress, progress->simulation->actors[actor].node);
    double  processors = progress->simulation->processors;
    // SMs that communication takes from compute
    int32_t taken = progress->sms[actor] - progress->simulation->sm_margin;
    double  lost  = progress->simulation->contention * disturbance_of(progress, actor) +
                  (taken > 0 && processors > 0.0 ? taken / processors : 0.0);
    return fmax(1.0 - lost, MIN_PERCENT / 100.0) / fmax(load, 1.0);
}

// Returns the rate of a communication task: the rate of its slowest participant. Tasks on a link share it equally.
static double communication_rate(const struct progress *progress, int32_t leader)
{
    const struct simulated_cores *cores = &progress->simulation->cores;
    double  seconds = fmax(progress->stream_heads[leader].seconds, DBL_MIN);    // avoids a rate of 0 / 0
    double  delay   = 0.0;    // CPUs: maximum of disturbance_of over the participants
    int32_t sharers = 1;      // maximum number of tasks on one of its links
    for (int32_t head = leader; head != NONE; head = progress->stream_heads[head].participant) {
        delay = cores->count > 0.0 ? fmax(delay, disturbance_of(progress, head / STREAM_COUNT)) : 0.0;
        for (int link = 0; link < LINK_BITS; link++) {
            int32_t on_link = progress->busy[head / STREAM_COUNT][link];
            if (task_of(progress, head)->links >> link & 1 && on_link > sharers) {
                sharers = on_link;
            }
        }
    }
    return seconds / (seconds + delay * cores->communication_delay) / sharers;
}

// Whether the rate of a task may have changed: on GPUs by other tasks of its actors, on CPUs by any task.
static bool rate_may_change(const struct progress *progress, int32_t leader)
{
    bool may_change = progress->simulation->cores.count > 0.0;
    for (int32_t head = leader; head != NONE; head = progress->stream_heads[head].participant) {
        may_change |= progress->is_changed[head / STREAM_COUNT];
    }
    return may_change;
}

static void update_rates(struct progress *progress)
{
    for (int32_t i = 0; i < progress->running_count; i++) {
        struct stream_head *at = &progress->stream_heads[progress->running[i]];
        if (at->is_launching || !rate_may_change(progress, progress->running[i])) {
            continue;
        }
        bool   computes = task_of(progress, progress->running[i])->links == 0;
        double rate     = computes ? compute_rate(progress, progress->running[i])
                                   : communication_rate(progress, progress->running[i]);
        if (rate != at->rate) {
            at->left -= (progress->now - at->since) * at->rate;
            at->rate  = rate;
            at->since = progress->now;
            at->end   = progress->now + at->left / rate;
        }
    }
    memset(progress->is_changed, 0, (size_t)progress->simulation->actor_count * sizeof(*progress->is_changed));
}

// Counts a task that starts (change is 1) or ends (-1).
static void count_running(struct progress *progress, int32_t leader, int32_t change)
{
    for (int32_t head = leader; head != NONE; head = progress->stream_heads[head].participant) {
        const struct actor *actor                 = &progress->simulation->actors[head / STREAM_COUNT];
        int                 links                 = task_of(progress, head)->links;
        progress->is_changed[head / STREAM_COUNT] = true;
        progress->sms[head / STREAM_COUNT] += change * task_of(progress, head)->processors;
        for (int link = 0; link < LINK_BITS; link++) {
            progress->busy[head / STREAM_COUNT][link] += links >> link & 1 ? change : 0;
        }
        *(links == 0 ? &progress->computing[actor->node] : &progress->transferring[actor->node]) +=
            change * actor->ranks;
    }
}

// Begins a task. update_rates then sets its rate and its end, because count_running marks its actors as changed.
static void begin(struct progress *progress, int32_t leader, double seconds)
{
    struct stream_head *at = &progress->stream_heads[leader];
    at->begin = at->since = progress->now;
    at->seconds = at->left                       = seconds;
    at->rate                                     = 0.0;
    progress->running[progress->running_count++] = leader;
    count_running(progress, leader, 1);
}

// Whether a task on which this one depends (task.wait) has not ended yet.
static bool is_held(const struct progress *progress, int32_t head)
{
    int32_t             actor = head / STREAM_COUNT;
    const struct actor *own   = &progress->simulation->actors[actor];
    const struct task  *task  = task_of(progress, head);
    for (int w = 0; w < task->wait_count; w++) {
        int32_t waited = task->wait[w];
        if (progress->stream_heads[actor * STREAM_COUNT + own->tasks[waited].stream].task <= waited) {
            return true;
        }
    }
    return false;
}

// Begins a stream's next task, or lets the host launch it first. A task with several participants begins when the last
// one arrives.
static void arrive(struct progress *progress, int32_t index)
{
    struct stream_head *at   = &progress->stream_heads[index];
    const struct task  *task = task_of(progress, index);
    at->has_arrived          = true;
    at->participant          = NONE;
    if (task->rendezvous == NONE) {
        double *host_free = &progress->host_free[index / STREAM_COUNT];
        *host_free += task->launch_seconds;
        if (task->launch_seconds > 0.0 && *host_free > progress->now) {
            at->is_launching                             = true;
            at->end                                      = *host_free;
            progress->running[progress->running_count++] = index;
            return;
        }
        begin(progress, index, task->seconds);
        return;
    }
    struct arrivals *arrivals = &progress->all_arrivals[task->rendezvous];
    at->participant           = arrivals->arrived == 0 ? NONE : arrivals->leader;
    arrivals->leader          = index;
    arrivals->seconds         = task->seconds > arrivals->seconds ? task->seconds : arrivals->seconds;
    if (++arrivals->arrived == progress->simulation->participants[task->rendezvous]) {
        begin(progress, index, arrivals->seconds);
    }
}

static void begin_ready(struct progress *progress, int32_t actor)
{
    for (int32_t head = actor * STREAM_COUNT; head < (actor + 1) * STREAM_COUNT; head++) {
        const struct stream_head *at = &progress->stream_heads[head];
        if (at->task != STREAM_ENDED && !at->has_arrived && !is_held(progress, head)) {
            arrive(progress, head);
        }
    }
}

// Ends the launch or task that ends first. Begins the launched task, or the tasks that waited for the ended one.
static void end_earliest(struct progress *progress)
{
    int32_t earliest = 0;
    for (int32_t i = 1; i < progress->running_count; i++) {
        if (progress->stream_heads[progress->running[i]].end <
            progress->stream_heads[progress->running[earliest]].end) {
            earliest = i;
        }
    }
    int32_t leader              = progress->running[earliest];
    progress->running[earliest] = progress->running[--progress->running_count];
    progress->now               = progress->stream_heads[leader].end;
    if (progress->stream_heads[leader].is_launching) {
        progress->stream_heads[leader].is_launching = false;
        begin(progress, leader, task_of(progress, leader)->seconds);
        return;
    }
    count_running(progress, leader, -1);
    if (task_of(progress, leader)->is_read) {    // until now, the host has waited for the result
        double *host_free = &progress->host_free[leader / STREAM_COUNT];
        *host_free        = fmax(*host_free, progress->now);
    }
    if (task_of(progress, leader)->links == 0) {
        progress->times[leader / STREAM_COUNT].compute_seconds += progress->now - progress->stream_heads[leader].begin;
    }
    for (int32_t head = leader; head != NONE; head = progress->stream_heads[head].participant) {
        struct stream_head *at    = &progress->stream_heads[head];
        struct actor_time  *times = &progress->times[head / STREAM_COUNT];
        if (times->tasks != NULL) {
            times->tasks[at->task] = (struct op_time){progress->stream_heads[leader].begin, progress->now};
        }
        times->end_seconds = progress->now;
        at->task           = progress->next[head / STREAM_COUNT][at->task];
        at->has_arrived    = false;
    }
    for (int32_t head = leader, after; head != NONE; head = after) {
        after = progress->stream_heads[head].participant;
        begin_ready(progress, head / STREAM_COUNT);
    }
}

// Chains each task of an actor to the next task of its stream, and sets each stream head to the first one.
static void chain_streams(struct progress *progress, int32_t actor)
{
    const struct actor *own  = &progress->simulation->actors[actor];
    int32_t            *next = arena_allocate(&progress->arena, (size_t)own->task_count * sizeof(*next));
    progress->next[actor]    = next;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        progress->stream_heads[actor * STREAM_COUNT + stream].task = STREAM_ENDED;
    }
    for (int32_t i = own->task_count - 1; i >= 0; i--) {
        int32_t *first_task = &progress->stream_heads[actor * STREAM_COUNT + own->tasks[i].stream].task;
        next[i]             = *first_task;
        *first_task         = i;
    }
}

static void init(struct progress *progress)
{
    size_t actors          = (size_t)progress->simulation->actor_count;
    progress->stream_heads = arena_allocate(&progress->arena, actors * STREAM_COUNT * sizeof(*progress->stream_heads));
    progress->next         = arena_allocate(&progress->arena, actors * sizeof(*progress->next));
    progress->busy         = arena_allocate(&progress->arena, actors * sizeof(*progress->busy));
    progress->is_changed   = arena_allocate(&progress->arena, actors * sizeof(*progress->is_changed));
    progress->sms          = arena_allocate(&progress->arena, actors * sizeof(*progress->sms));
    progress->computing    = arena_allocate(&progress->arena, actors * sizeof(double));
    progress->transferring = arena_allocate(&progress->arena, actors * sizeof(double));
    progress->host_free    = arena_allocate(&progress->arena, actors * sizeof(double));
    progress->all_arrivals = arena_allocate(&progress->arena, (size_t)progress->simulation->rendezvous_count *
                                                                  sizeof(*progress->all_arrivals));
    progress->running      = arena_allocate(&progress->arena, actors * STREAM_COUNT * sizeof(*progress->running));
    for (int32_t actor = 0; actor < progress->simulation->actor_count; actor++) {
        progress->times[actor] = (struct actor_time){.tasks = progress->times[actor].tasks};
        chain_streams(progress, actor);
    }
}

status simulate(const struct simulation *simulation, struct actor_time *times)
{
    struct progress progress = {.simulation = simulation, .times = times};
    status          result   = OK;
    init(&progress);
    for (int32_t actor = 0; actor < simulation->actor_count; actor++) {
        begin_ready(&progress, actor);
    }
    while (progress.running_count > 0) {
        update_rates(&progress);
        end_earliest(&progress);
    }
    for (int32_t head = 0; head < simulation->actor_count * STREAM_COUNT; head++) {
        if (progress.stream_heads[head].task != STREAM_ENDED && !failed(&result)) {
            result = fail_as(EXIT_INTERNAL, "task %d of actor %d waits for ever", progress.stream_heads[head].task,
                             head / STREAM_COUNT);
        }
    }
    arena_free(&progress.arena);
    return result;
}

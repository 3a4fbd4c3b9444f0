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

// The next or running task of a stream. Stream heads are numbered as actor * STREAM_COUNT + stream.
struct stream_head {
    int32_t task;           // STREAM_ENDED: the stream is done
    int32_t participant;    // stream head of the next participant of the same communication op; NONE: no further one
    bool    is_taken;       // the task runs, or waits for other participants or the host
    bool    is_launching;
    // The following fields describe a running task. They are set only in the stream head of its first participant.
    double begin, since, end;    // since: when its rate last changed
    // seconds: duration at rate 1; left: part of this duration that remains at `since`; rate: seconds of this duration
    // that pass per simulated second
    double seconds, left, rate;
};

struct arrivals {
    // first: stream head of the participant that arrived last; stream_head.participant links it to the one that arrived
    // before it. arrived: number of participants that have arrived
    int32_t first, arrived;
    double  seconds;    // maximum duration over the participants that have arrived
};

// State of the simulation.
struct progress {
    const struct simulation *simulation;
    struct actor_time       *times;
    struct arena             arena;    // holds the arrays below
    struct stream_head      *stream_heads;
    int32_t                **next;    // [actor][task]: next task of the same stream
    int32_t (*busy)[LINK_BITS];       // [actor]: communication ops on each link
    // [actor]: a task of the actor started or ended since rates were last computed
    bool    *is_changed;
    int32_t *taken;                       // [actor]: SMs that communication occupies
    double  *computing, *transferring;    // [node]: ranks that compute, ranks that communicate
    // [actor]: time at which its host has launched every task that its streams have reached
    double          *launched;
    struct arrivals *all_arrivals;              // [rendezvous]
    int32_t         *running, running_count;    // stream heads: the first participant of each running task
    double           now;
};

static const struct task *task_of(const struct progress *progress, int32_t stream_head)
{
    return &progress->simulation->actors[stream_head / STREAM_COUNT].tasks[progress->stream_heads[stream_head].task];
}

// Returns the number of computing threads per CPU core of the node.
static double load_of(const struct progress *progress, int32_t node)
{
    const struct simulated_cores *cores = &progress->simulation->cores;
    return cores->count > 0.0 ? progress->computing[node] * cores->threads / cores->count : 0.0;
}

// Returns the fraction of the mutual slowdown of communication and compute that applies now. With GPUs it is 1 while a
// link of the rank is busy, else 0. On CPUs it is the probability that both run on the same core.
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

// Returns the fraction of the SMs that communication takes from compute.
static double processors_lost(const struct progress *progress, int32_t actor)
{
    int32_t taken = progress->taken[actor] - progress->simulation->sm_margin;
    return taken > 0 && progress->simulation->processors > 0.0 ? taken / progress->simulation->processors : 0.0;
}

// Returns the rate of a compute task. It never falls below a minimum, because the GPU schedules blocks of compute
// between communication kernels.
static double compute_rate(const struct progress *progress, int32_t stream_head)
{
    enum { MIN_PERCENT = 10 };
    int32_t actor = stream_head / STREAM_COUNT;
    double  load  = load_of(progress, progress->simulation->actors[actor].node);
    double lost = progress->simulation->contention * disturbance_of(progress, actor) + processors_lost(progress, actor);
    return fmax(1.0 - lost, MIN_PERCENT / 100.0) / fmax(load, 1.0);
}

static double communication_rate(const struct progress *progress, int32_t first)
{
    const struct simulated_cores *cores = &progress->simulation->cores;
    double  seconds = fmax(progress->stream_heads[first].seconds, DBL_MIN);    // avoids a rate of 0 / 0
    double  meets   = 0.0;
    int32_t maximum = 1;
    for (int32_t stream_head = first; stream_head != NONE;
         stream_head         = progress->stream_heads[stream_head].participant) {
        meets = cores->count > 0.0 ? fmax(meets, disturbance_of(progress, stream_head / STREAM_COUNT)) : 0.0;
        for (int link = 0; link < LINK_BITS; link++) {
            int32_t sharing = progress->busy[stream_head / STREAM_COUNT][link];
            if (task_of(progress, stream_head)->links >> link & 1 && sharing > maximum) {
                maximum = sharing;
            }
        }
    }
    return seconds / (seconds + meets * cores->communication_delay) / maximum;
}

// Whether the rate of a task may have changed. On GPUs the rate depends only on other tasks of the same actors.
static bool is_touched(const struct progress *progress, int32_t first)
{
    bool is_touched = progress->simulation->cores.count > 0.0;
    for (int32_t stream_head = first; stream_head != NONE;
         stream_head         = progress->stream_heads[stream_head].participant) {
        is_touched |= progress->is_changed[stream_head / STREAM_COUNT];
    }
    return is_touched;
}

static void update_rates(struct progress *progress)
{
    for (int32_t i = 0; i < progress->running_count; i++) {
        struct stream_head *stream_head = &progress->stream_heads[progress->running[i]];
        if (stream_head->is_launching || !is_touched(progress, progress->running[i])) {
            continue;
        }
        bool   computes = task_of(progress, progress->running[i])->links == 0;
        double rate     = computes ? compute_rate(progress, progress->running[i])
                                   : communication_rate(progress, progress->running[i]);
        if (rate != stream_head->rate) {
            stream_head->left -= (progress->now - stream_head->since) * stream_head->rate;
            stream_head->rate  = rate;
            stream_head->since = progress->now;
            stream_head->end   = progress->now + stream_head->left / rate;
        }
    }
    memset(progress->is_changed, 0, (size_t)progress->simulation->actor_count * sizeof(*progress->is_changed));
}

// Counts a task that starts (change is 1) or ends (-1).
static void count_running(struct progress *progress, int32_t first, int32_t change)
{
    for (int32_t stream_head = first; stream_head != NONE;
         stream_head         = progress->stream_heads[stream_head].participant) {
        const struct actor *actor                        = &progress->simulation->actors[stream_head / STREAM_COUNT];
        int                 links                        = task_of(progress, stream_head)->links;
        progress->is_changed[stream_head / STREAM_COUNT] = true;
        progress->taken[stream_head / STREAM_COUNT] += change * task_of(progress, stream_head)->processors;
        for (int link = 0; link < LINK_BITS; link++) {
            progress->busy[stream_head / STREAM_COUNT][link] += links >> link & 1 ? change : 0;
        }
        *(links == 0 ? &progress->computing[actor->node] : &progress->transferring[actor->node]) +=
            change * actor->ranks;
    }
}

static void begin(struct progress *progress, int32_t first, double seconds)
{
    struct stream_head *stream_head = &progress->stream_heads[first];
    stream_head->begin = stream_head->since = progress->now;
    stream_head->seconds = stream_head->left     = seconds;
    stream_head->rate                            = 0.0;
    progress->running[progress->running_count++] = first;
    count_running(progress, first, 1);
}

static bool is_held(const struct progress *progress, int32_t stream_head)
{
    int32_t             actor = stream_head / STREAM_COUNT;
    const struct actor *own   = &progress->simulation->actors[actor];
    const struct task  *task  = task_of(progress, stream_head);
    for (int w = 0; w < task->wait_count; w++) {
        int32_t waited = task->wait[w];
        if (progress->stream_heads[actor * STREAM_COUNT + own->tasks[waited].stream].task <= waited) {
            return true;
        }
    }
    return false;
}

static void arrive(struct progress *progress, int32_t index)
{
    struct stream_head *stream_head = &progress->stream_heads[index];
    const struct task  *task        = task_of(progress, index);
    stream_head->is_taken           = true;
    stream_head->participant        = NONE;
    if (task->rendezvous == NONE) {
        double *launched = &progress->launched[index / STREAM_COUNT];
        *launched += task->launch_seconds;
        if (task->launch_seconds > 0.0 && *launched > progress->now) {
            stream_head->is_launching                    = true;
            stream_head->end                             = *launched;
            progress->running[progress->running_count++] = index;
            return;
        }
        begin(progress, index, task->seconds);
        return;
    }
    struct arrivals *arrivals = &progress->all_arrivals[task->rendezvous];
    stream_head->participant  = arrivals->arrived == 0 ? NONE : arrivals->first;
    arrivals->first           = index;
    arrivals->seconds         = task->seconds > arrivals->seconds ? task->seconds : arrivals->seconds;
    if (++arrivals->arrived == progress->simulation->participants[task->rendezvous]) {
        begin(progress, index, arrivals->seconds);
    }
}

static void begin_what_can(struct progress *progress, int32_t actor)
{
    for (int32_t stream_head = actor * STREAM_COUNT; stream_head < (actor + 1) * STREAM_COUNT; stream_head++) {
        const struct stream_head *at = &progress->stream_heads[stream_head];
        if (at->task != STREAM_ENDED && !at->is_taken && !is_held(progress, stream_head)) {
            arrive(progress, stream_head);
        }
    }
}

// Ends the earliest task, advances its streams, and starts the tasks that waited for it.
static void end_first(struct progress *progress)
{
    int32_t earliest = 0;
    for (int32_t i = 1; i < progress->running_count; i++) {
        if (progress->stream_heads[progress->running[i]].end <
            progress->stream_heads[progress->running[earliest]].end) {
            earliest = i;
        }
    }
    int32_t first               = progress->running[earliest];
    progress->running[earliest] = progress->running[--progress->running_count];
    progress->now               = progress->stream_heads[first].end;
    if (progress->stream_heads[first].is_launching) {
        progress->stream_heads[first].is_launching = false;
        begin(progress, first, task_of(progress, first)->seconds);
        return;
    }
    count_running(progress, first, -1);
    if (task_of(progress, first)->is_read) {
        double *launched = &progress->launched[first / STREAM_COUNT];
        *launched        = fmax(*launched, progress->now);
    }
    if (task_of(progress, first)->links == 0) {
        progress->times[first / STREAM_COUNT].compute_seconds += progress->now - progress->stream_heads[first].begin;
    }
    for (int32_t stream_head = first; stream_head != NONE;
         stream_head         = progress->stream_heads[stream_head].participant) {
        struct stream_head *at    = &progress->stream_heads[stream_head];
        struct actor_time  *times = &progress->times[stream_head / STREAM_COUNT];
        if (times->tasks != NULL) {
            times->tasks[at->task] = (struct op_time){progress->stream_heads[first].begin, progress->now};
        }
        times->end_seconds = progress->now;
        at->task           = progress->next[stream_head / STREAM_COUNT][at->task];
        at->is_taken       = false;
    }
    for (int32_t stream_head = first, after; stream_head != NONE; stream_head = after) {
        after = progress->stream_heads[stream_head].participant;
        begin_what_can(progress, stream_head / STREAM_COUNT);
    }
}

static void link_streams(struct progress *progress, int32_t actor)
{
    const struct actor *own  = &progress->simulation->actors[actor];
    int32_t            *next = arena_allocate(&progress->arena, (size_t)own->task_count * sizeof(*next));
    progress->next[actor]    = next;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        progress->stream_heads[actor * STREAM_COUNT + stream].task = STREAM_ENDED;
    }
    for (int32_t i = own->task_count - 1; i >= 0; i--) {
        int32_t *head = &progress->stream_heads[actor * STREAM_COUNT + own->tasks[i].stream].task;
        next[i]       = *head;
        *head         = i;
    }
}

static void init(struct progress *progress)
{
    size_t actors          = (size_t)progress->simulation->actor_count;
    progress->stream_heads = arena_allocate(&progress->arena, actors * STREAM_COUNT * sizeof(*progress->stream_heads));
    progress->next         = arena_allocate(&progress->arena, actors * sizeof(*progress->next));
    progress->busy         = arena_allocate(&progress->arena, actors * sizeof(*progress->busy));
    progress->is_changed   = arena_allocate(&progress->arena, actors * sizeof(*progress->is_changed));
    progress->taken        = arena_allocate(&progress->arena, actors * sizeof(*progress->taken));
    progress->computing    = arena_allocate(&progress->arena, actors * sizeof(double));
    progress->transferring = arena_allocate(&progress->arena, actors * sizeof(double));
    progress->launched     = arena_allocate(&progress->arena, actors * sizeof(double));
    progress->all_arrivals = arena_allocate(&progress->arena, (size_t)progress->simulation->rendezvous_count *
                                                                  sizeof(*progress->all_arrivals));
    progress->running      = arena_allocate(&progress->arena, actors * STREAM_COUNT * sizeof(*progress->running));
    for (int32_t actor = 0; actor < progress->simulation->actor_count; actor++) {
        progress->times[actor] = (struct actor_time){.tasks = progress->times[actor].tasks};
        link_streams(progress, actor);
    }
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
    for (int32_t stream_head = 0; stream_head < simulation->actor_count * STREAM_COUNT; stream_head++) {
        if (progress.stream_heads[stream_head].task != STREAM_ENDED && !failed(&result)) {
            result = fail_as(EXIT_INTERNAL, "task %d of actor %d waits for ever",
                             progress.stream_heads[stream_head].task, stream_head / STREAM_COUNT);
        }
    }
    arena_free(&progress.arena);
    return result;
}

// SPDX-License-Identifier: MIT
// Runs the lanes of all actors in time. What runs has a rate, which changes only when something else begins or ends, so
// that the simulation goes from one end to the next.
#include "gswbench/simulate.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gswbench/arena.h"

enum { NONE = -1, LANE_ENDED = INT32_MAX };

// The task that a lane of an actor has come to. Fronts are numbered actor * LANE_COUNT + lane.
struct front {
    int32_t task;        // LANE_ENDED: there is no other
    int32_t party;       // the next front of the same transfer, NONE: the last
    bool    is_taken;    // it runs, or waits for the other parties
    // Of the first party, while it runs:
    double begin, since, end;      // since: of the rate of now
    double seconds, left, rate;    // that it would take alone, in all and from now; and how fast they pass
};

struct gathering {
    int32_t first, arrived;    // front
    double  seconds;
};

struct machine {
    const struct simulation *simulation;
    struct actor_time       *times;
    struct front            *fronts;
    int32_t                **next;                 // [actor][task]: the next task of the same lane
    int32_t (*busy)[LINK_BITS];                    // [actor]: transfers that go through a link
    double           *computing, *transferring;    // [node]: ranks
    struct gathering *gatherings;                  // [meeting]
    int32_t          *running, running_count;      // fronts: the first party of each task that runs
    double            now;
};

static const struct task *task_of(const struct machine *machine, int32_t front)
{
    return &machine->simulation->actors[front / LANE_COUNT].tasks[machine->fronts[front].task];
}

// Threads that compute on the node's cores, a core.
static double load_of(const struct machine *machine, int32_t node)
{
    const struct simulated_cores *cores = &machine->simulation->cores;
    return cores->count > 0.0 ? machine->computing[node] * cores->threads / cores->count : 0.0;
}

// How much of what transfers and computing cost each other they do: on cores as likely as they are to meet on one.
static double disturbance_of(const struct machine *machine, int32_t actor)
{
    int32_t node = machine->simulation->actors[actor].node, busy = 0;
    if (machine->simulation->cores.count > 0.0) {
        return machine->transferring[node] > 0.0 ? fmin(load_of(machine, node), 1.0) : 0.0;
    }
    for (int link = 0; link < LINK_BITS; link++) {
        busy += machine->busy[actor][link];
    }
    return busy > 0 ? 1.0 : 0.0;
}

static double compute_rate(const struct machine *machine, int32_t front)
{
    int32_t actor = front / LANE_COUNT;
    double  load  = load_of(machine, machine->simulation->actors[actor].node);
    return (1.0 - machine->simulation->contention * disturbance_of(machine, actor)) / fmax(load, 1.0);
}

static double transfer_rate(const struct machine *machine, int32_t first)
{
    const struct simulated_cores *cores   = &machine->simulation->cores;
    double                        seconds = fmax(machine->fronts[first].seconds, DBL_MIN);    // a rate, in any case
    double                        meets   = 0.0;
    int32_t                       most    = 1;
    for (int32_t front = first; front != NONE; front = machine->fronts[front].party) {
        meets = cores->count > 0.0 ? fmax(meets, disturbance_of(machine, front / LANE_COUNT)) : 0.0;
        for (int link = 0; link < LINK_BITS; link++) {
            int32_t sharing = machine->busy[front / LANE_COUNT][link];
            if (task_of(machine, front)->links >> link & 1 && sharing > most) {
                most = sharing;
            }
        }
    }
    return seconds / (seconds + meets * cores->transfer_delay) / most;
}

static void update_rates(struct machine *machine)
{
    for (int32_t i = 0; i < machine->running_count; i++) {
        struct front *front    = &machine->fronts[machine->running[i]];
        bool          computes = task_of(machine, machine->running[i])->links == 0;
        double        rate =
            computes ? compute_rate(machine, machine->running[i]) : transfer_rate(machine, machine->running[i]);
        if (rate != front->rate) {
            front->left -= (machine->now - front->since) * front->rate;
            front->rate  = rate;
            front->since = machine->now;
            front->end   = machine->now + front->left / rate;
        }
    }
}

// change: 1 when what the fronts have come to begins, -1 when it ends.
static void count_running(struct machine *machine, int32_t first, int32_t change)
{
    for (int32_t front = first; front != NONE; front = machine->fronts[front].party) {
        const struct actor *actor = &machine->simulation->actors[front / LANE_COUNT];
        int                 links = task_of(machine, front)->links;
        for (int link = 0; link < LINK_BITS; link++) {
            machine->busy[front / LANE_COUNT][link] += links >> link & 1 ? change : 0;
        }
        *(links == 0 ? &machine->computing[actor->node] : &machine->transferring[actor->node]) += change * actor->ranks;
    }
}

static void begin(struct machine *machine, int32_t first, double seconds)
{
    struct front *front = &machine->fronts[first];
    front->begin = front->since = machine->now;
    front->seconds = front->left               = seconds;
    front->rate                                = 0.0;
    machine->running[machine->running_count++] = first;
    count_running(machine, first, 1);
}

static bool is_held(const struct machine *machine, int32_t front)
{
    int32_t             actor = front / LANE_COUNT;
    const struct actor *own   = &machine->simulation->actors[actor];
    const struct task  *task  = task_of(machine, front);
    for (int w = 0; w < task->wait_count; w++) {
        int32_t waited = task->wait[w];
        if (machine->fronts[actor * LANE_COUNT + own->tasks[waited].lane].task <= waited) {
            return true;
        }
    }
    return false;
}

static void arrive(struct machine *machine, int32_t index)
{
    struct front      *front = &machine->fronts[index];
    const struct task *task  = task_of(machine, index);
    front->is_taken          = true;
    front->party             = NONE;
    if (task->meeting == NONE) {
        begin(machine, index, task->seconds);
        return;
    }
    struct gathering *gathering = &machine->gatherings[task->meeting];
    front->party                = gathering->arrived == 0 ? NONE : gathering->first;
    gathering->first            = index;
    gathering->seconds          = task->seconds > gathering->seconds ? task->seconds : gathering->seconds;
    if (++gathering->arrived == machine->simulation->parties[task->meeting]) {
        begin(machine, index, gathering->seconds);
    }
}

static void begin_what_can(struct machine *machine, int32_t actor)
{
    for (int32_t front = actor * LANE_COUNT; front < (actor + 1) * LANE_COUNT; front++) {
        const struct front *at = &machine->fronts[front];
        if (at->task != LANE_ENDED && !at->is_taken && !is_held(machine, front)) {
            arrive(machine, front);
        }
    }
}

// Takes the task that ends first, moves its lanes on, and begins what waited for that.
static void end_first(struct machine *machine)
{
    int32_t earliest = 0;
    for (int32_t i = 1; i < machine->running_count; i++) {
        if (machine->fronts[machine->running[i]].end < machine->fronts[machine->running[earliest]].end) {
            earliest = i;
        }
    }
    int32_t first              = machine->running[earliest];
    machine->running[earliest] = machine->running[--machine->running_count];
    machine->now               = machine->fronts[first].end;
    count_running(machine, first, -1);
    if (task_of(machine, first)->links == 0) {
        machine->times[first / LANE_COUNT].compute_seconds += machine->now - machine->fronts[first].begin;
    }
    for (int32_t front = first; front != NONE; front = machine->fronts[front].party) {
        struct front      *at    = &machine->fronts[front];
        struct actor_time *times = &machine->times[front / LANE_COUNT];
        if (times->tasks != NULL) {
            times->tasks[at->task] = (struct op_time){machine->fronts[first].begin, machine->now};
        }
        times->end_seconds = machine->now;
        at->task           = machine->next[front / LANE_COUNT][at->task];
        at->is_taken       = false;
    }
    for (int32_t front = first, after; front != NONE; front = after) {
        after = machine->fronts[front].party;
        begin_what_can(machine, front / LANE_COUNT);
    }
}

static void link_lanes(struct machine *machine, int32_t actor)
{
    const struct actor *own  = &machine->simulation->actors[actor];
    int32_t            *next = memory_allocate((size_t)own->task_count * sizeof(*next));
    machine->next[actor]     = next;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        machine->fronts[actor * LANE_COUNT + lane].task = LANE_ENDED;
    }
    for (int32_t i = own->task_count - 1; i >= 0; i--) {
        int32_t *head = &machine->fronts[actor * LANE_COUNT + own->tasks[i].lane].task;
        next[i]       = *head;
        *head         = i;
    }
}

static void init(struct machine *machine)
{
    size_t actors         = (size_t)machine->simulation->actor_count;
    machine->fronts       = memory_allocate(actors * LANE_COUNT * sizeof(*machine->fronts));
    machine->next         = memory_allocate(actors * sizeof(*machine->next));
    machine->busy         = memory_allocate(actors * sizeof(*machine->busy));
    machine->computing    = memory_allocate(actors * sizeof(double));
    machine->transferring = memory_allocate(actors * sizeof(double));
    machine->gatherings   = memory_allocate((size_t)machine->simulation->meeting_count * sizeof(*machine->gatherings));
    machine->running      = memory_allocate(actors * LANE_COUNT * sizeof(*machine->running));
    for (int32_t actor = 0; actor < machine->simulation->actor_count; actor++) {
        machine->times[actor] = (struct actor_time){.tasks = machine->times[actor].tasks};
        link_lanes(machine, actor);
    }
}

static void release(struct machine *machine)
{
    for (int32_t actor = 0; actor < machine->simulation->actor_count; actor++) {
        free(machine->next[actor]);
    }
    free(machine->fronts);
    free(machine->next);
    free(machine->busy);
    free(machine->computing);
    free(machine->transferring);
    free(machine->gatherings);
    free(machine->running);
}

status simulate(const struct simulation *simulation, struct actor_time *times)
{
    struct machine machine = {.simulation = simulation, .times = times};
    status         result  = OK;
    init(&machine);
    for (int32_t actor = 0; actor < simulation->actor_count; actor++) {
        begin_what_can(&machine, actor);
    }
    while (machine.running_count > 0) {
        update_rates(&machine);
        end_first(&machine);
    }
    for (int32_t front = 0; front < simulation->actor_count * LANE_COUNT; front++) {
        if (machine.fronts[front].task != LANE_ENDED && !failed(&result)) {
            result = fail_as(EXIT_INTERNAL, "task %d of actor %d waits for ever", machine.fronts[front].task,
                             front / LANE_COUNT);
        }
    }
    release(&machine);
    return result;
}

// SPDX-License-Identifier: MIT
// Lower bound of a stage's time that includes the slowdown by overlapping transfers. The stage computes, computes
// slower while transfers run, and idles while it waits for a transfer that cannot start before compute is done.
//
// A transfer of t seconds that takes a share s of the device costs s t, except for the part that runs while the stage
// idles.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "internal.h"

enum { COMPUTED, IDLE, TAKEN, LANES, KINDS = LANES + LANE_COUNT };

// Seconds of a microbatch by kind; LANES + lane: how long the transfers of the lane run.
struct load {
    double seconds[KINDS];
};

struct loads {
    const struct plan *plan;
    const struct task *tasks;
    double             processors, spared;    // INFINITY: transfers take no SMs
    struct load       *of;                    // [1 + microbatches]; [0]: no microbatch
    double             largest[LANE_COUNT];
};

static double share_of(const struct loads *loads, const struct task *task)
{
    return fmax((double)task->processors - loads->spared, 0.0) / loads->processors;
}

static void add_transfer(struct loads *loads, int32_t index, double sign)
{
    const struct task *task = &loads->tasks[index];
    struct load       *load = &loads->of[loads->plan->ops[index].tag.microbatch + 1];
    load->seconds[TAKEN] += sign * share_of(loads, task) * task->seconds;
    load->seconds[LANES + task->lane] += sign * task->seconds;
    loads->largest[task->lane] = fmax(loads->largest[task->lane], share_of(loads, task));
}

// Returns a transfer that the op waits for and that waits for the previous compute op, or -1.
static int32_t find_idle(const struct loads *loads, int32_t index, int32_t before)
{
    const struct op *op = &loads->plan->ops[index];
    for (int w = 0; w < op->wait_count; w++) {
        const struct op *waited = &loads->plan->ops[op->wait[w]];
        for (int v = 0; v < waited->wait_count && loads->tasks[op->wait[w]].links != 0; v++) {
            if (waited->wait[v] == before) {
                return op->wait[w];
            }
        }
    }
    return -1;
}

static void add_all(struct loads *loads)
{
    int32_t before = -1;
    for (int32_t i = 0; i < loads->plan->op_count; i++) {
        const struct task *task = &loads->tasks[i];
        struct load       *load = &loads->of[loads->plan->ops[i].tag.microbatch + 1];
        if (task->lane != LANE_COMPUTE) {
            add_transfer(loads, i, 1.0);
            continue;
        }
        load->seconds[task->links == 0 ? COMPUTED : IDLE] += task->seconds;
        int32_t idle = find_idle(loads, i, before);
        if (idle >= 0 && before >= 0) {
            load->seconds[IDLE] += loads->tasks[idle].seconds;
            add_transfer(loads, idle, -1.0);
        }
        before = i;
    }
}

// Sum over the microbatches of the plan and more. Each additional one counts the minimum of those between the first
// and the last.
static double sum_up(const struct loads *loads, int kind, int64_t more)
{
    int64_t microbatches = loads->plan->train.accumulation;
    double  sum = loads->of[0].seconds[kind], least = microbatches > 2 ? INFINITY : 0.0;
    for (int64_t m = 0; m < microbatches; m++) {
        double seconds = loads->of[m + 1].seconds[kind];
        least          = m > 0 && m < microbatches - 1 ? fmin(least, seconds) : least;
        sum += seconds;
    }
    return sum + (double)more * least;
}

double sweep_loaded_seconds(const struct plan *plan, const struct task *tasks, const struct machine *machine,
                            int64_t more)
{
    const struct hardware_config *hardware = machine->hardware;
    bool                          shares   = hardware->cores > 0;
    struct loads                  loads    = {.plan       = plan,
                                              .tasks      = tasks,
                                              .processors = shares ? INFINITY : (double)hardware->multiprocessors,
                                              .spared     = (double)machine->spared_processors};
    double contention = shares ? 0.0 : hardware->contention.value, most = contention, running = 0.0;
    loads.of = memory_allocate((size_t)(plan->train.accumulation + 1) * sizeof(*loads.of));
    add_all(&loads);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        most += loads.largest[lane];
        running = fmax(running, sum_up(&loads, LANES + lane, more));
    }
    double seconds = sum_up(&loads, COMPUTED, more) + sum_up(&loads, TAKEN, more) + contention * running +
                     (1.0 - most) * sum_up(&loads, IDLE, more);
    free(loads.of);
    return most < 0.9 ? seconds : 0.0;    // else the minimum rate of compute in simulate.c applies
}

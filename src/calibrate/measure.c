// SPDX-License-Identifier: MIT
// Times of drills. Each op is measured in several passes over all of them, so that a machine that is slow for a while
// is slow for all alike.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gswbench/arena.h"
#include "internal.h"

enum { ROUNDS = 3, REPEATS_MIN = 4, REPEATS_MAX = 4096 };

struct timing {
    int32_t repeats;    // of the op in a round; 0: not known yet
    double *seconds;    // of the op, [passes * ROUNDS]
    double  processor_seconds, wall_seconds;
};

struct stopwatch {
    double wall, processor;
};

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double largest(struct comm *comm, double own)
{
    double *all = memory_allocate((size_t)comm->place.ranks * sizeof(*all));
    comm->ops->gather_all(comm, &own, all, sizeof(own));
    for (int i = 0; i < comm->place.ranks; i++) {
        own = fmax(own, all[i]);
    }
    free(all);
    return own;
}

// Ranks that would take turns on a core leave what computes to others: a price is that of an op with a core for each of
// its threads, and who shares cores when is the simulation's to find out.
static bool takes_part(const struct sample *sample, const struct calibrate_setup *setup)
{
    return op_is_transfer((enum op_kind)sample->op.kind) || setup->backend->ops->is_device ||
           setup->comm->place.local_rank < setup->cores / setup->threads;
}

// Seconds of the op, 0 where this rank takes no part.
static double run(const struct drill *drill, const struct sample *sample, const struct calibrate_setup *setup)
{
    if (!takes_part(sample, setup)) {
        return 0.0;
    }
    double begin = now(CLOCK_MONOTONIC);
    step_run(drill->step);
    double host = now(CLOCK_MONOTONIC) - begin, device = step_device_seconds(drill->step);
    return (isnan(device) ? host : device) / drill->repeats;
}

// So many repeats that a round lasts long enough. The first run of a drill meets memory that nobody has touched.
static status choose_repeats(struct timing *timing, const struct sample *sample, const struct calibrate_setup *setup)
{
    struct drill drill;
    status       result = drill_open(&drill, sample, setup, REPEATS_MIN);
    if (!failed(&result)) {
        run(&drill, sample, setup);
        double seconds  = largest(setup->comm, run(&drill, sample, setup));
        timing->repeats = (int32_t)fmin(fmax(setup->round_seconds / seconds, REPEATS_MIN), REPEATS_MAX);
    }
    drill_close(&drill);
    return result;
}

static status measure_pass(struct timing *timing, const struct sample *sample, const struct calibrate_setup *setup,
                           int pass)
{
    struct drill drill;
    if (timing->repeats == 0) {
        TRY(choose_repeats(timing, sample, setup));
    }
    status result = drill_open(&drill, sample, setup, timing->repeats);
    if (!failed(&result)) {
        run(&drill, sample, setup);
        for (int round = 0; round < ROUNDS; round++) {
            setup->comm->ops->barrier(setup->comm);
            double processor = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
            timing->seconds[pass * ROUNDS + round] = run(&drill, sample, setup);
            timing->processor_seconds += now(CLOCK_PROCESS_CPUTIME_ID) - processor;
            timing->wall_seconds += now(CLOCK_MONOTONIC) - wall;
        }
    }
    drill_close(&drill);
    return result;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// They have one clock of the processor's time.
static double ranks_of_process(const struct comm *comm)
{
    return strcmp(comm->ops->name, "local") == 0 ? comm->place.ranks : 1.0;
}

static void sum_up(struct sample *sample, const struct timing *timing, const struct calibrate_setup *setup)
{
    struct comm *comm    = setup->comm;
    double      *seconds = timing->seconds;
    int          count   = setup->passes * ROUNDS;
    qsort(seconds, (size_t)count, sizeof(*seconds), compare);
    double median = seconds[count / 2], deviation = (seconds[count * 3 / 4] - seconds[count / 4]) / 1.349;
    sample->seconds =
        (struct quantity){.origin         = QUANTITY_MEASURED,
                          .value          = largest(comm, median),
                          .spread_percent = largest(comm, median > 0.0 ? 100.0 * deviation / median : 0.0)};
    sample->cores = largest(comm, timing->processor_seconds / timing->wall_seconds) / ranks_of_process(comm);
}

status calibrate_measure(struct sample_list *list, const struct calibrate_setup *setup)
{
    size_t         count   = (size_t)(setup->passes * ROUNDS);
    struct timing *timings = memory_allocate((size_t)list->count * sizeof(*timings));
    double        *seconds = memory_allocate((size_t)list->count * count * sizeof(*seconds));
    status         result  = OK;
    for (int pass = 0; pass < setup->passes; pass++) {
        for (int32_t i = 0; i < list->count && !failed(&result); i++) {
            timings[i].seconds = &seconds[(size_t)i * count];
            result             = measure_pass(&timings[i], &list->samples[i], setup, pass);
        }
    }
    for (int32_t i = 0; i < list->count && !failed(&result); i++) {
        sum_up(&list->samples[i], &timings[i], setup);
    }
    free(seconds);
    free(timings);
    return result;
}

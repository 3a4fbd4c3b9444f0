// SPDX-License-Identifier: MIT
// Times of steps and drills. A drill is measured in several passes over all of them, so that a machine that is slow for
// a while is slow for all alike.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/emulate.h"
#include "internal.h"

static const double seconds_least = 1e-8;    // what is left of a difference that noise made negative

enum { ROUNDS = 3, REPEATS_MIN = 4, REPEATS_MAX = 4096 };

struct timing {
    const struct sample *between;    // two transfers; NULL: the op computes itself
    int32_t              repeats;    // of the op in a round; 0: not known yet
    double              *seconds;    // of the op, [rounds]
    int                  rounds;     // so far
};

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

static bool is_transfer(const struct sample *sample)
{
    return op_is_transfer((enum op_kind)sample->op.kind);
}

// Ranks that would take turns on a core leave what computes to others: a price is that of an op with a core for each of
// its threads, and who shares cores when is the simulation's to find out.
static bool takes_part(const struct calibrate_setup *setup)
{
    return setup->backend->ops->is_device || setup->has_cores;
}

// Seconds of a repeat, 0 where this rank takes no part.
static double run(const struct drill *drill, const struct sample *sample, const struct calibrate_setup *setup)
{
    if (!is_transfer(sample) && !takes_part(setup)) {
        return 0.0;
    }
    double begin = clock_seconds();
    step_run(drill->step);
    double host = clock_seconds() - begin, device = step_device_seconds(drill->step);
    return (isnan(device) ? host : device) / drill->repeats;
}

// So many repeats that a round lasts long enough. The first run of a drill meets memory that nobody has touched.
static status choose_repeats(struct timing *timing, const struct sample *sample, const struct calibrate_setup *setup)
{
    struct drill drill  = {.repeats = REPEATS_MIN};
    status       result = drill_open(&drill, sample, timing->between, setup);
    if (!failed(&result)) {
        run(&drill, sample, setup);
        double seconds  = largest(setup->comm, run(&drill, sample, setup));
        timing->repeats = (int32_t)fmin(fmax(setup->round_seconds / seconds, REPEATS_MIN), REPEATS_MAX);
    }
    drill_close(&drill);
    return result;
}

static double run_round(const struct drill *drill, const struct sample *sample, const struct calibrate_setup *setup)
{
    setup->comm->ops->barrier(setup->comm);
    return run(drill, sample, setup);
}

// Each round beside one without the transfer, where there is one: the difference is the transfer's.
static void run_rounds(struct timing *timing, const struct drill *drill, const struct drill *alone,
                       const struct sample *sample, const struct calibrate_setup *setup)
{
    for (int i = 0; i < ROUNDS; i++) {
        double whole                      = run_round(drill, sample, setup);
        timing->seconds[timing->rounds++] = whole - (alone != NULL ? run_round(alone, sample, setup) : 0.0);
    }
}

static status measure_pass(struct timing *timing, const struct sample *sample, const struct calibrate_setup *setup)
{
    if (timing->repeats == 0) {
        TRY(choose_repeats(timing, sample, setup));
    }
    struct drill drill = {.repeats = timing->repeats}, alone = drill;
    status       result = drill_open(&drill, sample, timing->between, setup);
    if (!failed(&result) && timing->between != NULL) {
        result = drill_open_alone(&alone, timing->between, setup);
    }
    if (!failed(&result)) {
        run(&drill, sample, setup);
        run_rounds(timing, &drill, timing->between != NULL ? &alone : NULL, sample, setup);
    }
    drill_close(&drill);
    drill_close(&alone);
    return result;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sum_up(struct sample *sample, const struct timing *timing, const struct calibrate_setup *setup)
{
    double *seconds = timing->seconds;
    int     count   = timing->rounds;
    qsort(seconds, (size_t)count, sizeof(*seconds), compare);
    double median = fmax(seconds[count / 2], seconds_least), range = seconds[count * 3 / 4] - seconds[count / 4];
    sample->seconds = (struct quantity){.origin         = QUANTITY_MEASURED,
                                        .value          = largest(setup->comm, median),
                                        .spread_percent = largest(setup->comm, 100.0 * range / 1.349 / median)};
}

status drills_measure(struct sample_list *list, const struct sample *between, const struct calibrate_setup *setup)
{
    bool           transfers = between != NULL;
    size_t         count     = (size_t)(setup->passes * ROUNDS);
    struct timing *timings   = memory_allocate((size_t)list->count * sizeof(*timings));
    double        *seconds   = memory_allocate((size_t)list->count * count * sizeof(*seconds));
    status         result    = OK;
    for (int pass = 0; pass < setup->passes; pass++) {
        for (int32_t i = 0; i < list->count && !failed(&result); i++) {
            timings[i].seconds = &seconds[(size_t)i * count];
            timings[i].between = between;
            if (is_transfer(&list->samples[i]) == transfers) {
                result = measure_pass(&timings[i], &list->samples[i], setup);
            }
        }
    }
    for (int32_t i = 0; i < list->count && !failed(&result); i++) {
        if (is_transfer(&list->samples[i]) == transfers) {
            sum_up(&list->samples[i], &timings[i], setup);
        }
    }
    free(seconds);
    free(timings);
    return result;
}

status calibrate_steps(struct sample_list *list, const struct calibrate_setup *setup)
{
    struct emulation    emulation = {.request = setup->request,
                                     .backend = setup->backend,
                                     .run     = setup->run,
                                     .stages  = EMULATE_DISTINCT,
                                     .repeats = setup->steps};
    struct measured_ops ops;
    setup->comm->ops->barrier(setup->comm);
    status result = takes_part(setup) ? emulate(&emulation) : OK;
    emulate_list(&emulation, &ops);
    for (int32_t i = 0; i < list->count; i++) {
        struct sample         *sample = &list->samples[i];
        const struct quantity *own    = measured_find_key(&ops, &sample->key);
        if (!is_transfer(sample)) {
            sample->seconds =
                (struct quantity){.origin         = QUANTITY_MEASURED,
                                  .value          = largest(setup->comm, own != NULL ? own->value : 0.0),
                                  .spread_percent = largest(setup->comm, own != NULL ? own->spread_percent : 0.0)};
        }
    }
    measured_free(&ops);
    emulate_free(&emulation);
    return result;
}

// The product that takes about as long as a step computes from one transfer to the next, in the mean.
static const struct sample *choose_between(const struct sample_list *list)
{
    const struct sample *nearest   = NULL;
    double               computing = 0.0, transfers = 0.0;
    for (int32_t i = 0; i < list->count; i++) {
        const struct sample *sample = &list->samples[i];
        computing += is_transfer(sample) ? 0.0 : sample->seconds.value * (double)sample->count;
        transfers += is_transfer(sample) ? (double)sample->count : 0.0;
    }
    for (int32_t i = 0; i < list->count; i++) {
        const struct sample *sample = &list->samples[i];
        double               gap    = computing / transfers;
        if (sample->op.kind == OP_GEMM &&
            (nearest == NULL || fabs(sample->seconds.value - gap) < fabs(nearest->seconds.value - gap))) {
            nearest = sample;
        }
    }
    return nearest;
}

status calibrate_transfers(struct sample_list *list, const struct calibrate_setup *setup)
{
    const struct sample *between = choose_between(list);
    TRY(drills_measure(list, between, setup));
    return setup->backend->ops->is_device ? OK : disturbance_measure(list, between, setup);
}

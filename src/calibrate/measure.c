// SPDX-License-Identifier: MIT
// Times the ops of a job, in its steps and in microbenchmarks. Several passes over all microbenchmarks spread a
// temporary slowdown of the machine over all of them. On CPU ranks, where communication and compute share cores, also
// measures by how much each slows the other down.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/emulate.h"
#include "gswbench/op.h"
#include "gswbench/statistics.h"
#include "gswbench/terminal.h"
#include "internal.h"

static const double seconds_min = 1e-8;    // replaces a time difference that noise made negative

enum {
    ROUNDS              = 3,
    REPEATS_MIN         = 4,
    REPEATS_MAX         = 4096,
    DISTURB_ROUNDS      = 5,
    DISTURB_REPEATS_MAX = 64,
    COMPUTES_MAX        = 64
};

struct timing {
    // The compute op that runs between two repeats of a communication op, as in a training step; its time is
    // subtracted. NULL while a compute op is measured.
    const struct distinct_op *between;
    int32_t                   repeats;    // repeats of the op per round; 0: not chosen yet
    double                   *seconds;    // [passes * ROUNDS]: seconds per repeat in each round
    int                       rounds;     // completed rounds of all passes
};

static bool is_communication(const struct distinct_op *distinct)
{
    return op_is_communication((enum op_kind)distinct->op.kind);
}

// Returns whether this rank measures compute ops. A CPU rank does not if a lower rank is on its cores, because the cost
// model needs times on dedicated cores. The simulation adds the effect of sharing.
static bool takes_part(const struct calibrate_setup *setup)
{
    return setup->backend->ops->is_device || setup->has_cores;
}

// Runs the microbenchmark. Returns the seconds per repeat, or 0 if this rank does not measure the op.
static double run_if_measured(const struct microbenchmark *bench, const struct distinct_op *distinct,
                              const struct calibrate_setup *setup)
{
    return is_communication(distinct) || takes_part(setup) ? microbenchmark_run(bench) : 0.0;
}

// Chooses the number of repeats so that a round lasts round_seconds. The first run is a warm-up, in which memory is
// touched for the first time.
static status choose_repeats(struct timing *timing, const struct distinct_op *distinct,
                             const struct calibrate_setup *setup)
{
    struct microbenchmark bench  = {.repeats = REPEATS_MIN};
    status                result = microbenchmark_open(&bench, distinct, timing->between, setup);
    if (!failed(&result)) {
        run_if_measured(&bench, distinct, setup);
        double seconds  = comm_largest(setup->comm, run_if_measured(&bench, distinct, setup));
        timing->repeats = (int32_t)fmin(fmax(setup->round_seconds / seconds, REPEATS_MIN), REPEATS_MAX);
    }
    microbenchmark_close(&bench);
    return result;
}

// Runs ROUNDS rounds and stores the seconds per repeat. For a communication op, this is the difference to a round with
// only the compute op.
static void run_rounds(struct timing *timing, const struct microbenchmark *bench, const struct microbenchmark *alone,
                       const struct distinct_op *distinct, const struct calibrate_setup *setup)
{
    for (int i = 0; i < ROUNDS; i++) {
        double *seconds = &timing->seconds[timing->rounds++];
        setup->comm->ops->barrier(setup->comm);
        *seconds = run_if_measured(bench, distinct, setup);
        if (timing->between != NULL) {
            setup->comm->ops->barrier(setup->comm);
            *seconds -= run_if_measured(alone, distinct, setup);
        }
    }
}

static status measure_pass(struct timing *timing, const struct distinct_op *distinct,
                           const struct calibrate_setup *setup)
{
    if (timing->repeats == 0) {
        TRY(choose_repeats(timing, distinct, setup));
    }
    struct microbenchmark bench = {.repeats = timing->repeats}, alone = bench;
    status                result = microbenchmark_open(&bench, distinct, timing->between, setup);
    if (!failed(&result) && timing->between != NULL) {
        result = microbenchmark_open_alone(&alone, timing->between, setup);
    }
    if (!failed(&result)) {
        run_if_measured(&bench, distinct, setup);
        run_rounds(timing, &bench, &alone, distinct, setup);
    }
    microbenchmark_close(&bench);
    microbenchmark_close(&alone);
    return result;
}

static void set_seconds(struct distinct_op *distinct, const struct timing *timing, const struct calibrate_setup *setup)
{
    double *seconds = timing->seconds;
    int     count   = timing->rounds;
    statistics_sort(seconds, count);
    double median = fmax(seconds[count / 2], seconds_min), range = seconds[count * 3 / 4] - seconds[count / 4];
    distinct->seconds = (struct quantity){.origin         = QUANTITY_MEASURED,
                                          .value          = comm_largest(setup->comm, median),
                                          .spread_percent = comm_largest(setup->comm, 100.0 * range / 1.349 / median)};
}

status microbenchmarks_measure(struct distinct_ops *list, const struct distinct_op *between,
                               const struct calibrate_setup *setup)
{
    bool           communications = between != NULL;
    size_t         count          = (size_t)(setup->passes * ROUNDS);
    struct timing *timings        = memory_allocate((size_t)list->count * sizeof(*timings));
    double        *seconds        = memory_allocate((size_t)list->count * count * sizeof(*seconds));
    status         result         = OK;

    struct progress progress = progress_begin(communications ? "rounds of communication" : "rounds of ops",
                                              (int64_t)setup->passes * list->count);
    for (int pass = 0; pass < setup->passes; pass++) {
        for (int32_t i = 0; i < list->count && !failed(&result); i++) {
            if (setup->comm->topology.rank == 0) {
                progress_show(&progress, (int64_t)pass * list->count + i, op_name((enum op_kind)list->ops[i].op.kind));
            }
            timings[i].seconds = &seconds[(size_t)i * count];
            timings[i].between = between;
            if (is_communication(&list->ops[i]) == communications) {
                result = measure_pass(&timings[i], &list->ops[i], setup);
            }
        }
    }
    progress_clear(&progress);
    for (int32_t i = 0; i < list->count && !failed(&result); i++) {
        if (is_communication(&list->ops[i]) == communications) {
            set_seconds(&list->ops[i], &timings[i], setup);
        }
    }
    free(seconds);
    free(timings);
    return result;
}

status calibrate_steps(struct distinct_ops *list, const struct calibrate_setup *setup)
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
        struct distinct_op    *distinct = &list->ops[i];
        const struct quantity *own      = measured_find_key(&ops, &distinct->key);
        if (!is_communication(distinct)) {
            distinct->seconds =
                (struct quantity){.origin         = QUANTITY_MEASURED,
                                  .value          = comm_largest(setup->comm, own != NULL ? own->value : 0.0),
                                  .spread_percent = comm_largest(setup->comm, own != NULL ? own->spread_percent : 0.0)};
        }
    }
    measured_free(&ops);
    emulate_free(&emulation);
    return result;
}

// Chooses the GEMM that runs between two communication ops in microbenchmarks. Its time is nearest to the mean compute
// time between two communication ops of the job's step.
static const struct distinct_op *choose_between(const struct distinct_ops *list)
{
    const struct distinct_op *nearest   = NULL;
    double                    computing = 0.0, communications = 0.0;
    for (int32_t i = 0; i < list->count; i++) {
        const struct distinct_op *distinct = &list->ops[i];
        computing += is_communication(distinct) ? 0.0 : distinct->seconds.value * (double)distinct->count;
        communications += is_communication(distinct) ? (double)distinct->count : 0.0;
    }
    for (int32_t i = 0; i < list->count; i++) {
        const struct distinct_op *distinct = &list->ops[i];
        double                    gap      = computing / communications;
        if (distinct->op.kind == OP_GEMM &&
            (nearest == NULL || fabs(distinct->seconds.value - gap) < fabs(nearest->seconds.value - gap))) {
            nearest = distinct;
        }
    }
    return nearest;
}

// Adds the delays of those communication ops of a traced step that end before the last compute op. A delay is the time
// of the op minus `seconds`, its time without compute. The op starts when its dependency and the previous op of its
// stream have ended.
void disturbance_add(struct disturbance *sum, const struct plan *plan, const struct op_time *times, double seconds)
{
    double ended[STREAM_COUNT] = {0.0}, covered = 0.0, computed = 0.0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        computed = plan->ops[i].stream == STREAM_COMPUTE ? times[i].end : computed;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->stream != STREAM_COMPUTE) {
            double begin = fmax(times[op->wait[0]].end, ended[op->stream]), end = times[i].end;
            bool   is_whole = end <= computed;
            sum->communications += is_whole;
            sum->delay_seconds += is_whole ? end - begin - seconds : 0.0;
            sum->busy_seconds += fmax(fmin(end, computed) - fmax(begin, covered), 0.0);
            covered = ended[op->stream] = end;
        }
    }
    sum->lost_seconds += computed - times[0].begin;
}

static void sum_ranks(struct disturbance *sum, struct comm *comm)
{
    struct disturbance *all = comm_gather(comm, sum, sizeof(*all));
    *sum                    = (struct disturbance){.communications = 0.0};
    for (int i = 0; i < comm->topology.ranks; i++) {
        sum->delay_seconds += all[i].delay_seconds;
        sum->communications += all[i].communications;
        sum->lost_seconds += all[i].lost_seconds;
        sum->busy_seconds += all[i].busy_seconds;
    }
    free(all);
}

// Alternates rounds with and without communication, and adds their times. The first round is a warm-up and does not
// count.
static void disturb_rounds(struct disturbance *sum, const struct microbenchmark *bench,
                           const struct microbenchmark *alone, double seconds, struct comm *comm)
{
    struct op_time *times = memory_allocate((size_t)bench->plan.op_count * sizeof(*times));
    step_trace(bench->step, times);
    step_trace(alone->step, times);    // `alone` has fewer ops than `bench`, so its times fit in the array
    for (int i = 0; i <= DISTURB_ROUNDS; i++) {
        comm->ops->barrier(comm);
        step_run(alone->step);
        double alone_seconds = times[alone->plan.op_count - 1].end - times[0].begin;
        comm->ops->barrier(comm);
        step_run(bench->step);
        if (i > 0) {
            disturbance_add(sum, &bench->plan, times, seconds);
            sum->lost_seconds -= alone_seconds;
        }
    }
    free(times);
}

// Measures delay and contention of one communication op. It overlaps with compute ops that together take at least as
// long, but at most COMPUTES_MAX. A step repeats the op and its compute ops for about three times round_seconds.
static status measure_disturbance(struct distinct_op *distinct, const struct distinct_op *between,
                                  const struct calibrate_setup *setup)
{
    struct disturbance    sum   = {.communications = 0.0};
    struct microbenchmark bench = {
        .computes = (int32_t)fmin(ceil(distinct->seconds.value / between->seconds.value), COMPUTES_MAX)};
    double seconds = bench.computes * between->seconds.value;
    bench.repeats  = (int32_t)fmin(fmax(3.0 * setup->round_seconds / seconds, REPEATS_MIN), DISTURB_REPEATS_MAX);
    struct microbenchmark alone  = {.repeats = bench.repeats * bench.computes};
    status                result = microbenchmark_open(&bench, distinct, between, setup);
    if (!failed(&result)) {
        result = microbenchmark_open_alone(&alone, between, setup);
    }
    if (!failed(&result)) {
        disturb_rounds(&sum, &bench, &alone, distinct->seconds.value, setup->comm);
        sum_ranks(&sum, setup->comm);
        distinct->delay_seconds = sum.communications > 0.0 ? fmax(sum.delay_seconds / sum.communications, 0.0) : 0.0;
        distinct->contention    = sum.busy_seconds > 0.0 ? fmax(sum.lost_seconds / sum.busy_seconds, 0.0) : 0.0;
    }
    microbenchmark_close(&bench);
    microbenchmark_close(&alone);
    return result;
}

status calibrate_communications(struct distinct_ops *list, const struct calibrate_setup *setup)
{
    const struct distinct_op *between = choose_between(list);
    TRY(microbenchmarks_measure(list, between, setup));
    if (setup->backend->ops->is_device) {
        return OK;
    }
    // On CPU ranks, also measures delay and contention of every communication op. Collective.
    for (int32_t i = 0; i < list->count; i++) {
        if (is_communication(&list->ops[i])) {
            TRY(measure_disturbance(&list->ops[i], between, setup));
        }
    }
    return OK;
}

// SPDX-License-Identifier: MIT
// Mutual slowdown of transfers and compute that share cores, by a microbenchmark whose compute stream never waits.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

enum { ROUNDS = 5, REPEATS_MIN = 4, REPEATS_MAX = 64, COMPUTES_MAX = 64 };

// The delay counts transfers that end while the rank computes. A transfer starts when its dependency and the previous
// transfer of its lane have ended.
void disturbance_add(struct disturbance *sum, const struct plan *plan, const struct op_time *times, double seconds)
{
    double ended[LANE_COUNT] = {0.0}, covered = 0.0, computed = 0.0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        computed = plan->ops[i].lane == LANE_COMPUTE ? times[i].end : computed;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->lane != LANE_COMPUTE) {
            double begin = fmax(times[op->wait[0]].end, ended[op->lane]), end = times[i].end;
            bool   is_whole = end <= computed;
            sum->transfers += is_whole;
            sum->delay_seconds += is_whole ? end - begin - seconds : 0.0;
            sum->busy_seconds += fmax(fmin(end, computed) - fmax(begin, covered), 0.0);
            covered = ended[op->lane] = end;
        }
    }
    sum->lost_seconds += computed - times[0].begin;
}

static void sum_ranks(struct disturbance *sum, struct comm *comm)
{
    struct disturbance *all = comm_gather(comm, sum, sizeof(*all));
    *sum                    = (struct disturbance){.transfers = 0.0};
    for (int i = 0; i < comm->topology.ranks; i++) {
        sum->delay_seconds += all[i].delay_seconds;
        sum->transfers += all[i].transfers;
        sum->lost_seconds += all[i].lost_seconds;
        sum->busy_seconds += all[i].busy_seconds;
    }
    free(all);
}

// Alternates with rounds of compute alone. The first run is a warm-up: it touches the memory for the first time.
static void run_rounds(struct disturbance *sum, const struct microbenchmark *bench, const struct microbenchmark *alone,
                       double seconds, struct comm *comm)
{
    struct op_time *times = memory_allocate((size_t)bench->plan.op_count * sizeof(*times));
    step_trace(bench->step, times);
    step_trace(alone->step, times);    // has fewer ops
    for (int i = 0; i <= ROUNDS; i++) {
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

// Compute lasts three rounds, and no shorter than the transfers.
static status measure(struct distinct_op *distinct, const struct distinct_op *between,
                      const struct calibrate_setup *setup)
{
    struct disturbance    sum   = {.transfers = 0.0};
    struct microbenchmark bench = {
        .computes = (int32_t)fmin(ceil(distinct->seconds.value / between->seconds.value), COMPUTES_MAX)};
    double seconds               = bench.computes * between->seconds.value;
    bench.repeats                = (int32_t)fmin(fmax(3.0 * setup->round_seconds / seconds, REPEATS_MIN), REPEATS_MAX);
    struct microbenchmark alone  = {.repeats = bench.repeats * bench.computes};
    status                result = microbenchmark_open(&bench, distinct, between, setup);
    if (!failed(&result)) {
        result = microbenchmark_open_alone(&alone, between, setup);
    }
    if (!failed(&result)) {
        run_rounds(&sum, &bench, &alone, distinct->seconds.value, setup->comm);
        sum_ranks(&sum, setup->comm);
        distinct->delay_seconds = sum.transfers > 0.0 ? fmax(sum.delay_seconds / sum.transfers, 0.0) : 0.0;
        distinct->contention    = sum.busy_seconds > 0.0 ? fmax(sum.lost_seconds / sum.busy_seconds, 0.0) : 0.0;
    }
    microbenchmark_close(&bench);
    microbenchmark_close(&alone);
    return result;
}

status disturbance_measure(struct distinct_ops *list, const struct distinct_op *between,
                           const struct calibrate_setup *setup)
{
    status result = OK;
    for (int32_t i = 0; i < list->count && !failed(&result); i++) {
        if (op_is_transfer((enum op_kind)list->ops[i].op.kind)) {
            result = measure(&list->ops[i], between, setup);
        }
    }
    return result;
}

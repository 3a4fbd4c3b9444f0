// SPDX-License-Identifier: MIT
// Measures how fast devices compute the job's largest GEMMs and copy device memory. The result of a rank is its best
// measurement. Ranks that share cores measure one after the other; their result for a GEMM is a median (struct turns).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/statistics.h"
#include "internal.h"

void turns_open(struct turns *turns, int64_t ranks, int64_t probes)
{
    *turns =
        (struct turns){.ranks = ranks, .probes = probes, .level = memory_allocate((size_t)probes * sizeof(double))};
}

void turns_close(struct turns *turns)
{
    free(turns->shares);
    free(turns->level);
    *turns = (struct turns){.ranks = 0};
}

void turns_add(struct turns *turns, const double *rates, int64_t stride)
{
    int64_t rounds  = turns->rounds++;
    turns->shares   = memory_resize(turns->shares, (size_t)(turns->rounds * turns->ranks) * sizeof(*turns->shares));
    double *medians = memory_allocate((size_t)turns->probes * sizeof(double));
    double *own =
        memory_allocate((size_t)(turns->probes > turns->ranks ? turns->probes : turns->ranks) * sizeof(double));
    for (int64_t probe = 0; probe < turns->probes; probe++) {
        for (int64_t rank = 0; rank < turns->ranks; rank++) {
            own[rank] = rates[rank * stride + probe];
        }
        medians[probe]      = statistics_median(own, turns->ranks);
        turns->level[probe] = fmax(turns->level[probe], medians[probe]);
    }
    for (int64_t rank = 0; rank < turns->ranks; rank++) {
        for (int64_t probe = 0; probe < turns->probes; probe++) {
            own[probe] = rates[rank * stride + probe] / medians[probe];
        }
        turns->shares[rounds * turns->ranks + rank] = statistics_median(own, turns->probes);
    }
    free(medians);
    free(own);
}

// Returns the rank's relative rate in each round: its rate divided by the median rate of all ranks, as median over the
// probes. The caller frees the array.
static double *copy_shares(const struct turns *turns, int64_t rank)
{
    double *own = memory_allocate((size_t)(turns->rounds + 1) * sizeof(*own));
    for (int64_t round = 0; round < turns->rounds; round++) {
        own[round] = turns->shares[round * turns->ranks + rank];
    }
    return own;
}

double turns_rate(const struct turns *turns, int64_t rank, int64_t probe)
{
    double *own = copy_shares(turns, rank), share = statistics_median(own, turns->rounds);
    free(own);
    return turns->level[probe] * share;
}

// Uses the confidence interval of the median and not the median absolute deviation. If another program slows down some
// rounds, most shares are still equal. The deviation is then near 0, but the interval includes slow rounds.
double turns_error(const struct turns *turns, double slower)
{
    const double per_error = 1.96;    // standard errors to either side of a median in its 95 % confidence interval
    double       error     = 0.0;
    for (int64_t rank = 0; rank < turns->ranks; rank++) {
        double *own = copy_shares(turns, rank), width = statistics_half_width(own, turns->rounds);
        double  slowdown = 100.0 * (1.0 / statistics_median(own, turns->rounds) - 1.0);    // NaN before the first round
        if (isnan(slowdown) || slowdown > slower) {
            error = fmax(error, isnan(width) ? INFINITY : 100.0 * width / per_error);
        }
        free(own);
    }
    return error;
}

// BATCH: rounds per batch, the minimum for a confidence interval. DEVIATIONS: see set_shared_limits.
enum { GEMMS = 3, PROBES = GEMMS + 1, BATCH = 6, DEVIATIONS = 3 };
const double        flight_device_limit = 5.0;     // tolerated slowdown in percent
static const double least_limit         = 3.5;     // percent by which equal devices differ
static const double shared_limit        = 6.0;     // percent: tolerated slowdown of GEMMs on ranks that share cores
static const double shared_error        = 1.0;     // percent: a larger standard error of slow ranks raises shared_limit
static const double run_seconds         = 1e-3;    // minimum duration of a timed run on the host backend
static const double event_seconds       = 5e-3;    // the same on a device, where CUDA events time the run

struct probe {
    const struct distinct_op *op;
    double                    work;    // FLOPs of a GEMM, or bytes of a copy
    char                      name[OP_KEY_BYTES];
    struct microbenchmark     bench;
    struct op_time *times;    // times of single ops on the host backend; NULL on a device, where only the run is timed
    // shortest time of the op in all rounds (of a GEMM on ranks that take turns, in this round); 0: not measured yet
    double best;
};

struct devices {
    struct distinct_ops copy;    // a list with one op, the copy
    struct probe        probes[PROBES];
    int                 count, gemms;    // number of probes, and of GEMMs, which come first
    int64_t             first_class;
    int64_t             rounds;    // completed rounds
    double              turn_seconds;
    struct turns        turns;    // GEMM speeds of ranks that share cores
    struct step_fault   fault;
};

static double total_flops(const struct distinct_op *distinct)
{
    return distinct->op.kind == OP_GEMM ? op_flops(&distinct->op) * (double)distinct->count : 0.0;
}

// Picks the GEMM shapes with the most FLOPs per step, largest first. Of shapes with equally many FLOPs, such as those
// of a forward GEMM and its backward GEMMs, it picks only the first.
static void choose_gemms(struct devices *devices, const struct distinct_ops *list)
{
    double below = INFINITY;
    for (int i = 0; i < GEMMS; i++) {
        const struct distinct_op *maximum = NULL;
        for (int32_t j = 0; j < list->count; j++) {
            double flops = total_flops(&list->ops[j]);
            if (flops > 0.0 && flops < below && (maximum == NULL || flops > total_flops(maximum))) {
                maximum = &list->ops[j];
            }
        }
        if (maximum != NULL) {
            below                             = total_flops(maximum);
            devices->probes[devices->count++] = (struct probe){.op = maximum, .work = op_flops(&maximum->op)};
        }
    }
    devices->gemms = devices->count;
}

// Adds a copy of 1 MiB per SM, counted on the device with the fewest SMs. On an H100 this exceeds the L2 cache several
// times, so that the copy measures memory.
static void choose_copy(struct devices *devices, struct flight *flight)
{
    const enum format formats[] = {FORMAT_BF16, FORMAT_BF16};
    struct backend   *backend   = &flight->environment.backend;
    int64_t           elements  = 1 << 20;
    if (backend->ops->is_device) {
        elements = (int64_t)comm_smallest(flight->comm, backend->ops->processors(backend)) << 19;
    }
    distinct_add_probe(&devices->copy, (struct op){.kind = OP_CAST, .shape.elements = {.elements = elements}}, formats,
                       2);
    devices->probes[devices->count++] = (struct probe){.op = &devices->copy.ops[0], .work = 4.0 * (double)elements};
}

static void close_probe(struct probe *probe)
{
    microbenchmark_close(&probe->bench);
    free(probe->times);
    probe->times = NULL;
}

// Opens the probe with `repeats` ops per run, and closes it first if it is open. Collective.
static status open_probe(struct flight *flight, struct probe *probe, int32_t repeats, const struct step_fault *fault)
{
    close_probe(probe);
    flight_run(flight, NULL, NULL, "opening %s", probe->name);
    probe->bench  = (struct microbenchmark){.repeats = repeats};
    status opened = microbenchmark_open(&probe->bench, probe->op, NULL, &flight->setup);
    if (!failed(&opened)) {
        step_set_fault(probe->bench.step, fault != NULL && fault->kind == FAULT_SLOW ? fault : NULL);
        if (!flight->environment.backend.ops->is_device) {
            probe->times = memory_allocate((size_t)probe->bench.plan.op_count * sizeof(*probe->times));
            step_trace(probe->bench.step, probe->times);
        }
    }
    flight_meet(flight, "opening a probe");
    return comm_agree(flight->comm, opened);
}

// Runs the probe and updates its shortest time. On the host backend this is the time of a single op and not of a whole
// run, because other processes interrupt most runs but only few ops.
static void run_probe(struct flight *flight, struct probe *probe)
{
    flight_run(flight, NULL, NULL, "%s", probe->name);
    double seconds = microbenchmark_run(&probe->bench);
    for (int32_t i = 0; probe->times != NULL && i < probe->bench.plan.op_count; i++) {
        seconds = fmin(seconds, probe->times[i].end - probe->times[i].begin);
    }
    probe->best = probe->best == 0.0 ? seconds : fmin(probe->best, seconds);
}

// Chooses the number of ops per run, so that a run is long enough to time. Adds RUNS_PER_TURN runs to turn_seconds, the
// time in which one of the ranks that share cores measures. The first run is not timed, because it has page faults.
static status prepare_probe(struct flight *flight, struct devices *devices, struct probe *probe)
{
    enum { REPEATS_MAX = 256, RUNS_PER_TURN = 4 };
    double lasts = flight->environment.backend.ops->is_device ? event_seconds : run_seconds;
    TRY(open_probe(flight, probe, 1, NULL));
    flight_run(flight, NULL, NULL, "%s", probe->name);
    microbenchmark_run(&probe->bench);
    double own = microbenchmark_run(&probe->bench);
    flight_meet(flight, probe->name);
    double  seconds = comm_smallest(flight->comm, own);
    int32_t repeats = (int32_t)fmin(fmax(lasts / seconds, 1.0), REPEATS_MAX);
    devices->turn_seconds += RUNS_PER_TURN * repeats * seconds;
    return open_probe(flight, probe, repeats, &devices->fault);
}

static void add_class(struct flight *flight, struct probe *probe)
{
    bool is_gemm = probe->op->op.kind == OP_GEMM;
    if (is_gemm) {
        op_key_print(&probe->op->key, probe->name);
    } else {
        snprintf(probe->name, sizeof(probe->name), "device memory copy");
    }
    double                  limit = !flight->takes_turns ? flight_device_limit : is_gemm ? shared_limit : 0.0;
    struct preflight_class *added =
        flight_add_class(flight, PREFLIGHT_DEVICE, is_gemm ? "FLOP/s" : "bytes/s", limit, probe->name);
    const struct quantity *known = measured_find_key(&flight->measured, &probe->op->key);
    added->profile               = known != NULL ? probe->work / known->value : NAN;
}

// Sets the limits of ranks that share cores. If a rank is slower than shared_limit and the standard error of its GEMM
// speed exceeds shared_error, the limit of GEMMs grows by DEVIATIONS times the excess. Copies have no limit, because
// their speed depends on the physical pages that a process got.
static void set_shared_limits(struct flight *flight, const struct devices *devices)
{
    double excess = fmax(turns_error(&devices->turns, shared_limit) - shared_error, 0.0);
    for (int i = 0; i < devices->count; i++) {
        struct preflight_class *value_class = &flight->report.classes[devices->first_class + i];
        const size_t            size        = sizeof(value_class->note);
        value_class->limit_percent          = 0.0;
        if (i >= devices->gemms) {
            snprintf(value_class->note, size, "no limit applied: %s", flight->sharing);
        } else if (devices->rounds < BATCH) {
            snprintf(value_class->note, size, "no limit applied: %d of %d rounds within the time limit",
                     (int)devices->rounds, BATCH);
        } else {
            value_class->limit_percent = shared_limit + DEVIATIONS * excess;
            snprintf(value_class->note, size, "limit %.1f %%: %s", value_class->limit_percent, flight->sharing);
        }
    }
}

static void run_probes(struct flight *flight, struct devices *devices, const struct flight_turn *turn)
{
    // No round of probes starts in the last 40 % of this rank's time slot, so that the last round ends within the slot.
    double until = turn->begin + (turn->end - turn->begin) * 0.6;
    for (int i = 0; i < devices->gemms && flight->takes_turns; i++) {
        devices->probes[i].best = 0.0;
    }
    do {
        for (int i = 0; i < devices->count; i++) {
            run_probe(flight, &devices->probes[i]);
        }
    } while (clock_seconds() < until);
}

void flight_fit_limit(struct preflight_class *value_class)
{
    if (value_class->value_count < JUDGE_VALUES) {
        return;
    }
    double spread              = judge_spread(value_class);
    value_class->limit_percent = fmin(flight_device_limit, fmax(least_limit, JUDGE_DEVIATIONS * spread));
    snprintf(value_class->note, sizeof(value_class->note), "limit %.1f %%: devices differ by %.1f %%",
             value_class->limit_percent, spread);
}

// Stores the rates of all ranks in the report, one class per probe, and sets the tolerances (limit_percent).
static void gather_rates(struct flight *flight, struct devices *devices)
{
    double own[PROBES] = {0.0};
    for (int i = 0; i < devices->count; i++) {
        own[i] = devices->probes[i].work / devices->probes[i].best;
    }
    double *rates = comm_gather(flight->comm, own, (size_t)devices->count * sizeof(*rates));
    if (flight->takes_turns) {
        turns_add(&devices->turns, rates, devices->count);
    }
    for (int rank = 0; rank < flight->comm->topology.ranks; rank++) {
        for (int i = 0; i < devices->count; i++) {
            bool   is_shared = flight->takes_turns && i < devices->gemms;
            double rate      = is_shared ? turns_rate(&devices->turns, rank, i) : rates[rank * devices->count + i];
            flight_set_value(&flight->report.classes[devices->first_class + i], rank, rank, rate);
        }
    }
    if (flight->takes_turns) {
        set_shared_limits(flight, devices);
    }
    for (int i = 0; i < devices->count && !flight->takes_turns; i++) {
        flight_fit_limit(&flight->report.classes[devices->first_class + i]);
    }
    free(rates);
}

static status run_round(struct flight *flight, void *state)
{
    struct devices *devices    = state;
    bool           *takes_part = memory_allocate((size_t)flight->report.rank_count * sizeof(*takes_part));
    // In the first BATCH rounds all ranks measure. In later rounds only outliers measure again, which may clear them.
    // Ranks that share cores always measure, because their shares in a round are relative to the other ranks.
    for (int64_t rank = 0; rank < flight->report.rank_count; rank++) {
        takes_part[rank] =
            flight->takes_turns || devices->rounds < BATCH || flight_is_outlier(flight, devices->first_class, rank);
    }
    const struct flight_turn turn = flight_take_turn(flight, takes_part, devices->turn_seconds);
    free(takes_part);
    if (turn.takes_part) {
        run_probes(flight, devices, &turn);
    }
    flight_meet(flight, "GEMMs and copies");
    clock_sleep_until(turn.all);
    devices->rounds++;
    gather_rates(flight, devices);
    return OK;
}

static bool has_settled(const void *state)
{
    const struct devices *devices = state;
    return turns_error(&devices->turns, -INFINITY) <= shared_error;
}

static status measure(struct flight *flight, struct devices *devices)
{
    for (int i = 0; i < devices->count; i++) {
        add_class(flight, &devices->probes[i]);
        TRY(prepare_probe(flight, devices, &devices->probes[i]));
    }
    if (flight->takes_turns) {
        turns_open(&devices->turns, flight->report.rank_count, devices->gemms);
    }
    const struct flight_series series = {.run         = run_round,
                                         .has_settled = has_settled,
                                         .state       = devices,
                                         .batch       = BATCH,
                                         .first_class = devices->first_class,
                                         .share       = 0.45};
    return flight_repeat(flight, &series);
}

status flight_measure_devices(struct flight *flight)
{
    struct devices devices = {.first_class = flight->report.class_count, .fault = flight->fault};
    devices.fault.op = devices.fault.tensor = -1;    // the probe's plan has other op and tensor indices than the job's
    choose_gemms(&devices, &flight->list);
    choose_copy(&devices, flight);
    status result = measure(flight, &devices);
    for (int i = 0; i < devices.count; i++) {
        close_probe(&devices.probes[i]);
    }
    calibrate_free(&devices.copy);
    turns_close(&devices.turns);
    return result;
}

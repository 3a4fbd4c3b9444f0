// SPDX-License-Identifier: MIT
// Judges how reliable the step times of a run are: by variation, drift, oversubscribed cores, and load of other
// processes. Each criterion has two limits. A value above the first limit adds a note; above the second, the run is
// DEGRADED. It is not INVALID, because its numbers are right. Also reports ranks that compute longer than other ranks
// with the same work (a class). docs/method.md explains the limits.
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/text.h"
#include "internal.h"

// Minimum number of measured steps. Drift can be computed from ten steps on, and the cv (standard deviation / mean) of
// ten steps has an error of 25 %.
enum { STEPS_MIN = 10 };

// Limits of each measure of quality. docs/method.md has the sources and measurements.
static const struct limit {
    const char *id;
    double      noted, degraded;    // a value above `noted` adds a note, above `degraded` the run is DEGRADED
    double      scale;
    const char *unit, *remedy;
} limits[QUALITY_COUNT] = {
    // With a cv (standard deviation / mean) of 2 %, the median of 40 steps is known to 0.8 %; with 10 %, to 4 %.
    // gswbench compare reports changes from 1 % on, and SuperBench calls a node defective that is 5 % slower.
    [QUALITY_VARIATION] = {"unsteady", 0.02, 0.10, 100, " %", "use a quieter machine, or more steps (--until)"},
    // Drift over the whole run has the limits of a comparison, 1 % and 5 %: with more drift the result depends on when
    // the steps were measured.
    [QUALITY_DRIFT] = {"drift", 0.01, 0.05, 100, " %", "use more warm-up steps (--warmup), or find the cause"},
    // Threads per core. On 2 cores a step of the config tiny-llama took 6 % longer with 2 threads per core than with 1,
    // 23 % longer with 4, and 2.6 times as long with 8.
    [QUALITY_SHARING] = {"oversubscribed", 1, 2, 1, " per core", "step times mean nothing"},
    // Share of the processors that other processes use. If the ranks use all processors, one other busy program takes a
    // third of 2 processors, and 6 % of 16.
    [QUALITY_FOREIGN] = {"foreign-load", 0.02, 0.10, 100, " %", "stop them, or use other cores"},
};

void result_judge(struct result *result, enum quality quality, double value, int64_t rank, const char *format, ...)
{
    const struct limit  *limit  = &limits[quality];
    bool                 is_far = value > limit->degraded;
    struct result_reason reason = {.verdict = is_far ? VERDICT_DEGRADED : VERDICT_VALID, .rank = rank, .step = -1};
    char                 what[160];
    va_list              arguments;
    if (!(value > limit->noted)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    text_copy(reason.id, sizeof(reason.id), limit->id);
    result_note(result, reason, "%s, above %g%s: %s", what, limit->scale * (is_far ? limit->degraded : limit->noted),
                limit->unit, limit->remedy);
}

// Limits for the excess of a rank's compute time over the median of its class (the ranks with the same work). A rank is
// slow only if the lower confidence bound of its excess is also above excess_minimum.
static const double excess_noted = 0.03, excess_degraded = 0.05, excess_minimum = 0.01;

enum { NAMED_MAX = 8 };    // maximum number of slow ranks that are named, each in one reason

static bool is_slow(const struct result_rank *rank)
{
    return rank->excess >= excess_noted && rank->excess_low > excess_minimum;
}

const char *result_rank_gpu(const struct result *result, int64_t rank)
{
    for (int64_t i = 0; i < result->observation_count; i++) {
        if (result->observations[i].rank == rank) {
            return result->observations[i].uuid;
        }
    }
    return "";
}

const char *result_name_rank(const struct result *result, int64_t rank, char *text, size_t bytes)
{
    const char *gpu  = result_rank_gpu(result, rank);
    const char *host = rank >= 0 && rank < result->rank_count ? result->ranks[rank].host : "?";
    snprintf(text, bytes, "rank %" PRId64 " (%.32s%s%.48s)", rank, host, gpu[0] != '\0' ? ", " : "", gpu);
    return text;
}

static void add_reason(struct result *result, const struct result_rank *rank, int64_t others)
{
    bool                 is_far = rank->excess >= excess_degraded;
    struct result_reason reason = {
        .verdict = is_far ? VERDICT_DEGRADED : VERDICT_VALID, .id = "slow-rank", .rank = rank->rank, .step = -1};
    char    name[128], more[48] = "";
    int64_t count = 0;
    for (int64_t i = 0; i < result->rank_count; i++) {
        count += result->ranks[i].class == rank->class;
    }
    if (others > 0) {
        snprintf(more, sizeof(more), "; %" PRId64 " more are slow", others);
    }
    result_note(result, reason,
                "%s computes %.1f %% longer than the median of the %" PRId64
                " ranks with the same work, at least %.1f %%%s",
                result_name_rank(result, rank->rank, name, sizeof(name)), 100 * rank->excess, count,
                100 * rank->excess_low, more);
}

// Returns the slow rank after `before` (NULL: the first), in order of falling excess, then of rank. NULL: none is left.
static const struct result_rank *find_next(const struct result *result, const struct result_rank *before)
{
    const struct result_rank *next = NULL;
    for (int64_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        bool                      is_later =
            before == NULL || rank->excess < before->excess || (rank->excess == before->excess && rank > before);
        if (is_slow(rank) && is_later && (next == NULL || rank->excess > next->excess)) {
            next = rank;
        }
    }
    return next;
}

static void check_ranks(struct result *result)
{
    const char *slowed_by = result_slowed_by(result);
    int64_t     slow      = 0;
    if (slowed_by != NULL && strcmp(slowed_by, RESULT_FAULT) != 0) {
        return;
    }
    for (int64_t i = 0; i < result->rank_count; i++) {
        slow += is_slow(&result->ranks[i]);
    }
    const struct result_rank *rank = NULL;
    for (int64_t named = 1; named <= slow && named <= NAMED_MAX; named++) {
        rank = find_next(result, rank);
        add_reason(result, rank, named == NAMED_MAX ? slow - named : 0);
    }
}

static double foreign_share(const struct result_rank *rank)
{
    return rank->local_rank == 0 ? rank->foreign / (double)rank->processors : NAN;
}

// Reports the host on which other processes used the largest share of the cores.
static void check_foreign_load(struct result *result)
{
    const struct result_rank *worst = NULL;
    for (int64_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        if (foreign_share(rank) > (worst != NULL ? foreign_share(worst) : 0)) {
            worst = rank;
        }
    }
    if (worst != NULL) {
        result_judge(result, QUALITY_FOREIGN, foreign_share(worst), worst->rank,
                     "%s: other processes used %.2f of %" PRId64 " cores during the measured steps (%.1f %%)",
                     worst->host, worst->foreign, worst->processors, 100 * foreign_share(worst));
    }
}

// Compares the variation of step times with public runs. Only for GPUs, because all public runs used GPUs.
static void check_spread(struct result *result)
{
    const struct statistics *step   = &result->figures.step;
    double                   spread = step->p95 / step->median;
    struct step_spread public       = statistics_public_spread(result->mesh.world, step->median);
    struct result_reason reason     = {.verdict = VERDICT_VALID, .id = "uneven", .rank = -1, .step = -1};
    if (strcmp(result->backend, "cuda") == 0 && spread > public.largest) {
        result_note(result, reason,
                    "p95 of the steps is %.1f %% above the median; in public runs of this size at most %.1f %%, mostly "
                    "%.1f %%: compare the slow steps with the network and the input",
                    100 * (spread - 1), 100 * (public.largest - 1), 100 * (public.typical - 1));
    }
}

void quality_check(struct result *result)
{
    const struct statistics *step = &result->figures.step;
    check_ranks(result);
    if (!result_is_right(result)) {
        return;
    }
    if (step->count < STEPS_MIN) {
        result_note(result,
                    (struct result_reason){.verdict = VERDICT_DEGRADED, .id = "few-steps", .rank = -1, .step = -1},
                    "%" PRId64 " measured step%s: too few to judge their spread; measure %d or more (--steps)",
                    step->count, step->count == 1 ? "" : "s", STEPS_MIN);
        return;
    }
    if (result_slowed_by(result) != NULL) {
        return;
    }
    result_judge(result, QUALITY_VARIATION, step->variation, -1, "cv %.2f %% of %" PRId64 " steps",
                 100 * step->variation, step->count);
    result_judge(result, QUALITY_DRIFT, fabs(step->trend), -1,
                 "steps become %s by at least %.1f %% over the %" PRId64 " measured ones",
                 step->trend > 0 ? "slower" : "faster", 100 * fabs(step->trend), step->count);
    check_spread(result);
    check_foreign_load(result);
}

// SPDX-License-Identifier: MIT
// Judges how reliable the step times of a run are. A throttled or failing GPU, variation, drift, oversubscribed cores
// and load of other processes leave its numbers right, so they add notes or make the run DEGRADED, but never INVALID.
// Most criteria have two limits, for a note and for DEGRADED. Also reports ranks that compute longer than other ranks
// with the same work (a class). docs/method.md has the limits and their sources.
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/statistics.h"
#include "gswbench/text.h"
#include "internal.h"

// Maximum number of ranks that are named for one kind of fault. A check that only adds notes names 1.
enum { NAMED_MAX = 8 };

static const double share_min = 0.95;    // a gauge below this share of the median over equal GPUs is a fault

// Reference values over the GPUs of the job that have the same name.
struct kind {
    const char *name;
    struct {
        int64_t ranks;    // number of ranks that report this gauge
        double  median;
    } gauges[GAUGE_COUNT];
    double links;    // maximum number of active NVLinks of one of these GPUs
};

struct suspect {
    const struct observation *observation;
    const struct kind        *kind;
    bool                      others_known;    // the GPU of at least one rank was observed for the whole run
    int64_t                   what;            // index of the throttle, counter or gauge that is checked
};

// Returns whether the GPU has the fault, and writes a description of it to text.
typedef bool find_fault(const struct suspect *suspect, char *text, size_t bytes);

#define LABEL_OF_GAUGE(NAME, key, words, unit)   {words, unit},
#define LABEL_OF_COUNTER(NAME, key, words)       {words, ""},
#define LABEL_OF_THROTTLE(NAME, key, bit, words) {words, ""},
const struct device_label gauge_labels[]    = {GAUGES(LABEL_OF_GAUGE)};
const struct device_label counter_labels[]  = {COUNTERS(LABEL_OF_COUNTER)};
const struct device_label throttle_labels[] = {THROTTLES(LABEL_OF_THROTTLE)};

static bool find_throttle(const struct suspect *suspect, char *text, size_t bytes)
{
    const struct observation *observation = suspect->observation;
    double                    samples     = observation->throttles[suspect->what].samples;
    snprintf(text, bytes, "%s in %.0f of %" PRId64 " samples%s", throttle_labels[suspect->what].words, samples,
             observation->samples, suspect->what == THROTTLE_POWER_CAP ? ", which is normal at full load" : "");
    return samples > 0;
}

static bool find_growth(const struct suspect *suspect, char *text, size_t bytes)
{
    double growth = suspect->observation->counters[suspect->what].growth;
    snprintf(text, bytes, "%.0f %s during the run", growth, counter_labels[suspect->what].words);
    return growth > 0;
}

// Finds uncorrected ECC errors during the run. Two counters count the same errors, but a driver may report only one of
// them.
static bool find_uncorrected(const struct suspect *suspect, char *text, size_t bytes)
{
    const struct counter_values *counters = suspect->observation->counters;
    double growth = fmax(counters[COUNTER_ECC_UNCORRECTED].growth, counters[COUNTER_ECC_UNCORRECTED_EVER].growth);
    snprintf(text, bytes, "%.0f %s during the run", growth, counter_labels[COUNTER_ECC_UNCORRECTED].words);
    return growth > 0;
}

static bool find_raised(const struct suspect *suspect, char *text, size_t bytes)
{
    const struct counter_values *flag = &suspect->observation->counters[suspect->what];
    snprintf(text, bytes, "%s", counter_labels[suspect->what].words);
    return flag->before > 0 || flag->after > 0;
}

static bool find_inactive_link(const struct suspect *suspect, char *text, size_t bytes)
{
    const struct counter_values *active = &suspect->observation->counters[COUNTER_LINKS_ACTIVE];
    double                       links  = suspect->observation->counters[COUNTER_LINKS].before;
    if (active->after < active->before) {
        snprintf(text, bytes, "%.0f of %.0f NVLinks active after the run, %.0f before it", active->after, links,
                 active->before);
        return true;
    }
    snprintf(text, bytes, "%.0f of %.0f NVLinks active, its peers have %.0f", active->before, links,
             suspect->kind->links);
    return active->before < suspect->kind->links;
}

static bool find_low_gauge(const struct suspect *suspect, char *text, size_t bytes)
{
    int64_t what  = suspect->what;
    double  value = suspect->observation->gauges[what].median, median = suspect->kind->gauges[what].median;
    snprintf(text, bytes, "%s %.0f %s, %.1f %% below %.0f, the median of %" PRId64 " ranks", gauge_labels[what].words,
             value, gauge_labels[what].unit, 100 * (1 - value / median), median, suspect->kind->gauges[what].ranks);
    return value < share_min * median;
}

// Finds a GPU that was not observed, or only for a part of the run. If no GPU at all was observed, the report says so
// in one line, so this is no fault.
static bool find_gap(const struct suspect *suspect, char *text, size_t bytes)
{
    const struct observation *observation = suspect->observation;
    if (observation->samples > 0) {
        snprintf(text, bytes, "observed for %" PRId64 " samples only: %s", observation->samples, observation->missing);
    } else {
        snprintf(text, bytes, "not observed: %s", observation->missing);
    }
    return observation->missing[0] != '\0' && (suspect->others_known || observation->samples > 0);
}

// The checks, in the order in which the report lists their reasons.
static const struct device_check {
    const char  *id;
    enum verdict verdict;
    find_fault  *find;
    int64_t      what;    // index of the throttle, counter or gauge that the check is about
} checks[] = {
    {"hw-slowdown", VERDICT_DEGRADED, find_throttle, THROTTLE_HARDWARE},
    {"hw-thermal-slowdown", VERDICT_DEGRADED, find_throttle, THROTTLE_HARDWARE_THERMAL},
    {"hw-power-brake", VERDICT_DEGRADED, find_throttle, THROTTLE_POWER_BRAKE},
    {"sw-thermal-slowdown", VERDICT_DEGRADED, find_throttle, THROTTLE_THERMAL},
    {"sm-clock-low", VERDICT_DEGRADED, find_low_gauge, GAUGE_SM_CLOCK},
    {"power-limit-low", VERDICT_DEGRADED, find_low_gauge, GAUGE_POWER_LIMIT},
    {"ecc-uncorrected", VERDICT_DEGRADED, find_uncorrected, 0},
    {"row-remap-failed", VERDICT_DEGRADED, find_raised, COUNTER_ROWS_FAILED},
    {"row-remap-pending", VERDICT_DEGRADED, find_raised, COUNTER_ROWS_PENDING},
    {"nvlink-inactive", VERDICT_DEGRADED, find_inactive_link, 0},
    {"sw-power-cap", VERDICT_VALID, find_throttle, THROTTLE_POWER_CAP},
    {"clocks-setting", VERDICT_VALID, find_throttle, THROTTLE_CLOCKS_SETTING},
    {"sync-boost", VERDICT_VALID, find_throttle, THROTTLE_SYNC_BOOST},
    {"ecc-corrected", VERDICT_VALID, find_growth, COUNTER_ECC_CORRECTED},
    {"nvlink-replays", VERDICT_VALID, find_growth, COUNTER_LINK_REPLAYS},
    {"nvlink-recoveries", VERDICT_VALID, find_growth, COUNTER_LINK_RECOVERIES},
    {"nvlink-crc", VERDICT_VALID, find_growth, COUNTER_LINK_CRC},
    {"not-observed", VERDICT_VALID, find_gap, 0},
};

static void measure_kind(struct kind *kind, const struct result *result, const char *name)
{
    double *values = memory_allocate((size_t)result->observation_count * sizeof(*values));
    *kind          = (struct kind){.name = name, .links = NAN};
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        int64_t ranks = 0;
        for (int64_t i = 0; i < result->observation_count; i++) {
            const struct observation *observation = &result->observations[i];
            bool                      is_of_it    = strcmp(observation->name, name) == 0;
            if (is_of_it && !isnan(observation->gauges[gauge].median)) {
                values[ranks++] = observation->gauges[gauge].median;
            }
            kind->links =
                is_of_it ? fmax(kind->links, observation->counters[COUNTER_LINKS_ACTIVE].before) : kind->links;
        }
        kind->gauges[gauge].ranks  = ranks;
        kind->gauges[gauge].median = statistics_median(values, ranks);
    }
    free(values);
}

// Returns the reference values of GPUs with this name, and computes them the first time. `kinds` has room for one entry
// per observation.
static const struct kind *find_kind(struct kind *kinds, const struct result *result, const char *name)
{
    while (kinds->name != NULL && strcmp(kinds->name, name) != 0) {
        kinds++;
    }
    if (kinds->name == NULL) {
        measure_kind(kinds, result, name);
    }
    return kinds;
}

static void add_fault(struct result *result, const struct device_check *check, const struct observation *observation,
                      const char *fault, int64_t others)
{
    struct result_reason reason   = {.verdict = check->verdict, .rank = observation->rank, .step = -1};
    const char          *host     = "?";
    char                 more[48] = "", device[128] = "";
    if (observation->rank >= 0 && observation->rank < result->rank_count) {
        host = result->ranks[observation->rank].host;
    }
    if (observation->name[0] != '\0') {
        snprintf(device, sizeof(device), ", %.48s at %s", observation->name, observation->pci);
    }
    if (others > 0) {
        snprintf(more, sizeof(more), "; also on %" PRId64 " more", others);
    }
    text_copy(reason.id, sizeof(reason.id), check->id);
    result_note(result, reason, "rank %" PRId64 " (%.32s%s): %s%s", observation->rank, host, device, fault, more);
}

static void apply(struct result *result, const struct device_check *check, struct kind *kinds, bool others_known)
{
    char    fault[128];
    int64_t named = check->verdict == VERDICT_VALID ? 1 : NAMED_MAX, count = 0, said = 0;
    for (int pass = 0; pass < 2; pass++) {    // pass 0 counts, pass 1 adds reasons
        for (int64_t i = 0; i < result->observation_count; i++) {
            const struct observation *observation = &result->observations[i];
            struct suspect            suspect     = {.observation  = observation,
                                                     .kind         = find_kind(kinds, result, observation->name),
                                                     .others_known = others_known,
                                                     .what         = check->what};
            bool                      is_at_fault = check->find(&suspect, fault, sizeof(fault));
            if (pass == 0) {
                count += is_at_fault;
            } else if (is_at_fault && said < named) {
                said++;
                add_fault(result, check, observation, fault, said == named ? count - named : 0);
            }
        }
    }
}

static void check_devices(struct result *result)
{
    struct kind *kinds        = memory_allocate(((size_t)result->observation_count + 1) * sizeof(*kinds));
    bool         others_known = false;
    for (int64_t i = 0; i < result->observation_count; i++) {
        others_known |= result->observations[i].missing[0] == '\0';
    }
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        apply(result, &checks[i], kinds, others_known);
    }
    free(kinds);
}

void devices_derive_energy(struct result *result)
{
    struct result_figures *figures = &result->figures;
    double                 joules  = 0;
    for (int64_t i = 0; i < result->observation_count; i++) {
        joules += result->observations[i].energy_joules;
    }
    bool is_known = result->observation_count > 0 && result->observation_count == result->mesh.world &&
                    figures->measured_steps > 0 && joules > 0;
    figures->joules_per_step  = is_known ? joules / (double)figures->measured_steps : NAN;
    figures->tokens_per_joule = figures->tokens_per_step / figures->joules_per_step;
}

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
    check_devices(result);
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

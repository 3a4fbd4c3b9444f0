// SPDX-License-Identifier: MIT
// Checks the recorded NVML values of each GPU. A throttled or failing GPU computes correct numbers, but its step times
// do not represent the GPU model. docs/method.md has the limits and their sources.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/statistics.h"
#include "gswbench/text.h"
#include "internal.h"

static const double share_min = 0.95;    // a gauge below this share of the median over equal GPUs is a fault

enum { NAMED_MAX = 8 };    // maximum number of ranks that a check names; a check that only adds notes names 1

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

static void add_reason(struct result *result, const struct device_check *check, const struct observation *observation,
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
                add_reason(result, check, observation, fault, said == named ? count - named : 0);
            }
        }
    }
}

void devices_check(struct result *result)
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

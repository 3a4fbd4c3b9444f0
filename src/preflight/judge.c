// SPDX-License-Identifier: MIT
// Finds values slower than the reference: the median, or the better of two middle values, so that one of two can be an
// outlier. Selects the hosts to drain, and the exit code.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/statistics.h"
#include "gswbench/text.h"
#include "internal.h"

static double find_reference(const struct preflight_class *value_class, double *values, int64_t count)
{
    if (count == 0) {
        return NAN;
    }
    statistics_sort(values, count);
    return values[value_class->is_time ? (count - 1) / 2 : count / 2];
}

static double slowdown_percent(const struct preflight_class *value_class, double reference, double value)
{
    return 100.0 * (value_class->is_time ? value / reference - 1.0 : reference / value - 1.0);
}

// Returns [value_count]; the caller frees it.
static double *copy_values(const struct preflight_class *value_class)
{
    double *values = memory_allocate((size_t)value_class->value_count * sizeof(*values));
    for (int64_t i = 0; i < value_class->value_count; i++) {
        values[i] = value_class->values[i].value;
    }
    return values;
}

double judge_spread(const struct preflight_class *value_class)
{
    const double normal = 1.4826;    // standard deviation of a normal distribution over its median absolute deviation
    int64_t      count  = value_class->value_count;
    double      *values = copy_values(value_class), median = statistics_median(values, count);
    double       spread = 100.0 * normal * statistics_deviation(values, count, median) / median;
    free(values);
    return spread;
}

void judge_add(struct preflight_report *report, const struct preflight_class *value_class,
               const struct preflight_outlier *outlier, const char *format, ...)
{
    int64_t count = report->outlier_count;
    va_list arguments;
    if ((count & (count - 1)) == 0) {    // grow at each power of two
        report->outliers =
            memory_resize(report->outliers, (size_t)(count > 0 ? 2 * count : 1) * sizeof(*report->outliers));
    }
    struct preflight_outlier *added = &report->outliers[report->outlier_count++];
    *added                          = *outlier;
    text_copy(added->class_name, sizeof(added->class_name), value_class->name);
    if (outlier->rank >= 0) {
        text_copy(added->host, sizeof(added->host), report->ranks[outlier->rank].host);
    }
    if (outlier->blame == BLAME_LINK || outlier->blame == BLAME_GROUP) {
        text_copy(added->other_host, sizeof(added->other_host), report->ranks[outlier->other_rank].host);
    }
    if (outlier->blame == BLAME_HOST && outlier->other_rank < 0) {
        added->rank = -1;
    }
    va_start(arguments, format);
    vsnprintf(added->text, sizeof(added->text), format, arguments);
    va_end(arguments);
}

// Counts a node's values above the limit, and their smallest slowdown.
static int64_t count_slow(const struct preflight_report *report, const struct preflight_class *value_class,
                          double reference, int64_t node, double *lowest)
{
    int64_t count = 0;
    *lowest       = INFINITY;
    for (int64_t i = 0; i < value_class->value_count; i++) {
        double percent = slowdown_percent(value_class, reference, value_class->values[i].value);
        if (report->ranks[value_class->values[i].first].node == node && percent > value_class->limit_percent) {
            count++;
            *lowest = fmin(*lowest, percent);
        }
    }
    return count;
}

static void judge_devices(struct preflight_report *report, const struct preflight_class *value_class, double reference)
{
    for (int64_t i = 0; i < value_class->value_count; i++) {
        int64_t                      rank = value_class->values[i].first, local = 0;
        const struct preflight_rank *of = &report->ranks[rank];
        double percent = slowdown_percent(value_class, reference, value_class->values[i].value), lowest;
        if (percent <= value_class->limit_percent) {
            continue;
        }
        for (int64_t other = 0; other < report->rank_count; other++) {
            local += report->ranks[other].node == of->node;
        }
        int64_t slow = count_slow(report, value_class, reference, of->node, &lowest);
        if (slow == 1 || slow < local) {
            judge_add(
                report, value_class,
                &(struct preflight_outlier){.blame = BLAME_DEVICE, .rank = rank, .other_rank = -1, .percent = percent},
                "device %d of host %s (rank %d): %s takes %.1f %% longer", (int)of->local_rank, of->host, (int)rank,
                value_class->name, percent);
        } else if (of->local_rank == 0) {
            judge_add(
                report, value_class,
                &(struct preflight_outlier){.blame = BLAME_HOST, .rank = rank, .other_rank = -1, .percent = lowest},
                "host %s: all devices: %s takes at least %.1f %% longer", of->host, value_class->name, lowest);
        }
    }
}

static void judge_groups(struct preflight_report *report, const struct preflight_class *value_class, double reference)
{
    for (int64_t i = 0; i < value_class->value_count; i++) {
        const struct preflight_value  *value = &value_class->values[i];
        const struct preflight_rank   *first = &report->ranks[value->first], *last = &report->ranks[value->second];
        const struct preflight_outlier slow = {.blame      = first->node == last->node ? BLAME_HOST : BLAME_GROUP,
                                               .rank       = value->first,
                                               .other_rank = value->second,
                                               .percent    = slowdown_percent(value_class, reference, value->value)};
        if (slow.percent > value_class->limit_percent) {
            judge_add(report, value_class, &slow, "group of ranks %d (%s) to %d (%s): %s takes %.1f %% longer",
                      (int)value->first, first->host, (int)value->second, last->host, value_class->name, slow.percent);
        }
    }
}

enum way { SENDS, RECEIVES, WAYS };

// One rank's egress or ingress.
struct end {
    double  reference;    // reference value of its links
    double *values;
    int64_t links;
    bool    is_slow;
};

struct ends {
    struct preflight_report      *report;
    const struct preflight_class *value_class;
    struct end                   *ends;          // [ranks][WAYS]
    double                        reference;     // over the endpoints
    double                        link_limit;    // percent, for a single link
};

static struct end *end_of(const struct ends *ends, int64_t rank, enum way way)
{
    return &ends->ends[rank * WAYS + way];
}

// Groups the values by endpoint; the caller frees the array.
static double *sort_by_end(const struct ends *ends)
{
    const struct preflight_class *value_class = ends->value_class;
    double *sorted = memory_allocate((size_t)(WAYS * value_class->value_count + 1) * sizeof(*sorted)), *next = sorted;
    for (int64_t i = 0; i < value_class->value_count; i++) {
        end_of(ends, value_class->values[i].first, SENDS)->links++;
        end_of(ends, value_class->values[i].second, RECEIVES)->links++;
    }
    for (int64_t i = 0; i < ends->report->rank_count * WAYS; i++) {
        next += ends->ends[i].links;
        ends->ends[i].values = next;
    }
    for (int64_t i = 0; i < value_class->value_count; i++) {
        *--end_of(ends, value_class->values[i].first, SENDS)->values     = value_class->values[i].value;
        *--end_of(ends, value_class->values[i].second, RECEIVES)->values = value_class->values[i].value;
    }
    return sorted;
}

static void find_ends(struct ends *ends)
{
    const struct preflight_class *value_class = ends->value_class;
    int64_t                       count = 0, all = ends->report->rank_count * WAYS;
    double *references = memory_allocate((size_t)all * sizeof(*references)), *sorted = sort_by_end(ends);
    for (int64_t i = 0; i < all; i++) {
        struct end *end = &ends->ends[i];
        end->reference  = find_reference(value_class, end->values, end->links);
        if (end->links > 0) {
            references[count++] = end->reference;
        }
    }
    ends->reference = find_reference(value_class, references, count);
    for (int64_t i = 0; i < all; i++) {
        struct end *end = &ends->ends[i];
        end->is_slow    = end->links > 1 &&
                       slowdown_percent(value_class, ends->reference, end->reference) > value_class->limit_percent;
    }
    free(references);
    free(sorted);
}

// Bit mask of the directions, sending and receiving, in which the rank is slow.
static unsigned slow_ways(const struct ends *ends, int64_t rank)
{
    return (end_of(ends, rank, SENDS)->is_slow ? 1u << SENDS : 0) |
           (end_of(ends, rank, RECEIVES)->is_slow ? 1u << RECEIVES : 0);
}

static double slowness(const struct ends *ends, int64_t rank)
{
    double percent = 0.0;
    for (int way = 0; way < WAYS; way++) {
        const struct end *end = end_of(ends, rank, (enum way)way);
        percent = end->is_slow ? fmax(percent, slowdown_percent(ends->value_class, ends->reference, end->reference))
                               : percent;
    }
    return percent;
}

// Whether all ranks of the node are slow in the same directions, and this is the first of them.
static bool is_host(const struct ends *ends, int64_t rank, bool *is_first)
{
    const struct preflight_rank *ranks = ends->report->ranks;
    bool                         all   = true;
    *is_first                          = true;
    for (int64_t i = 0; i < ends->report->rank_count; i++) {
        if (ranks[i].node == ranks[rank].node) {
            all &= slow_ways(ends, i) == slow_ways(ends, rank);
            *is_first &= i >= rank;
        }
    }
    return all;
}

static void name_end(const struct ends *ends, int64_t rank)
{
    static const char *const     does[] = {"", "from", "to", "from and to"};
    const struct preflight_rank *of     = &ends->report->ranks[rank];
    unsigned                     ways   = slow_ways(ends, rank);
    bool                         is_first, is_all;
    double                       percent = slowness(ends, rank);
    char                         device[64];
    if (ways == 0) {
        return;
    }
    is_all = is_host(ends, rank, &is_first);
    if (is_all && !is_first) {
        return;
    }
    snprintf(device, sizeof(device), "device %d of ", (int)of->local_rank);
    const struct preflight_outlier slow = {
        .blame = is_all ? BLAME_HOST : BLAME_DEVICE, .rank = rank, .other_rank = -1, .percent = percent};
    char number[32];
    snprintf(number, sizeof(number), " (rank %d)", (int)rank);
    judge_add(ends->report, ends->value_class, &slow, "%shost %s%s: every %s %s it takes %.1f %% longer",
              is_all ? "" : device, of->host, is_all ? "" : number, ends->value_class->name, does[ways], percent);
}

// Expected value of a link: the reference of its worse endpoint. If an endpoint has only this link, its own speed is
// unknown, and the reference of all endpoints is used.
static double expected(const struct ends *ends, const struct preflight_value *value)
{
    const struct end *sends = end_of(ends, value->first, SENDS), *receives = end_of(ends, value->second, RECEIVES);
    if (sends->links < 2 || receives->links < 2) {
        return ends->reference;
    }
    return slowdown_percent(ends->value_class, sends->reference, receives->reference) > 0.0 ? receives->reference
                                                                                            : sends->reference;
}

static void name_link(const struct ends *ends, const struct preflight_value *value)
{
    const struct preflight_rank   *from = &ends->report->ranks[value->first], *to = &ends->report->ranks[value->second];
    const struct preflight_outlier slow = {
        .blame      = BLAME_LINK,
        .rank       = value->first,
        .other_rank = value->second,
        .percent    = slowdown_percent(ends->value_class, expected(ends, value), value->value)};
    if (slow.percent > ends->link_limit) {
        judge_add(ends->report, ends->value_class, &slow, "link %s -> %s (rank %d -> %d): %s takes %.1f %% longer",
                  from->host, to->host, (int)value->first, (int)value->second, ends->value_class->name, slow.percent);
    }
}

// Finds slow endpoints, and slow links between good ones. Sending and receiving are separate endpoints: a limit on
// egress shows in everything a host sends. An endpoint is as good as its median link, and a link should be as good as
// its worse endpoint. If links differ much, as on a shared network, the limit of a single link is wider.
static void judge_links(struct preflight_report *report, const struct preflight_class *value_class)
{
    double      spread = value_class->value_count < JUDGE_VALUES ? 0.0 : judge_spread(value_class);
    struct ends ends   = {.report      = report,
                          .value_class = value_class,
                          .link_limit  = fmax(value_class->limit_percent, JUDGE_DEVIATIONS * spread),
                          .ends        = memory_allocate((size_t)(report->rank_count * WAYS) * sizeof(struct end))};
    find_ends(&ends);
    for (int64_t rank = 0; rank < report->rank_count; rank++) {
        name_end(&ends, rank);
    }
    for (int64_t i = 0; i < value_class->value_count; i++) {
        name_link(&ends, &value_class->values[i]);
    }
    free(ends.ends);
}

// Sets minimum, median and maximum; returns the reference.
static double summarise(struct preflight_class *value_class)
{
    int64_t count        = value_class->value_count;
    double *values       = copy_values(value_class);
    double  reference    = find_reference(value_class, values, count);
    value_class->median  = statistics_median(values, count);
    value_class->minimum = count > 0 ? values[0] : NAN;
    value_class->maximum = count > 0 ? values[count - 1] : NAN;
    free(values);
    return reference;
}

void preflight_judge(struct preflight_report *report, struct preflight_class *value_class)
{
    double reference = summarise(value_class);
    if (value_class->value_count == 0 || value_class->limit_percent <= 0.0) {
        return;
    }
    switch ((enum preflight_subject)value_class->subject) {
    case PREFLIGHT_DEVICE:
        judge_devices(report, value_class, reference);
        break;
    case PREFLIGHT_LINK:
        judge_links(report, value_class);
        break;
    case PREFLIGHT_GROUP:
        judge_groups(report, value_class, reference);
        break;
    }
    double percent = slowdown_percent(value_class, value_class->profile, value_class->median);
    if (percent > value_class->limit_percent) {    // not if the profile is NaN
        judge_add(report, value_class,
                  &(struct preflight_outlier){.blame = BLAME_ALL, .rank = -1, .other_rank = -1, .percent = percent},
                  "all: %s takes %.1f %% longer than in the profile", value_class->name, percent);
    }
}

static bool is_drained(const struct preflight_report *report, const char *host)
{
    for (int64_t i = 0; i < report->drain_count; i++) {
        if (strcmp(report->drain[i].host, host) == 0) {
            return true;
        }
    }
    return false;
}

static void drain(struct preflight_report *report, const char *host)
{
    if (host[0] == '\0' || is_drained(report, host)) {
        return;
    }
    text_copy(LIST_ADD(report->drain, report->drain_count)->host, sizeof(report->drain->host), host);
}

// Slow links between two nodes that are not drained, counted per node.
struct open_links {
    bool    *is_drained;    // [ranks], indexed by node
    int64_t *count;         // [ranks], indexed by node
};

static bool is_open(const struct open_links *open, const struct preflight_report *report,
                    const struct preflight_outlier *outlier)
{
    return outlier->blame == BLAME_LINK && !open->is_drained[report->ranks[outlier->rank].node] &&
           !open->is_drained[report->ranks[outlier->other_rank].node];
}

static void count_open(struct open_links *open, const struct preflight_report *report)
{
    memset(open->count, 0, (size_t)report->rank_count * sizeof(*open->count));
    for (int64_t i = 0; i < report->rank_count; i++) {
        open->is_drained[report->ranks[i].node] = is_drained(report, report->ranks[i].host);
    }
    for (int64_t i = 0; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier = &report->outliers[i];
        if (is_open(open, report, outlier)) {
            open->count[report->ranks[outlier->rank].node]++;
            open->count[report->ranks[outlier->other_rank].node]++;
        }
    }
}

// Drains one host of each slow link: the one with more slow links, or the receiver if both have equally many.
static void drain_links(struct preflight_report *report)
{
    struct open_links open = {.is_drained =
                                  memory_allocate((size_t)(report->rank_count + 1) * sizeof(*open.is_drained)),
                              .count = memory_allocate((size_t)(report->rank_count + 1) * sizeof(*open.count))};
    count_open(&open, report);
    for (int64_t i = 0; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier = &report->outliers[i];
        if (is_open(&open, report, outlier)) {
            int64_t from = report->ranks[outlier->rank].node, to = report->ranks[outlier->other_rank].node;
            drain(report, open.count[from] > open.count[to] ? outlier->host : outlier->other_host);
            count_open(&open, report);
        }
    }
    free(open.is_drained);
    free(open.count);
}

// Says which devices were measured but not judged, because there is no other and no profile.
static void note_alone(struct preflight_report *report)
{
    for (int64_t i = 0; i < report->class_count && report->rank_count == 1; i++) {
        struct preflight_class *value_class = &report->classes[i];
        if (isnan(value_class->profile) && value_class->note[0] == '\0') {
            value_class->limit_percent = 0.0;
            text_copy(value_class->note, sizeof(value_class->note), "not judged: one device, and no profile of it");
        }
    }
}

void preflight_conclude(struct preflight_report *report)
{
    note_alone(report);
    report->exit_code = report->outlier_count > 0 ? EXIT_GATE : EXIT_VALID;
    for (int64_t i = 0; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier = &report->outliers[i];
        if (outlier->blame == BLAME_NUMBERS) {
            report->exit_code = EXIT_INVALID;
        }
        if (outlier->blame == BLAME_HOST || outlier->blame == BLAME_DEVICE || outlier->blame == BLAME_NUMBERS) {
            drain(report, outlier->host);
        }
    }
    drain_links(report);
}

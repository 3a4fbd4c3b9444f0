// SPDX-License-Identifier: MIT
// Finds outliers in a report: values that are slower than a reference by more than the limit of their class. The
// reference is the median, or the faster of the two middle values, so that one of two values can be an outlier. Also
// selects the hosts to drain, and the exit code.
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

// Returns an array of the class's values; the caller frees it.
static double *copy_values(const struct preflight_class *value_class)
{
    double *values = memory_allocate((size_t)value_class->value_count * sizeof(*values));
    for (int64_t i = 0; i < value_class->value_count; i++) {
        values[i] = value_class->values[i].value;
    }
    return values;
}

// Returns the standard deviation of the values in percent of `center`, from their median absolute deviation.
static double find_spread(const double *values, int64_t count, double center)
{
    const double normal = 1.4826;    // standard deviation of normal values / their median absolute deviation
    return 100.0 * normal * statistics_deviation(values, count, center) / center;
}

double judge_spread(const struct preflight_class *value_class)
{
    double *values = copy_values(value_class), median = statistics_median(values, value_class->value_count);
    double  spread = find_spread(values, value_class->value_count, median);
    free(values);
    return spread;
}

void judge_add(struct preflight_report *report, const struct preflight_class *value_class,
               const struct preflight_outlier *outlier, const char *format, ...)
{
    va_list                   arguments;
    struct preflight_outlier *added = LIST_ADD_DOUBLING(report->outliers, report->outlier_count);
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

// Counts the devices of a node that are slower than the limit. *lowest is the smallest slowdown of these devices in
// percent.
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

enum direction { SENDS, RECEIVES, DIRECTIONS };

// The links of one rank in one direction: all links on which it sends, or all on which it receives.
struct endpoint {
    double  reference;    // median of these links (find_reference)
    double *values;
    int64_t links;
    bool    is_slow;
};

struct endpoints {
    struct preflight_report      *report;
    const struct preflight_class *value_class;
    struct endpoint              *endpoints;     // [ranks][DIRECTIONS]
    double                        reference;     // median of `reference` over the endpoints
    double                        link_limit;    // tolerated slowdown of a single link in percent
    double                        rank_limit;    // tolerated slowdown of a rank in percent: maximum over the endpoints
};

static struct endpoint *find_endpoint(const struct endpoints *endpoints, int64_t rank, enum direction direction)
{
    return &endpoints->endpoints[rank * DIRECTIONS + direction];
}

// Sets number and values of the links of every endpoint (a rank and a direction). Returns the array of all values,
// which the caller frees.
static double *sort_by_endpoint(const struct endpoints *endpoints)
{
    const struct preflight_class *value_class = endpoints->value_class;
    double *sorted = memory_allocate((size_t)(DIRECTIONS * value_class->value_count + 1) * sizeof(*sorted)),
           *next   = sorted;
    for (int64_t i = 0; i < value_class->value_count; i++) {
        find_endpoint(endpoints, value_class->values[i].first, SENDS)->links++;
        find_endpoint(endpoints, value_class->values[i].second, RECEIVES)->links++;
    }
    for (int64_t i = 0; i < endpoints->report->rank_count * DIRECTIONS; i++) {
        next += endpoints->endpoints[i].links;
        endpoints->endpoints[i].values = next;
    }
    for (int64_t i = 0; i < value_class->value_count; i++) {
        *--find_endpoint(endpoints, value_class->values[i].first, SENDS)->values     = value_class->values[i].value;
        *--find_endpoint(endpoints, value_class->values[i].second, RECEIVES)->values = value_class->values[i].value;
    }
    return sorted;
}

static void find_endpoints(struct endpoints *endpoints)
{
    const struct preflight_class *value_class = endpoints->value_class;
    int64_t                       count = 0, all = endpoints->report->rank_count * DIRECTIONS;
    double *references = memory_allocate((size_t)all * sizeof(*references)), *sorted = sort_by_endpoint(endpoints);
    for (int64_t i = 0; i < all; i++) {
        struct endpoint *endpoint = &endpoints->endpoints[i];
        endpoint->reference       = find_reference(value_class, endpoint->values, endpoint->links);
        if (endpoint->links > 0) {
            references[count++] = endpoint->reference;
        }
    }
    endpoints->reference = find_reference(value_class, references, count);
    free(references);
    free(sorted);
}

// Returns the expected value of a link: the reference of its slower endpoint, sender or receiver. If the sender or
// receiver has only this link, its own speed is unknown, and the reference over all endpoints is used.
static double find_expected(const struct endpoints *endpoints, const struct preflight_value *value)
{
    const struct endpoint *sends    = find_endpoint(endpoints, value->first, SENDS),
                          *receives = find_endpoint(endpoints, value->second, RECEIVES);
    if (sends->links < 2 || receives->links < 2) {
        return endpoints->reference;
    }
    return slowdown_percent(endpoints->value_class, sends->reference, receives->reference) > 0.0 ? receives->reference
                                                                                                 : sends->reference;
}

// Marks the endpoints that are slower than both the limit and the noise. The noise follows from the spread of links
// around their expected values, which already contain the differences between endpoints.
static void mark_slow_endpoints(struct endpoints *endpoints)
{
    const double                  of_median   = 1.2533;    // standard error of the median / of the mean, normal values
    const struct preflight_class *value_class = endpoints->value_class;
    double                       *ratios = copy_values(value_class), spread = 0.0;
    for (int64_t i = 0; i < value_class->value_count; i++) {
        ratios[i] /= find_expected(endpoints, &value_class->values[i]);
    }
    if (value_class->value_count >= JUDGE_VALUES) {
        spread = find_spread(ratios, value_class->value_count, 1.0);
    }
    for (int64_t i = 0; i < endpoints->report->rank_count * DIRECTIONS; i++) {
        struct endpoint *endpoint = &endpoints->endpoints[i];
        double           slowdown = slowdown_percent(value_class, endpoints->reference, endpoint->reference);
        double           noise    = JUDGE_DEVIATIONS * spread * of_median / sqrt((double)endpoint->links);
        double           limit    = fmax(value_class->limit_percent, noise);
        endpoint->is_slow         = endpoint->links > 1 && slowdown > limit;
        endpoints->rank_limit     = endpoint->links > 1 ? fmax(endpoints->rank_limit, limit) : endpoints->rank_limit;
    }
    free(ratios);
}

// Returns a bit mask of the directions in which all links of the rank are slow: sending, receiving, or both.
static unsigned slow_directions(const struct endpoints *endpoints, int64_t rank)
{
    return (find_endpoint(endpoints, rank, SENDS)->is_slow ? 1u << SENDS : 0) |
           (find_endpoint(endpoints, rank, RECEIVES)->is_slow ? 1u << RECEIVES : 0);
}

static double find_slowdown(const struct endpoints *endpoints, int64_t rank)
{
    double percent = 0.0;
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const struct endpoint *endpoint = find_endpoint(endpoints, rank, (enum direction)direction);
        percent =
            endpoint->is_slow
                ? fmax(percent, slowdown_percent(endpoints->value_class, endpoints->reference, endpoint->reference))
                : percent;
    }
    return percent;
}

// Returns whether all ranks of this rank's node are slow in the same directions, so that the host is to blame and not a
// device. *is_first: this rank is the first of its node.
static bool is_whole_host(const struct endpoints *endpoints, int64_t rank, bool *is_first)
{
    const struct preflight_rank *ranks = endpoints->report->ranks;
    bool                         all   = true;
    *is_first                          = true;
    for (int64_t i = 0; i < endpoints->report->rank_count; i++) {
        if (ranks[i].node == ranks[rank].node) {
            all &= slow_directions(endpoints, i) == slow_directions(endpoints, rank);
            *is_first &= i >= rank;
        }
    }
    return all;
}

static void add_slow_rank(const struct endpoints *endpoints, int64_t rank)
{
    static const char *const     does[]     = {"", "from", "to", "from and to"};
    const struct preflight_rank *of         = &endpoints->report->ranks[rank];
    unsigned                     directions = slow_directions(endpoints, rank);
    bool                         is_first, is_all;
    double                       percent = find_slowdown(endpoints, rank);
    char                         device[64];
    if (directions == 0) {
        return;
    }
    is_all = is_whole_host(endpoints, rank, &is_first);
    if (is_all && !is_first) {
        return;
    }
    snprintf(device, sizeof(device), "device %d of ", (int)of->local_rank);
    const struct preflight_outlier slow = {
        .blame = is_all ? BLAME_HOST : BLAME_DEVICE, .rank = rank, .other_rank = -1, .percent = percent};
    char number[32];
    snprintf(number, sizeof(number), " (rank %d)", (int)rank);
    judge_add(endpoints->report, endpoints->value_class, &slow, "%shost %s%s: every %s %s it takes %.1f %% longer",
              is_all ? "" : device, of->host, is_all ? "" : number, endpoints->value_class->name, does[directions],
              percent);
}

static void add_slow_link(const struct endpoints *endpoints, const struct preflight_value *value)
{
    const struct preflight_rank *from   = &endpoints->report->ranks[value->first],
                                *to     = &endpoints->report->ranks[value->second];
    const struct preflight_outlier slow = {
        .blame      = BLAME_LINK,
        .rank       = value->first,
        .other_rank = value->second,
        .percent    = slowdown_percent(endpoints->value_class, find_expected(endpoints, value), value->value)};
    if (slow.percent > endpoints->link_limit) {
        judge_add(endpoints->report, endpoints->value_class, &slow,
                  "link %s -> %s (rank %d -> %d): %s takes %.1f %% longer", from->host, to->host, (int)value->first,
                  (int)value->second, endpoints->value_class->name, slow.percent);
    }
}

// Finds ranks whose links are slow, then single slow links between other ranks. Sending and receiving are judged
// separately, because a limit on egress slows everything that a host sends but nothing that it receives. A rank is as
// fast as its median link in that direction, and a link should be as fast as the slower of its two ranks. If the speeds
// of links vary a lot, as on a shared network, limits are wider, most of all for a single link.
static void judge_links(struct preflight_report *report, struct preflight_class *value_class)
{
    double           spread    = value_class->value_count < JUDGE_VALUES ? 0.0 : judge_spread(value_class);
    struct endpoints endpoints = {
        .report      = report,
        .value_class = value_class,
        .link_limit  = fmax(value_class->limit_percent, JUDGE_DEVIATIONS * spread),
        .rank_limit  = value_class->limit_percent,
        .endpoints   = memory_allocate((size_t)(report->rank_count * DIRECTIONS) * sizeof(struct endpoint))};
    find_endpoints(&endpoints);
    mark_slow_endpoints(&endpoints);
    value_class->note[0] = '\0';
    if (endpoints.link_limit > value_class->limit_percent) {
        snprintf(value_class->note, sizeof(value_class->note),
                 "limit %.1f %% for a rank, %.1f %% for a link: links vary by %.1f %%", endpoints.rank_limit,
                 endpoints.link_limit, spread);
    }
    for (int64_t rank = 0; rank < report->rank_count; rank++) {
        add_slow_rank(&endpoints, rank);
    }
    for (int64_t i = 0; i < value_class->value_count; i++) {
        add_slow_link(&endpoints, &value_class->values[i]);
    }
    free(endpoints.endpoints);
}

// Sets minimum, median and maximum of the class. Returns its reference value.
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
    if (percent > value_class->limit_percent) {    // false if there is no profile (NaN)
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

// Slow links between two nodes that are both not drained.
struct open_links {
    bool    *is_drained;    // [node]
    int64_t *count;         // [node]: number of such links of the node
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

// Drains one of the two hosts of each slow link: the host with more slow links, or the receiver if they have equally
// many.
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

// Notes in each class of a job with one rank that its value is not judged, unless the hardware profile has a value.
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

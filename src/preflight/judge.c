// SPDX-License-Identifier: MIT
// Finds values slower than the reference: the median, or the better of two middle values, so that one of two can be an
// outlier.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/statistics.h"
#include "gswbench/text.h"
#include "judge.h"

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double judge_like(const struct preflight_class *value_class, double *values, int64_t count)
{
    if (count == 0) {
        return NAN;
    }
    qsort(values, (size_t)count, sizeof(*values), compare);
    return values[value_class->is_time ? (count - 1) / 2 : count / 2];
}

double judge_percent(const struct preflight_class *value_class, double like, double value)
{
    return 100.0 * (value_class->is_time ? value / like - 1.0 : like / value - 1.0);
}

struct preflight_outlier *judge_add(struct preflight_report *report, const struct preflight_class *value_class,
                                    enum preflight_blame blame, double percent)
{
    int64_t count = report->outlier_count;
    if ((count & (count - 1)) == 0) {    // grow at each power of two
        report->outliers =
            memory_resize(report->outliers, (size_t)(count > 0 ? 2 * count : 1) * sizeof(*report->outliers));
    }
    struct preflight_outlier *added = &report->outliers[report->outlier_count++];
    memset(added, 0, sizeof(*added));    // clears the padding, since outliers are hashed
    *added = (struct preflight_outlier){.blame = blame, .rank = -1, .other_rank = -1, .percent = percent};
    text_copy(added->class_name, sizeof(added->class_name), value_class->name);
    return added;
}

static double *list_values(const struct preflight_class *value_class)
{
    double *values = memory_allocate((size_t)value_class->value_count * sizeof(*values));
    for (int64_t i = 0; i < value_class->value_count; i++) {
        values[i] = value_class->values[i].value;
    }
    return values;
}

static int64_t count_local(const struct preflight_report *report, int64_t node)
{
    int64_t count = 0;
    for (int64_t i = 0; i < report->rank_count; i++) {
        count += report->ranks[i].node == node;
    }
    return count;
}

// Counts a node's values above the limit, and their smallest slowdown.
static int64_t count_slow(const struct preflight_report *report, const struct preflight_class *value_class, double like,
                          int64_t node, double *least)
{
    int64_t count = 0;
    *least        = INFINITY;
    for (int64_t i = 0; i < value_class->value_count; i++) {
        double percent = judge_percent(value_class, like, value_class->values[i].value);
        if (report->ranks[value_class->values[i].first].node == node && percent > value_class->limit_percent) {
            count++;
            *least = fmin(*least, percent);
        }
    }
    return count;
}

static void name_host(struct preflight_report *report, const struct preflight_class *value_class, int64_t rank,
                      double percent)
{
    const char               *host  = report->ranks[rank].host;
    struct preflight_outlier *added = judge_add(report, value_class, BLAME_HOST, percent);
    text_copy(added->host, sizeof(added->host), host);
    snprintf(added->text, sizeof(added->text), "host %s: all devices: %s takes at least %.1f %% longer", host,
             value_class->name, percent);
}

static void name_device(struct preflight_report *report, const struct preflight_class *value_class, int64_t rank,
                        double percent)
{
    const struct preflight_rank *of    = &report->ranks[rank];
    struct preflight_outlier    *added = judge_add(report, value_class, BLAME_DEVICE, percent);
    added->rank                        = rank;
    text_copy(added->host, sizeof(added->host), of->host);
    snprintf(added->text, sizeof(added->text), "device %d of host %s (rank %d): %s takes %.1f %% longer",
             (int)of->local_rank, of->host, (int)rank, value_class->name, percent);
}

static void judge_devices(struct preflight_report *report, const struct preflight_class *value_class, double like)
{
    for (int64_t i = 0; i < value_class->value_count; i++) {
        int64_t rank = value_class->values[i].first, node = report->ranks[rank].node;
        double  percent = judge_percent(value_class, like, value_class->values[i].value), least;
        if (percent <= value_class->limit_percent) {
            continue;
        }
        int64_t slow = count_slow(report, value_class, like, node, &least);
        if (slow == 1 || slow < count_local(report, node)) {
            name_device(report, value_class, rank, percent);
        } else if (report->ranks[rank].local_rank == 0) {
            name_host(report, value_class, rank, least);
        }
    }
}

static void judge_groups(struct preflight_report *report, const struct preflight_class *value_class, double like)
{
    for (int64_t i = 0; i < value_class->value_count; i++) {
        const struct preflight_value *value = &value_class->values[i];
        const struct preflight_rank  *first = &report->ranks[value->first], *last = &report->ranks[value->second];
        double                        percent = judge_percent(value_class, like, value->value);
        if (percent > value_class->limit_percent) {
            struct preflight_outlier *added =
                judge_add(report, value_class, first->node == last->node ? BLAME_HOST : BLAME_GROUP, percent);
            added->rank       = value->first;
            added->other_rank = value->second;
            text_copy(added->host, sizeof(added->host), first->host);
            text_copy(added->other_host, sizeof(added->other_host), first->node == last->node ? "" : last->host);
            snprintf(added->text, sizeof(added->text), "group of ranks %d (%s) to %d (%s): %s takes %.1f %% longer",
                     (int)value->first, first->host, (int)value->second, last->host, value_class->name, percent);
        }
    }
}

static void judge_all(struct preflight_report *report, const struct preflight_class *value_class)
{
    double percent = judge_percent(value_class, value_class->profile, value_class->median);
    if (percent > value_class->limit_percent) {
        struct preflight_outlier *added = judge_add(report, value_class, BLAME_ALL, percent);
        snprintf(added->text, sizeof(added->text), "all: %s takes %.1f %% longer than in the profile",
                 value_class->name, percent);
    }
}

double preflight_measure_class(struct preflight_class *value_class)
{
    double *values       = list_values(value_class);
    double  like         = judge_like(value_class, values, value_class->value_count);
    value_class->median  = statistics_median(values, value_class->value_count);
    value_class->minimum = value_class->value_count > 0 ? values[0] : NAN;
    value_class->maximum = value_class->value_count > 0 ? values[value_class->value_count - 1] : NAN;
    free(values);
    return like;
}

void preflight_judge(struct preflight_report *report, struct preflight_class *value_class)
{
    double like = preflight_measure_class(value_class);
    if (value_class->value_count == 0 || value_class->limit_percent <= 0.0) {
        return;
    }
    switch ((enum preflight_subject)value_class->subject) {
    case PREFLIGHT_DEVICE:
        judge_devices(report, value_class, like);
        break;
    case PREFLIGHT_LINK:
        preflight_judge_links(report, value_class);
        break;
    case PREFLIGHT_GROUP:
        judge_groups(report, value_class, like);
        break;
    }
    if (!isnan(value_class->profile)) {
        judge_all(report, value_class);
    }
}

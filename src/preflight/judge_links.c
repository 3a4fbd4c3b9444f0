// SPDX-License-Identifier: MIT
// Finds slow endpoints, and slow links between good ones. Sending and receiving are separate endpoints: a limit on
// egress shows in everything a host sends.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "judge.h"

enum way { SENDS, RECEIVES, WAYS };

// One rank's egress or ingress.
struct end {
    double  like;    // reference value of its links
    double *values;
    int64_t links;
    bool    is_slow;
};

struct ends {
    struct preflight_report      *report;
    const struct preflight_class *value_class;
    struct end                   *ends;    // [ranks][WAYS]
    double                        like;    // over the endpoints
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
    double                       *likes = memory_allocate((size_t)all * sizeof(*likes)), *sorted = sort_by_end(ends);
    for (int64_t i = 0; i < all; i++) {
        struct end *end = &ends->ends[i];
        end->like       = judge_like(value_class, end->values, end->links);
        if (end->links > 0) {
            likes[count++] = end->like;
        }
    }
    ends->like = judge_like(value_class, likes, count);
    for (int64_t i = 0; i < all; i++) {
        struct end *end = &ends->ends[i];
        end->is_slow = end->links > 1 && judge_percent(value_class, ends->like, end->like) > value_class->limit_percent;
    }
    free(likes);
    free(sorted);
}

// Bit mask of the rank's slow directions.
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
        percent = end->is_slow ? fmax(percent, judge_percent(ends->value_class, ends->like, end->like)) : percent;
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
    char                         who[128];
    if (ways == 0) {
        return;
    }
    is_all = is_host(ends, rank, &is_first);
    if (is_all && !is_first) {
        return;
    }
    struct preflight_outlier *added =
        judge_add(ends->report, ends->value_class, is_all ? BLAME_HOST : BLAME_DEVICE, percent);
    added->rank = is_all ? -1 : rank;
    text_copy(added->host, sizeof(added->host), of->host);
    if (is_all) {
        snprintf(who, sizeof(who), "host %s", of->host);
    } else {
        snprintf(who, sizeof(who), "device %d of host %s (rank %d)", (int)of->local_rank, of->host, (int)rank);
    }
    snprintf(added->text, sizeof(added->text), "%s: every %s %s it takes %.1f %% longer", who, ends->value_class->name,
             does[ways], percent);
}

// With a single link, an endpoint's own speed is unknown.
static double expected(const struct ends *ends, const struct preflight_value *value)
{
    const struct end *sends = end_of(ends, value->first, SENDS), *receives = end_of(ends, value->second, RECEIVES);
    if (sends->links < 2 || receives->links < 2) {
        return ends->like;
    }
    return judge_percent(ends->value_class, sends->like, receives->like) > 0.0 ? receives->like : sends->like;
}

static void name_link(const struct ends *ends, const struct preflight_value *value)
{
    const struct preflight_rank *from = &ends->report->ranks[value->first], *to = &ends->report->ranks[value->second];
    double                       percent = judge_percent(ends->value_class, expected(ends, value), value->value);
    if (percent <= ends->value_class->limit_percent) {
        return;
    }
    struct preflight_outlier *added = judge_add(ends->report, ends->value_class, BLAME_LINK, percent);
    added->rank                     = value->first;
    added->other_rank               = value->second;
    text_copy(added->host, sizeof(added->host), from->host);
    text_copy(added->other_host, sizeof(added->other_host), to->host);
    snprintf(added->text, sizeof(added->text), "link %s -> %s (rank %d -> %d): %s takes %.1f %% longer", from->host,
             to->host, (int)value->first, (int)value->second, ends->value_class->name, percent);
}

void preflight_judge_links(struct preflight_report *report, const struct preflight_class *value_class)
{
    struct ends ends = {.report      = report,
                        .value_class = value_class,
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

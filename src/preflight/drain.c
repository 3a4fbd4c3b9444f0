// SPDX-License-Identifier: MIT
// Selects the hosts to drain, and the exit code.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

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
    report->drain = memory_resize(report->drain, (size_t)(report->drain_count + 1) * sizeof(*report->drain));
    text_copy(report->drain[report->drain_count++].host, sizeof(report->drain->host), host);
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

// A slow link goes out of use with one end: the one with more slow links, else the receiver.
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

void preflight_conclude(struct preflight_report *report)
{
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

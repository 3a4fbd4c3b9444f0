// SPDX-License-Identifier: MIT
// Which hosts a scheduler should take no more, and the exit code.
#include <math.h>
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

static bool is_open_link(const struct preflight_report *report, const struct preflight_outlier *outlier)
{
    return outlier->blame == BLAME_LINK && !is_drained(report, outlier->host) &&
           !is_drained(report, outlier->other_host);
}

static int64_t count_open_links(const struct preflight_report *report, const char *host)
{
    int64_t count = 0;
    for (int64_t i = 0; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier = &report->outliers[i];
        count += is_open_link(report, outlier) &&
                 (strcmp(outlier->host, host) == 0 || strcmp(outlier->other_host, host) == 0);
    }
    return count;
}

// Without one end nobody uses the link: the end with more slow links, else the one that receives.
static void drain_links(struct preflight_report *report)
{
    for (int64_t i = 0; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier = &report->outliers[i];
        if (is_open_link(report, outlier)) {
            bool sender = count_open_links(report, outlier->host) > count_open_links(report, outlier->other_host);
            drain(report, sender ? outlier->host : outlier->other_host);
        }
    }
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

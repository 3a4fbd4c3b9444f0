// SPDX-License-Identifier: MIT
// Writes preflight and acceptance as HTML pages.
#include <inttypes.h>
#include <math.h>

#include "gswbench/grid.h"
#include "gswbench/preflight.h"
#include "internal.h"

enum { CELL_BYTES = 160, CARDS = 3 };

static const struct grid_column outlier_columns[] = {
    {"blame", "blame", false},
    {"host", "host", false},
    {"slower by", "percent", true},
    {"finding", "text", false},
};
static const struct grid_column class_columns[] = {
    {"measurement", "name", false}, {"minimum", "minimum", true}, {"median", "median", true},
    {"maximum", "maximum", true},   {"unit", "unit", false},      {"profile", "profile", true},
    {"compared", "count", true},    {"note", "note", false},
};
static const struct grid_column run_columns[] = {
    {"step time", "kind", false},
    {"seconds", "seconds", true},
    {"95 % interval", "interval", true},
    {"remark", "remark", false},
};

static void fill_outliers(struct grid *grid, const struct preflight_report *report)
{
    for (int64_t i = 0; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier = &report->outliers[i];
        grid_add(grid, preflight_blame_names[outlier->blame]);
        grid_add(grid, outlier->host[0] != '\0' ? outlier->host : "-");
        grid_add_real(grid, "%.1f %%", outlier->percent);
        grid_add(grid, outlier->text);
    }
}

static void fill_classes(struct grid *grid, const struct preflight_report *report)
{
    for (int64_t i = 0; i < report->class_count; i++) {
        const struct preflight_class *row   = &report->classes[i];
        const struct flight_scale    *scale = flight_find_scale(row);
        char                          count[CELL_BYTES];
        snprintf(count, sizeof(count), "%" PRId64 " %s%s", row->value_count, preflight_subject_names[row->subject],
                 row->value_count == 1 ? "" : "s");
        grid_add(grid, row->name);
        grid_add_real(grid, "%.4g", row->minimum * scale->factor);
        grid_add_real(grid, "%.4g", row->median * scale->factor);
        grid_add_real(grid, "%.4g", row->maximum * scale->factor);
        grid_add(grid, scale->shown);
        grid_add_real(grid, "%.4g", row->profile * scale->factor);
        grid_add(grid, count);
        grid_add(grid, row->note[0] != '\0' ? row->note : "-");
    }
}

static void fill_run(struct grid *grid, const struct accept *accept)
{
    const struct result_acceptance *acceptance           = &accept->acceptance;
    char                            interval[CELL_BYTES] = "-", remark[CELL_BYTES] = "no run: the preflight decides";
    if (accept->step.count > 0) {
        snprintf(remark, sizeof(remark), "run %s, %s, %" PRId64 " steps", accept->run_id, accept->run_verdict,
                 accept->step.count);
    }
    if (!isnan(accept->step.low)) {
        snprintf(interval, sizeof(interval), "%.4g to %.4g", accept->step.low, accept->step.high);
    }
    grid_add(grid, "measured");
    grid_add_real(grid, "%.4g", accept->step.median);
    grid_add(grid, interval);
    grid_add(grid, remark);
    if (!isnan(acceptance->expected_seconds)) {
        snprintf(remark, sizeof(remark), "tolerance +-%.1f %%", acceptance->percent);
        grid_add(grid, acceptance->basis);
        grid_add_real(grid, "%.4g", acceptance->expected_seconds);
        grid_add(grid, "-");
        grid_add(grid, remark);
    }
}

static void describe(const struct preflight_report *report, char *text, size_t bytes)
{
    snprintf(text, bytes, "preflight of %s, %" PRId64 " rank%s, %s backend, %s communicator, %s UTC, %.1f s",
             report->config, report->rank_count, report->rank_count == 1 ? "" : "s", report->backend,
             report->communicator, report->started, report->seconds);
}

void flight_describe_drain(const char *hosts, char *text, size_t bytes)
{
    snprintf(text, bytes, "Hosts to drain: %s", hosts[0] != '\0' ? hosts : "none.");
}

void flight_write_page(struct page *page, const struct preflight_report *report, const struct page_card *own,
                       FILE *file)
{
    struct grid outliers = GRID_OF(outlier_columns), classes = GRID_OF(class_columns);
    char        subtitle[400];
    if (report == NULL) {
        page->cards      = own;
        page->card_count = own != NULL;
        page_write(page, file);
        return;
    }
    fill_outliers(&outliers, report);
    fill_classes(&classes, report);
    describe(report, subtitle, sizeof(subtitle));
    const struct page_card cards[CARDS] = {
        own != NULL ? *own : (struct page_card){"", "", NULL},
        {"Outliers", "", &outliers},
        {"Devices, links and groups",
         "A device or link is an outlier if it is slower than its peers by more than the limit of its measurement.",
         &classes}};
    page->subtitle   = subtitle;
    page->cards      = own != NULL ? cards : cards + 1;
    page->card_count = own != NULL ? CARDS : CARDS - 1;
    page_write(page, file);
    grid_free(&outliers);
    grid_free(&classes);
}

void preflight_write_html(const struct preflight_report *report, FILE *file)
{
    char        answer[160], hosts[1000] = "", drain[1024], count[24] = "No";
    bool        is_good = report->outlier_count == 0;
    int64_t     judged  = 0;
    struct page page    = {.title   = "Preflight",
                           .verdict = is_good ? "pass" : "outliers",
                           .style   = is_good ? "valid" : "invalid",
                           .answer  = answer,
                           .detail  = drain};
    for (int64_t i = 0; i < report->class_count; i++) {
        judged += report->classes[i].limit_percent > 0;
    }
    if (!is_good) {
        snprintf(count, sizeof(count), "%" PRId64, report->outlier_count);
    }
    snprintf(answer, sizeof(answer),
             "%s outlier%s among %" PRId64 " ranks: %" PRId64 " of %" PRId64 " measurements have a limit", count,
             report->outlier_count > 1 ? "s" : "", report->rank_count, judged, report->class_count);
    accept_add_drain(report, hosts, sizeof(hosts));
    flight_describe_drain(hosts, drain, sizeof(drain));
    flight_write_page(&page, report, NULL, file);
}

void accept_write_html(const struct accept *accept, FILE *file)
{
    struct grid run = GRID_OF(run_columns);
    char        drain[1200];
    struct page page = {.title   = "Acceptance of a machine",
                        .verdict = result_acceptance_names[accept->acceptance.verdict],
                        .style   = accept_styles[accept->acceptance.verdict],
                        .answer  = accept->acceptance.reason,
                        .detail  = drain};
    flight_describe_drain(accept->acceptance.drain, drain, sizeof(drain));
    fill_run(&run, accept);
    flight_write_page(&page, &accept->report, &(struct page_card){"The run", "", &run}, file);
    grid_free(&run);
}

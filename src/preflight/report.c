// SPDX-License-Identifier: MIT
// Stores the values of a report by class, and prints the report as text, as JSON and as an HTML page. Also prints the
// HTML page of an acceptance test.
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/json.h"
#include "gswbench/text.h"
#include "internal.h"

static const char *const subject_names[] = {
    [PREFLIGHT_DEVICE] = "device", [PREFLIGHT_LINK] = "link", [PREFLIGHT_GROUP] = "group", NULL};
static const char *const blame_names[] = {[BLAME_HOST]    = "host",
                                          [BLAME_DEVICE]  = "device",
                                          [BLAME_LINK]    = "link",
                                          [BLAME_GROUP]   = "group",
                                          [BLAME_ALL]     = "all",
                                          [BLAME_NUMBERS] = "numbers",
                                          NULL};

struct preflight_class *flight_add_class(struct flight *flight, enum preflight_subject subject, const char *unit,
                                         double limit_percent, const char *name)
{
    struct preflight_report *report = &flight->report;
    struct preflight_class  *added  = LIST_ADD(report->classes, report->class_count);
    *added = (struct preflight_class){.subject = subject, .limit_percent = limit_percent, .profile = NAN};
    text_copy(added->name, sizeof(added->name), name);
    text_copy(added->unit, sizeof(added->unit), unit);
    added->is_time = unit[0] == 's';
    return added;
}

// Returns the hash table slot of the value of these two ranks, or an empty slot if they have none (open addressing).
static int64_t *find_slot(const struct preflight_class *value_class, int64_t first, int64_t second)
{
    const int64_t ranks[] = {first, second}, mask = value_class->slot_count - 1;
    for (int64_t i = (int64_t)(XXH3_64bits(ranks, sizeof(ranks)) >> 1);; i++) {
        int64_t                      *slot  = &value_class->slots[i & mask];
        const struct preflight_value *value = &value_class->values[*slot - 1];
        if (*slot == 0 || (value->first == first && value->second == second)) {
            return slot;
        }
    }
}

// Doubles the hash table, which is full when half its slots are used, and inserts the values again.
static void grow(struct preflight_class *value_class)
{
    enum { MINIMUM = 64 };
    int64_t count = value_class->slot_count > 0 ? 2 * value_class->slot_count : MINIMUM;
    free(value_class->slots);
    value_class->slots      = memory_allocate((size_t)count * sizeof(*value_class->slots));
    value_class->slot_count = count;
    value_class->values     = memory_resize(value_class->values, (size_t)(count / 2) * sizeof(*value_class->values));
    for (int64_t i = 0; i < value_class->value_count; i++) {
        *find_slot(value_class, value_class->values[i].first, value_class->values[i].second) = i + 1;
    }
}

void flight_set_value(struct preflight_class *value_class, int64_t first, int64_t second, double value)
{
    if (2 * value_class->value_count == value_class->slot_count) {
        grow(value_class);
    }
    int64_t *slot = find_slot(value_class, first, second);
    if (*slot == 0) {
        *slot = ++value_class->value_count;
    }
    value_class->values[*slot - 1] = (struct preflight_value){.first = first, .second = second, .value = value};
}

void preflight_free(struct preflight_report *report)
{
    for (int64_t i = 0; i < report->class_count; i++) {
        free(report->classes[i].values);
        free(report->classes[i].slots);
    }
    free(report->classes);
    free(report->ranks);
    free(report->outliers);
    free(report->drain);
}

enum { OUTLIERS_SHOWN = 100 };

const struct flight_scale *flight_find_scale(const struct preflight_class *value_class)
{
    static const struct flight_scale scales[] = {{"F", "TFLOP/s", 1e-12}, {"F", "GFLOP/s", 1e-9}, {"b", "GB/s", 1e-9},
                                                 {"b", "MB/s", 1e-6},     {"s", "ms", 1e3},       {"s", "us", 1e6}};
    enum { SCALES = sizeof(scales) / sizeof(scales[0]) };
    for (int i = 0; i < SCALES; i++) {
        bool is_last = i + 1 == SCALES || scales[i + 1].unit[0] != value_class->unit[0];
        if (scales[i].unit[0] == value_class->unit[0] && (is_last || value_class->median * scales[i].factor >= 1.0)) {
            return &scales[i];
        }
    }
    return &scales[0];
}

static void write_class(const struct preflight_class *value_class, FILE *file)
{
    const struct flight_scale *scale = flight_find_scale(value_class);
    fprintf(file, "%s: %.4g / %.4g / %.4g %s, %" PRId64 " %s%s", value_class->name,
            value_class->minimum * scale->factor, value_class->median * scale->factor,
            value_class->maximum * scale->factor, scale->shown, value_class->value_count,
            subject_names[value_class->subject], value_class->value_count == 1 ? "" : "s");
    if (!isnan(value_class->profile)) {
        fprintf(file, "; profile %.4g", value_class->profile * scale->factor);
    }
    fprintf(file, "%s%s\n", value_class->note[0] != '\0' ? "; " : "", value_class->note);
}

static void write_lines(const struct preflight_report *report, FILE *file)
{
    fprintf(file,
            "# preflight of %s: %" PRId64 " rank%s, %s backend, %s communicator, %.1f s\n"
            "# minimum / median / maximum\n",
            report->config, report->rank_count, report->rank_count == 1 ? "" : "s", report->backend,
            report->communicator, report->seconds);
    fprintf(file, "numbers: %" PRId64 " ops and %" PRId64 " transfers of all ranks, ", report->examined_ops,
            report->examined_communications);
    if (report->op_bound == 0) {
        fprintf(file, "bit for bit\n");
    } else {
        fprintf(file, "bit for bit, or within %.2g of the norm for ops that are not deterministic\n", report->op_bound);
    }
    for (int64_t i = 0; i < report->class_count; i++) {
        write_class(&report->classes[i], file);
    }
    for (int64_t i = 0; i < report->outlier_count && i < OUTLIERS_SHOWN; i++) {
        fprintf(file, "outlier: %s\n", report->outliers[i].text);
    }
    if (report->outlier_count > OUTLIERS_SHOWN) {
        fprintf(file, "outlier: and %" PRId64 " more, see --json\n", report->outlier_count - OUTLIERS_SHOWN);
    }
}

void preflight_write_text(const struct preflight_report *report, FILE *file)
{
    struct text_stream text;
    text_stream_open(&text);
    write_lines(report, text.file);
    text_print_lines(file, &text);
    fprintf(file, "drain:%s", report->drain_count == 0 ? " none" : "");    // never wrapped, because scripts read it
    for (int64_t i = 0; i < report->drain_count; i++) {
        fprintf(file, "%s%s", i == 0 ? " " : ",", report->drain[i].host);
    }
    fprintf(file, "\n");
}

// clang-format off
static const struct json_field value_fields[] = {
    ROW_INTEGER(preflight_value, "first", first),
    ROW_INTEGER(preflight_value, "second", second),
    ROW_REAL(preflight_value, "value", value),
    JSON_END
};
static const struct json_field class_fields[] = {
    ROW_TEXT(preflight_class, "name", name),
    ROW_TEXT(preflight_class, "unit", unit),
    JSON_CHOICE(preflight_class, "subject", subject, subject_names),
    ROW_REAL(preflight_class, "limit_percent", limit_percent),
    ROW_TEXT(preflight_class, "note", note),
    ROW_REAL(preflight_class, "profile", profile),
    ROW_REAL(preflight_class, "minimum", minimum),
    ROW_REAL(preflight_class, "median", median),
    ROW_REAL(preflight_class, "maximum", maximum),
    JSON_LIST(preflight_class, "values", values, value_count, sizeof(struct preflight_value), value_fields),
    JSON_END
};
static const struct json_field outlier_fields[] = {
    JSON_CHOICE(preflight_outlier, "blame", blame, blame_names),
    ROW_TEXT(preflight_outlier, "host", host),
    ROW_TEXT(preflight_outlier, "other_host", other_host),
    ROW_INTEGER(preflight_outlier, "rank", rank),
    ROW_INTEGER(preflight_outlier, "other_rank", other_rank),
    ROW_TEXT(preflight_outlier, "class", class_name),
    ROW_REAL(preflight_outlier, "percent", percent),
    ROW_TEXT(preflight_outlier, "text", text),
    JSON_END
};
static const struct json_field rank_fields[] = {
    ROW_TEXT(preflight_rank, "host", host),
    ROW_INTEGER(preflight_rank, "node", node),
    ROW_INTEGER(preflight_rank, "local_rank", local_rank),
    JSON_END
};
static const struct json_field host_fields[] = {
    ROW_TEXT(preflight_host, "host", host),
    JSON_END
};

const struct json_field preflight_fields[] = {
    JSON_SCHEMA("gswbench.preflight/1"),
    ROW_TEXT(preflight_report, "version", version),
    ROW_TEXT(preflight_report, "config", config),
    ROW_TEXT(preflight_report, "device", device),
    ROW_TEXT(preflight_report, "backend", backend),
    ROW_TEXT(preflight_report, "communicator", communicator),
    ROW_TEXT(preflight_report, "started_utc", started),
    ROW_REAL(preflight_report, "wall_s", seconds),
    ROW_INTEGER(preflight_report, "exit_code", exit_code),
    ROW_INTEGER(preflight_report, "examined_ops", examined_ops),
    ROW_INTEGER(preflight_report, "examined_transfers", examined_communications),
    ROW_REAL(preflight_report, "op_bound", op_bound),
    ROW_REAL(preflight_report, "op_difference", op_difference),
    JSON_LIST(preflight_report, "drain", drain, drain_count, sizeof(struct preflight_host), host_fields),
    JSON_LIST(preflight_report, "outliers", outliers, outlier_count, sizeof(struct preflight_outlier), outlier_fields),
    JSON_LIST(preflight_report, "classes", classes, class_count, sizeof(struct preflight_class), class_fields),
    JSON_LIST(preflight_report, "ranks", ranks, rank_count, sizeof(struct preflight_rank), rank_fields),
    JSON_END
};
// clang-format on

void preflight_write_json(const struct preflight_report *report, FILE *file)
{
    json_write(preflight_fields, report, file);
}

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
        grid_add(grid, blame_names[outlier->blame]);
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
        snprintf(count, sizeof(count), "%" PRId64 " %s%s", row->value_count, subject_names[row->subject],
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

void flight_describe_drain(const char *hosts, char *text, size_t bytes)
{
    snprintf(text, bytes, "Hosts to drain: %s", hosts[0] != '\0' ? hosts : "none.");
}

void flight_write_page(struct page *page, const struct preflight_report *report, const struct page_card *own,
                       FILE *file)
{
    struct grid outliers = GRID_OF(outlier_columns), classes = GRID_OF(class_columns);
    char        subtitle[400];
    fill_outliers(&outliers, report);
    fill_classes(&classes, report);
    snprintf(subtitle, sizeof(subtitle),
             "preflight of %s, %" PRId64 " rank%s, %s backend, %s communicator, %s UTC, %.1f s", report->config,
             report->rank_count, report->rank_count == 1 ? "" : "s", report->backend, report->communicator,
             report->started, report->seconds);
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

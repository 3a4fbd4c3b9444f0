// SPDX-License-Identifier: MIT
// Stores the values of a report by class, and prints the report as text and JSON.
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/json.h"
#include "gswbench/preflight.h"
#include "gswbench/text.h"
#include "internal.h"

const char *const preflight_subject_names[] = {
    [PREFLIGHT_DEVICE] = "device", [PREFLIGHT_LINK] = "link", [PREFLIGHT_GROUP] = "group", NULL};
const char *const preflight_blame_names[] = {[BLAME_HOST]    = "host",
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

// Slot of these ranks' value, or the empty slot for it (open addressing).
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

// Keeps the table at most half full.
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
            preflight_subject_names[value_class->subject], value_class->value_count == 1 ? "" : "s");
    if (!isnan(value_class->profile)) {
        fprintf(file, "; profile %.4g", value_class->profile * scale->factor);
    }
    fprintf(file, "%s%s\n", value_class->note[0] != '\0' ? "; " : "", value_class->note);
}

void preflight_write_text(const struct preflight_report *report, FILE *file)
{
    fprintf(file,
            "# preflight of %s: %" PRId64 " rank%s, %s backend, %s communicator, %.1f s; minimum / median / maximum\n",
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
    fprintf(file, "drain:%s", report->drain_count == 0 ? " none" : "");
    for (int64_t i = 0; i < report->drain_count; i++) {
        fprintf(file, "%s%s", i == 0 ? " " : ",", report->drain[i].host);
    }
    fprintf(file, "\n");
}

// clang-format off
#define TEXT(owner, field)           JSON_FIELD(owner, JSON_FIELD_TEXT, #field, field)
#define INTEGER(owner, field)        JSON_FIELD(owner, JSON_FIELD_INTEGER, #field, field)
#define REAL(owner, field)           JSON_FIELD(owner, JSON_FIELD_REAL, #field, field)
#define CHOICE(owner, field, names)  JSON_CHOICE(owner, #field, field, names)
#define LIST(owner, key, element, list, count, fields) \
    JSON_LIST(owner, key, list, count, sizeof(struct element), fields)

static const struct json_field values[] = {
    INTEGER(preflight_value, first),
    INTEGER(preflight_value, second),
    REAL(preflight_value, value),
    JSON_END
};
static const struct json_field classes[] = {
    TEXT(preflight_class, name),
    TEXT(preflight_class, unit),
    CHOICE(preflight_class, subject, preflight_subject_names),
    REAL(preflight_class, limit_percent),
    TEXT(preflight_class, note),
    REAL(preflight_class, profile),
    REAL(preflight_class, minimum),
    REAL(preflight_class, median),
    REAL(preflight_class, maximum),
    LIST(preflight_class, "values", preflight_value, values, value_count, values),
    JSON_END
};
static const struct json_field outliers[] = {
    CHOICE(preflight_outlier, blame, preflight_blame_names),
    TEXT(preflight_outlier, host),
    TEXT(preflight_outlier, other_host),
    INTEGER(preflight_outlier, rank),
    INTEGER(preflight_outlier, other_rank),
    JSON_FIELD(preflight_outlier, JSON_FIELD_TEXT, "class", class_name),
    REAL(preflight_outlier, percent),
    TEXT(preflight_outlier, text),
    JSON_END
};
static const struct json_field ranks[] = {
    TEXT(preflight_rank, host),
    INTEGER(preflight_rank, node),
    INTEGER(preflight_rank, local_rank),
    JSON_END
};
static const struct json_field hosts[] = {
    TEXT(preflight_host, host),
    JSON_END
};

const struct json_field preflight_fields[] = {
    JSON_SCHEMA("gswbench.preflight/1"),
    TEXT(preflight_report, version),
    TEXT(preflight_report, config),
    TEXT(preflight_report, device),
    TEXT(preflight_report, backend),
    TEXT(preflight_report, communicator),
    JSON_FIELD(preflight_report, JSON_FIELD_TEXT, "started_utc", started),
    JSON_FIELD(preflight_report, JSON_FIELD_REAL, "wall_s", seconds),
    INTEGER(preflight_report, exit_code),
    INTEGER(preflight_report, examined_ops),
    JSON_FIELD(preflight_report, JSON_FIELD_INTEGER, "examined_transfers", examined_communications),
    REAL(preflight_report, op_bound),
    REAL(preflight_report, op_difference),
    LIST(preflight_report, "drain", preflight_host, drain, drain_count, hosts),
    LIST(preflight_report, "outliers", preflight_outlier, outliers, outlier_count, outliers),
    LIST(preflight_report, "classes", preflight_class, classes, class_count, classes),
    LIST(preflight_report, "ranks", preflight_rank, ranks, rank_count, ranks),
    JSON_END
};
// clang-format on

void preflight_write_json(const struct preflight_report *report, FILE *file)
{
    json_t *document = json_from_struct(preflight_fields, report);
    json_print(document, file);
    json_decref(document);
}

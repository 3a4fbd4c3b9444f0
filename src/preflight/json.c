// SPDX-License-Identifier: MIT
// Writes a report as JSON, from a table of its fields.
#include <stddef.h>

#include "gswbench/json.h"
#include "gswbench/preflight.h"

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
    INTEGER(preflight_report, examined_transfers),
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

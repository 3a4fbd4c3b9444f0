// SPDX-License-Identifier: MIT
// A comparison for programs, schema "gswbench.comparison/1".
#include <stddef.h>

#include "gswbench/comparison.h"
#include "gswbench/json.h"
#include "gswbench/result_json.h"
#include "internal.h"

// clang-format off
#define FIELD(kind, key, field)      JSON_FIELD(comparison, kind, key, field)
#define OF_SETTING(kind, key, field) JSON_FIELD(comparison_setting, kind, key, field)
#define OF_ROW(kind, key, field)     JSON_FIELD(comparison_row, kind, key, field)
#define CURVE(field)                                          \
    FIELD(JSON_FIELD_REAL, "largest", field.largest),           \
    FIELD(JSON_FIELD_INTEGER, "largest_step", field.largest_step), \
    FIELD(JSON_FIELD_REAL, "last", field.last),                 \
    FIELD(JSON_FIELD_INTEGER, "last_step", field.last_step)

static const struct json_field step[] = {
    { "verdict", JSON_FIELD_CHOICE, offsetof(struct comparison, step.verdict), 0, statistics_change_names, NULL, 0, 0 },
    FIELD(JSON_FIELD_REAL, "speedup", step.speedup),
    FIELD(JSON_FIELD_INTERVAL, "speedup_ci", step.low),
    FIELD(JSON_FIELD_REAL, "relative_change", step.relative),
    FIELD(JSON_FIELD_REAL, "margin", step.margin),
    JSON_END
};
static const struct json_field loss[]          = { CURVE(loss), JSON_END };
static const struct json_field gradient_norm[] = { CURVE(gradient_norm), JSON_END };
static const struct json_field settings[] = {
    OF_SETTING(JSON_FIELD_TEXT, "name", name),
    OF_SETTING(JSON_FIELD_TEXT, "first", first),
    OF_SETTING(JSON_FIELD_TEXT, "second", second),
    OF_SETTING(JSON_FIELD_BOOLEAN, "is_obstacle", is_obstacle),
    JSON_END
};
static const struct json_field rows[] = {
    OF_ROW(JSON_FIELD_TEXT, "name", name),
    OF_ROW(JSON_FIELD_REAL, "first_s", first),
    OF_ROW(JSON_FIELD_REAL, "second_s", second),
    JSON_END
};
static const struct json_field fields[] = {
    JSON_OBJECT("step_time", step),
    JSON_OBJECT("loss_difference", loss),
    JSON_OBJECT("grad_norm_difference", gradient_norm),
    { "settings", JSON_FIELD_LIST, offsetof(struct comparison, settings), sizeof(struct comparison_setting), NULL,
      settings, offsetof(struct comparison, setting_count), 0 },
    { "parts", JSON_FIELD_LIST, offsetof(struct comparison, parts), sizeof(struct comparison_row), NULL, rows,
      offsetof(struct comparison, part_count), 0 },
    { "families", JSON_FIELD_LIST, offsetof(struct comparison, families), sizeof(struct comparison_row), NULL, rows,
      offsetof(struct comparison, family_count), 0 },
    FIELD(JSON_FIELD_REAL, "pace", pace),
    JSON_END
};
// clang-format on

static json_t *describe(const struct result *result)
{
    json_t *side =
        json_pack("{s:s, s:I}", "precision", result->precision, "allocated_bytes", (json_int_t)result->allocated_bytes);
    json_object_set_new(side, "result", result_figures_to_json(result));
    return side;
}

bool comparison_write_json(const struct comparison *comparison, FILE *file)
{
    json_t *document = json_object();
    json_object_set_new(document, "schema", json_string("gswbench.comparison/1"));
    json_object_set_new(document, "first", describe(comparison->first));
    json_object_set_new(document, "second", describe(comparison->second));
    json_object_update_missing_new(document, json_from_struct(fields, comparison));
    bool written = json_print(document, file);
    json_decref(document);
    return written;
}

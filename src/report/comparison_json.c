// SPDX-License-Identifier: MIT
// Writes a comparison as JSON, schema "gswbench.comparison/2".
#include <stddef.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/comparison.h"
#include "gswbench/json.h"
#include "gswbench/text.h"
#include "internal.h"

// clang-format off
#define FIGURES(key, field) JSON_REFERENCE(side, JSON_FIELD_OBJECT, key, field, result_figure_fields)
#define CURVE(field)                                          \
    ROW_REAL(comparison, "largest", field.largest),           \
    ROW_INTEGER(comparison, "largest_step", field.largest_step), \
    ROW_REAL(comparison, "last", field.last),                 \
    ROW_INTEGER(comparison, "last_step", field.last_step)

static const struct json_field step[] = {
    JSON_CHOICE(comparison, "verdict", step.verdict, statistics_change_names),
    ROW_REAL(comparison, "speedup", step.speedup),
    ROW_INTERVAL(comparison, "speedup_ci", step.low),
    ROW_REAL(comparison, "relative_change", step.relative),
    ROW_REAL(comparison, "margin", step.margin),
    JSON_END
};
static const struct json_field loss[]          = { CURVE(loss), JSON_END };
static const struct json_field gradient_norm[] = { CURVE(gradient_norm), JSON_END };
static const struct json_field settings[] = {
    ROW_TEXT(comparison_setting, "name", name),
    ROW_TEXT(comparison_setting, "first", first),
    ROW_TEXT(comparison_setting, "second", second),
    ROW_BOOLEAN(comparison_setting, "is_obstacle", is_obstacle),
    JSON_END
};
static const struct json_field rows[] = {
    ROW_TEXT(comparison_row, "name", name),
    ROW_REAL(comparison_row, "first_s", first),
    ROW_REAL(comparison_row, "second_s", second),
    JSON_END
};
// One of the two compared results. As in result.json, the verdict determines the key of the figures. Only the pointer
// for this key points to the figures. The other three are NULL and are written as null.
struct side {
    struct result                result;
    const struct result_figures *figures[4];    // one for each of result_figures_keys
};
struct document {
    struct comparison comparison;
    struct side       first, second;
};
static const struct json_field side_fields[] = {
    ROW_TEXT(result, "run_id", run_id),
    JSON_CHOICE(result, "status", verdict, result_verdict_names),
    ROW_INTEGER(result, "ranks", mesh.world),
    ROW_TEXT(result, "precision", precision),
    ROW_INTEGER(result, "allocated_bytes", allocated_bytes),
    FIGURES("result", figures[0]),
    FIGURES("emulated", figures[1]),
    FIGURES("predicted", figures[2]),
    FIGURES("unverified", figures[3]),
    JSON_END
};
static const struct json_field repeats[] = {
    ROW_INTEGER(comparison_repeats, "runs", runs),
    ROW_REAL(comparison_repeats, "spread", spread),
    JSON_END
};
const struct json_field comparison_fields[] = {
    JSON_SCHEMA("gswbench.comparison/2"),
    JSON_MEMBER(document, "first", first, side_fields),
    JSON_MEMBER(document, "second", second, side_fields),
    JSON_MEMBER(comparison, "first_repeats", repeats[0], repeats),
    JSON_MEMBER(comparison, "second_repeats", repeats[1], repeats),
    ROW_REAL(comparison, "work", work),
    JSON_OBJECT("step_time", step),
    JSON_OBJECT("loss_difference", loss),
    JSON_OBJECT("grad_norm_difference", gradient_norm),
    JSON_LIST(comparison, "settings", settings, setting_count, sizeof(struct comparison_setting), settings),
    JSON_LIST(comparison, "parts", parts, part_count, sizeof(struct comparison_row), rows),
    JSON_LIST(comparison, "families", families, family_count, sizeof(struct comparison_row), rows),
    ROW_REAL(comparison, "pace", pace),
    JSON_END
};
struct several {
    const struct document *list;
    int64_t                count;
};
const struct json_field comparisons_fields[] = {
    JSON_SCHEMA("gswbench.comparisons/1"),
    JSON_LIST(several, "comparisons", list, count, sizeof(struct document), comparison_fields),
    JSON_END
};
// clang-format on

static struct side describe(const struct result *result)
{
    struct side side                                                          = {.result = *result};
    side.figures[text_index(result_figures_key(result), result_figures_keys)] = &result->figures;
    return side;
}

bool comparison_write_json(const struct comparison *list, int64_t count, FILE *file)
{
    struct document *documents = memory_allocate((size_t)count * sizeof(*documents));
    for (int64_t i = 0; i < count; i++) {
        documents[i] = (struct document){
            .comparison = list[i], .first = describe(list[i].first), .second = describe(list[i].second)};
    }
    const struct several several = {.list = documents, .count = count};
    bool                 written =
        count == 1 ? json_write(comparison_fields, documents, file) : json_write(comparisons_fields, &several, file);
    free(documents);
    return written;
}

// SPDX-License-Identifier: MIT
// A results table as JSON.
#include <stddef.h>

#include "gswbench/json.h"
#include "gswbench/table.h"

// clang-format off
#define FIELD(kind, key, field) JSON_FIELD(table_row, kind, key, field)

static const struct json_field rows[] = {
    FIELD(JSON_FIELD_TEXT, "config", key.config),
    FIELD(JSON_FIELD_INTEGER, "ranks", key.ranks),
    FIELD(JSON_FIELD_TEXT, "precision", key.precision),
    FIELD(JSON_FIELD_TEXT, "layout", key.layout),
    FIELD(JSON_FIELD_TEXT, "device", key.device),
    FIELD(JSON_FIELD_TEXT, "verdict", key.verdict),
    FIELD(JSON_FIELD_INTEGER, "layers", key.layers),
    FIELD(JSON_FIELD_INTEGER, "sequence", key.sequence),
    FIELD(JSON_FIELD_INTEGER, "global_batch", key.global_batch),
    FIELD(JSON_FIELD_INTEGER, "runs", runs),
    FIELD(JSON_FIELD_REAL, "step_s", step_seconds),
    FIELD(JSON_FIELD_REAL, "spread", spread),
    FIELD(JSON_FIELD_REAL, "tokens_per_s", tokens_per_second),
    FIELD(JSON_FIELD_REAL, "mfu", mfu),
    FIELD(JSON_FIELD_REAL, "efficiency", efficiency),
    FIELD(JSON_FIELD_REAL, "published_ratio", published_ratio),
    FIELD(JSON_FIELD_REAL, "expected_ratio", expected_ratio),
    JSON_END
};
const struct json_field table_fields[] = {
    JSON_SCHEMA("gswbench.table/3"),
    JSON_LIST(table, "rows", rows, row_count, sizeof(struct table_row), rows),
    JSON_END
};
// clang-format on

void table_write_json(const struct table *table, FILE *file)
{
    json_t *document = json_from_struct(table_fields, table);
    json_print(document, file);
    json_decref(document);
}

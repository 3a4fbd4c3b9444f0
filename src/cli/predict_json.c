// SPDX-License-Identifier: MIT
// Field tables of gswbench predict --json.
#include <stdlib.h>

#include "gswbench/json.h"
#include "predict.h"

// A row; "predicted" is null if there is no prediction.
struct described {
    struct predict_row        row;
    const struct predict_row *predicted;
};

// clang-format off
#define FIELD(kind, key, field) JSON_FIELD(described, kind, key, row.field)
#define OF_PREDICTED(kind, key, field) JSON_FIELD(predict_row, kind, key, field)

static const struct json_field predicted_fields[] = {
    OF_PREDICTED(JSON_FIELD_REAL, "step_s", prediction.step_seconds),
    OF_PREDICTED(JSON_FIELD_REAL, "range_percent", range.percent),
    OF_PREDICTED(JSON_FIELD_REAL, "tokens_per_s", tokens_per_second),
    OF_PREDICTED(JSON_FIELD_REAL, "mfu", mfu),
    OF_PREDICTED(JSON_FIELD_REAL, "error_percent", error_percent),
    OF_PREDICTED(JSON_FIELD_INTEGER, "largest_bytes", prediction.largest_bytes),
    JSON_MEMBER(predict_row, "footprint_bytes", prediction.footprint, footprint_fields),
    OF_PREDICTED(JSON_FIELD_REAL, "memory_error_percent", memory_error_percent),
    OF_PREDICTED(JSON_FIELD_BOOLEAN, "fits_device", fits),
    OF_PREDICTED(JSON_FIELD_INTEGER, "busiest_stage", prediction.busiest_stage),
    JSON_MEMBER(predict_row, "parts_s", explanation.waterfall, waterfall_fields),
    OF_PREDICTED(JSON_FIELD_LINES, "warnings", warnings.text),
    JSON_END
};
static const struct json_field row_fields[] = {
    FIELD(JSON_FIELD_TEXT, "config", job.config.name),
    FIELD(JSON_FIELD_INTEGER, "ranks", job.request.mesh.world),
    JSON_CHOICE(described, "precision", row.job.config.precision.compute, precision_compute_names),
    FIELD(JSON_FIELD_TEXT, "layout", layout),
    FIELD(JSON_FIELD_TEXT, "profile", job.config.hardware.profile),
    FIELD(JSON_FIELD_TEXT, "software", job.config.software.profile),
    FIELD(JSON_FIELD_REAL, "published_step_s", published_seconds),
    FIELD(JSON_FIELD_BOOLEAN, "fitted", job.config.published.fitted),
    FIELD(JSON_FIELD_TEXT, "reason", support.text),
    JSON_REFERENCE(described, JSON_FIELD_OBJECT, "predicted", predicted, predicted_fields),
    JSON_END
};
struct document {
    json_t *list;
};
const struct json_field cli_predict_fields[] = {
    JSON_SCHEMA("gswbench.predict/3"),
    JSON_ARRAY(document, "rows", list, row_fields),
    JSON_END
};
// clang-format on

json_t *predict_describe(const struct predict_row *row)
{
    struct described *described = memory_allocate(sizeof(*described));
    *described                  = (struct described){.row = *row, .predicted = failed(&row->support) ? NULL : row};
    json_t *json                = json_from_struct(row_fields, described);
    free(described);
    return json;
}

void predict_print_json(json_t *list)
{
    cli_print_json(json_from_struct(cli_predict_fields, &(struct document){.list = list}));
}

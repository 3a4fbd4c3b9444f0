// SPDX-License-Identifier: MIT
// Field tables of gswbench check --json.
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "gswbench/layers.h"

// A row, with fields that are null if they do not apply.
struct described {
    struct checked        row;
    const struct checked *plan;                 // NULL: this version cannot run it
    double                step_seconds, mfu;    // published; NaN: not published
    int64_t               parameters, active_parameters;
    bool                  is_supported;
};

// clang-format off
#define FIELD(kind, key, field)    JSON_FIELD(described, kind, key, field)
#define OF_PLAN(kind, key, field)  JSON_FIELD(checked, kind, key, field)
#define VERIFIED(key, field)       OF_PLAN(JSON_FIELD_INTEGER, key, proof.field)

static const struct json_field verified[] = {
    VERIFIED("ranks", world),
    VERIFIED("built", built),
    VERIFIED("distinct", distinct),
    VERIFIED("ops", ops),
    VERIFIED("transfers", transfers),
    JSON_END
};
static const struct json_field plan[] = {
    OF_PLAN(JSON_FIELD_INTEGER, "ops", proof.largest_ops),
    OF_PLAN(JSON_FIELD_INTEGER, "total_bytes", proof.largest_bytes),
    JSON_MEMBER(checked, "storage_bytes", proof.largest_storage_bytes, plan_storage_fields),
    OF_PLAN(JSON_FIELD_INTEGER, "quantized_bytes", proof.largest_quantized_bytes),
    OF_PLAN(JSON_FIELD_INTEGER, "connection_bytes", connection_bytes),
    OF_PLAN(JSON_FIELD_TEXT, "ctas_warning", excess),
    JSON_REFERENCE(checked, JSON_FIELD_BOOLEAN, "fits_device", fits, NULL),
    JSON_OBJECT("verified", verified),
    JSON_END
};
static const struct json_field batch[] = {
    FIELD(JSON_FIELD_INTEGER, "sequence", row.job.config.train.sequence),
    FIELD(JSON_FIELD_INTEGER, "micro_batch", row.job.config.train.micro_batch),
    FIELD(JSON_FIELD_INTEGER, "accumulation", row.job.config.train.accumulation),
    FIELD(JSON_FIELD_INTEGER, "global_batch", row.job.config.train.global_batch),
    JSON_END
};
static const struct json_field published[] = {
    FIELD(JSON_FIELD_TEXT, "source", row.job.config.published.source),
    FIELD(JSON_FIELD_REAL, "step_s", step_seconds),
    FIELD(JSON_FIELD_REAL, "mfu", mfu),
    FIELD(JSON_FIELD_REAL, "derived_mfu", row.published_mfu),
    FIELD(JSON_FIELD_REAL, "derived_tokens_per_s", row.published_tokens),
    JSON_END
};
static const struct json_field row_fields[] = {
    FIELD(JSON_FIELD_INTEGER, "ranks", row.job.request.mesh.world),
    JSON_CHOICE(described, "precision", row.job.config.precision.compute, precision_compute_names),
    FIELD(JSON_FIELD_INTEGER, "layers", row.job.config.model.layers),
    FIELD(JSON_FIELD_INTEGER, "parameters", parameters),
    FIELD(JSON_FIELD_INTEGER, "active_parameters", active_parameters),
    JSON_MEMBER(described, "flops_per_sequence", row.flops, model_flop_fields),
    FIELD(JSON_FIELD_TEXT, "layout", row.layout),
    JSON_OBJECT("batch", batch),
    JSON_OBJECT("published", published),
    JSON_REFERENCE(described, JSON_FIELD_TEXT, "warning", row.warning, NULL),
    FIELD(JSON_FIELD_BOOLEAN, "supported", is_supported),
    FIELD(JSON_FIELD_TEXT, "reason", row.job.support.text),
    JSON_REFERENCE(described, JSON_FIELD_OBJECT, "plan", plan, plan),
    JSON_END
};
const struct json_field cli_check_fields[] = {
    JSON_SCHEMA("gswbench.check/1"),
    JSON_REFERENCE(check_document, JSON_FIELD_TEXT, "config", config, NULL),
    JSON_ARRAY(check_document, "rows", rows, row_fields),
    JSON_END
};
// clang-format on

static double known(double value)
{
    return value == 0.0 ? NAN : value;
}

json_t *check_describe(const struct checked *checked)
{
    const struct config *config    = &checked->job.config;
    struct described    *described = memory_allocate(sizeof(*described));
    *described                     = (struct described){.row               = *checked,
                                                        .plan              = failed(&checked->job.support) ? NULL : checked,
                                                        .step_seconds      = known(config->published.step_seconds),
                                                        .mfu               = known(config->published.mfu_percent) / 100,
                                                        .parameters        = layers_parameters(&config->model),
                                                        .active_parameters = layers_active_parameters(&config->model),
                                                        .is_supported      = !failed(&checked->job.support)};
    json_t *json                   = json_from_struct(row_fields, described);
    free(described);
    return json;
}

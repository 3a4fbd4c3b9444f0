// SPDX-License-Identifier: MIT
// Table of the derived figures in result.json. They are written only: a reader derives them again.
#include <stddef.h>

#include "gswbench/result_json.h"
#include "internal.h"

// clang-format off
#define INTERVAL(owner, key, field) JSON_FIELD(owner, JSON_FIELD_INTERVAL, key, field)

static const struct json_field step_time[] = {
    INTEGER(result_figures, "n", step.count),
    INTEGER(result_figures, "warmup", warmup_steps),
    REAL(result_figures, "median", step.median),
    INTERVAL(result_figures, "ci95", step.low),
    REAL(result_figures, "mean", step.mean),
    REAL(result_figures, "min", step.minimum),
    REAL(result_figures, "max", step.maximum),
    REAL(result_figures, "p05", step.p05),
    REAL(result_figures, "p95", step.p95),
    REAL(result_figures, "cv", step.variation),
    REAL(result_figures, "drift_per_step", step.drift),
    INTEGER(result_figures, "outliers", step.outliers),
    JSON_END
};
const struct json_field result_figure_fields[] = {
    JSON_OBJECT("step_time_s", step_time),
    REAL(result_figures, "last_step_s", last_step_seconds),
    REAL(result_figures, "mean_35_44_s", mean_35_44_seconds),
    REAL(result_figures, "tokens_per_step", tokens_per_step),
    REAL(result_figures, "tokens_per_s", tokens_per_second),
    REAL(result_figures, "tokens_per_s_per_device", tokens_per_second_per_rank),
    JSON_CHOICE(result_figures, "flop_convention", convention, model_flop_names),
    REAL(result_figures, "tflops_per_device", teraflops_per_rank),
    JSON_MEMBER(result_figures, "mfu", utilization, model_flop_fields),
    REAL(result_figures, "days_1t", days_per_trillion_tokens),
    REAL(result_figures, "energy_j_per_step", joules_per_step),
    REAL(result_figures, "tokens_per_j", tokens_per_joule),
    REAL(result_figures, "published_ratio", published_ratio),
    JSON_END
};
// clang-format on

json_t *result_figures_to_json(const struct result *result)
{
    return json_from_struct(result_figure_fields, &result->figures);
}

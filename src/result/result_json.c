// SPDX-License-Identifier: MIT
// Field tables of result.json.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/json.h"
#include "gswbench/number.h"
#include "gswbench/result_json.h"
#include "internal.h"

#define DOCUMENT "gswbench.result/"
#define NUMBER   "5"

// clang-format off
#define MAP(key, list) \
    JSON_ROW(key, JSON_FIELD_MAP, offsetof(struct result, list), sizeof(struct result_entry), NULL, NULL, \
             offsetof(struct result, list##_count), offsetof(struct result_entry, value))

static const struct json_field tool[] = {
    TEXT(result, "version", version),
    TEXT(result, "compiler", compiler),
    INTEGER(result, "method", method),
    JSON_END
};
#define AXIS_SIZE(NAME, key, ...) INTEGER(result, #key, mesh.asked[AXIS_##NAME]),
static const struct json_field layout[] = {
    INTEGER(result, "ranks", mesh.world),
    AXES(AXIS_SIZE)
    INTEGER(result, "etp", mesh.etp),
    INTEGER(result, "vp", mesh.vp),
    INTEGER(result, "sequence", sequence),
    INTEGER(result, "micro_batch", micro_batch),
    INTEGER(result, "global_batch", global_batch),
    INTEGER(result, "accumulation", accumulation),
    JSON_END
};
static const struct json_field model[] = {
    INTEGER(result, "layers", layers),
    BOOLEAN(result, "is_proxy", is_proxy),
    INTEGER(result, "parameters", parameters),
    INTEGER(result, "active_parameters", active_parameters),
    JSON_MEMBER(result, "flops_per_sequence", flops_per_sequence, model_flop_fields),
    JSON_END
};
static const struct json_field published[] = {
    TEXT(result, "source", published_source),
    REAL(result, "step_s", published_seconds),
    REAL(result, "mfu", published_mfu),
    REAL(result, "peak_flops", published_peak),
    JSON_END
};
static const struct json_field config[] = {
    TEXT(result, "name", config_name),
    TEXT(result, "path", config_path),
    TEXT(result, "xxh3", config_hash),
    TEXT(result, "precision", precision),
    INTEGER(result, "steps", planned_steps),
    INTEGER(result, "warmup", planned_warmup),
    JSON_OBJECT("layout", layout),
    JSON_OBJECT("model", model),
    JSON_OBJECT("published", published),
    MAP("merged", config),
    JSON_END
};
static const struct json_field attention[] = {
    TEXT(result, "provider", attention.provider),
    TEXT(result, "library", attention.library),
    TEXT(result, "engines", attention.engines),
    TEXT(result, "refusal", attention.refusal),
    JSON_END
};
static const struct json_field device[] = {
    TEXT(result, "communicator", communicator),
    TEXT(result, "backend", backend),
    TEXT(result, "device", device),
    BOOLEAN(result, "computes", computes),
    JSON_OBJECT("attention", attention),
    REAL(result, "peak_flops", peak),
    TEXT(result, "peak_source", peak_source),
    JSON_END
};
static const struct json_field memory[] = {
    JSON_MEMBER(result, "storage_bytes", storage_bytes, plan_storage_fields),
    INTEGER(result, "activation_live_bytes", live_bytes),
    INTEGER(result, "allocated_bytes", allocated_bytes),
    INTEGER(result, "connection_bytes", connection_bytes),
    LIST("course", result_moment, moment, moment_fields),
    JSON_END
};
static const struct json_field preparation[] = {
    REAL(result, "tune_s", tune_seconds),
    REAL(result, "connect_s", connect_seconds),
    REAL(result, "capture_s", capture_seconds),
    REAL(result, "eager_step_s", eager_seconds),
    REAL(result, "captured_step_s", replay_seconds),
    JSON_END
};
static const struct json_field phase_flops[] = {
    REAL(result, "forward", flops[PHASE_FORWARD]),
    REAL(result, "recompute", flops[PHASE_RECOMPUTE]),
    REAL(result, "backward", flops[PHASE_BACKWARD]),
    REAL(result, "reduce", flops[PHASE_REDUCE]),
    REAL(result, "optimizer", flops[PHASE_OPTIMIZER]),
    JSON_END
};
static const struct json_field transfers[] = {
    TEXT(result_transfer, "kind", kind),
    TEXT(result_transfer, "axes", axes),
    TEXT(result_transfer, "dtype", format),
    INTEGER(result_transfer, "elements", elements),
    INTEGER(result_transfer, "group_size", group_size),
    INTEGER(result_transfer, "count", count),
    REAL(result_transfer, "bytes", bytes),
    JSON_END
};
static const struct json_field ops[] = {
    TEXT(result_kind, "kind", kind),
    INTEGER(result_kind, "count", count),
    JSON_END
};
static const struct json_field plan[] = {
    INTEGER(result, "tensors", tensor_count),
    INTEGER(result, "ops", op_count),
    JSON_OBJECT("flops", phase_flops),
    LIST("kinds", result_kind, kind, ops),
    LIST("transfers", result_transfer, transfer, transfers),
    JSON_END
};
static const struct json_field emulation[] = {
    INTEGER(result, "stages", emulation.stages),
    INTEGER(result, "executed", emulation.executed),
    INTEGER(result, "ops", emulation.ops),
    INTEGER(result, "measured_ops", emulation.measured_ops),
    REAL(result, "measured_share", emulation.measured_share),
    JSON_END
};
static const struct json_field acceptance[] = {
    JSON_CHOICE(result, "verdict", acceptance.verdict, result_acceptance_names),
    TEXT(result, "basis", acceptance.basis),
    REAL(result, "expected_s", acceptance.expected_seconds),
    REAL(result, "percent", acceptance.percent),
    INTEGER(result, "outliers", acceptance.outliers),
    TEXT(result, "drain", acceptance.drain),
    TEXT(result, "reason", acceptance.reason),
    JSON_END
};
static const struct json_field checkpoint[] = {
    INTEGER(result, "first_step", checkpoint.first_step),
    REAL(result, "load_s", checkpoint.load_seconds),
    REAL(result, "load_bytes", checkpoint.load_bytes),
    REAL(result, "load_bytes_per_s", checkpoint.load_bandwidth),
    INTEGER(result, "saves", checkpoint.saves),
    REAL(result, "save_s", checkpoint.save_seconds),
    REAL(result, "save_bytes", checkpoint.save_bytes),
    REAL(result, "save_bytes_per_s", checkpoint.save_bandwidth),
    REAL(result, "stall_s", checkpoint.stall_seconds),
    INTEGER(result, "steps_beside", checkpoint.steps_beside),
    REAL(result, "step_beside_s_median", checkpoint.beside_seconds),
    REAL(result, "step_other_s_median", checkpoint.other_seconds),
    JSON_END
};
static const struct json_field reasons[] = {
    TEXT(result_reason, "id", id),
    JSON_CHOICE(result_reason, "verdict", verdict, result_verdict_names),
    INTEGER(result_reason, "rank", rank),
    INTEGER(result_reason, "step", step),
    TEXT(result_reason, "message", message),
    JSON_END
};
static const struct json_field steps[] = {
    INTEGER(result_step, "i", index),
    JSON_CHOICE(result_step, "phase", phase, result_phase_names),
    REAL(result_step, "time_s", seconds),
    REAL(result_step, "rank0_time_s", rank0_seconds),
    REAL(result_step, "device_time_s", device_seconds),
    INTEGER(result_step, "slowest_rank", slowest_rank),
    REAL(result_step, "loss", loss),
    REAL(result_step, "prediction_loss", prediction_loss),
    REAL(result_step, "grad_norm", gradient_norm),
    REAL(result_step, "dropped", dropped),
    BOOLEAN(result_step, "run_twice", is_run_twice),
    BOOLEAN(result_step, "outlier", is_outlier),
    JSON_END
};
static const struct json_field last_load[] = {
    REAL(result_layer, "busiest", last[LOAD_BUSIEST]),
    REAL(result_layer, "idlest", last[LOAD_IDLEST]),
    REAL(result_layer, "dropped", last[LOAD_DROPPED]),
    REAL(result_layer, "auxiliary_loss", last[LOAD_AUXILIARY]),
    JSON_END
};
static const struct json_field mean_load[] = {
    REAL(result_layer, "busiest", mean[LOAD_BUSIEST]),
    REAL(result_layer, "idlest", mean[LOAD_IDLEST]),
    REAL(result_layer, "dropped", mean[LOAD_DROPPED]),
    REAL(result_layer, "auxiliary_loss", mean[LOAD_AUXILIARY]),
    JSON_END
};
static const struct json_field layer_loads[] = {
    INTEGER(result_layer, "layer", layer),
    JSON_OBJECT("last", last_load),
    JSON_OBJECT("mean", mean_load),
    JSON_END
};
static const struct json_field deviations[] = {
    TEXT(result_deviation, "name", name),
    TEXT(result_deviation, "value", value),
    INTEGER(result_deviation, "count", count),
    TEXT(result_deviation, "ranks", ranks),
    TEXT(result_deviation, "host", host),
    JSON_END
};
static const struct json_field validation[] = {
    REAL(result, "wall_s", wall_seconds),
    INTEGER(result, "step_allocations", step_allocations),
    REAL(result, "start_loss", start_loss),
    REAL(result, "start_loss_margin", start_loss_margin),
    TEXT(result, "verify", verify),
    INTEGER(result, "examined_transfers", examined_transfers),
    INTEGER(result, "examined_ops", examined_ops),
    INTEGER(result, "repeated_steps", repeated_steps),
    INTEGER(result, "repeated_steps_equal", repeated_equal),
    REAL(result, "expected_s", verification.expected_seconds),
    REAL(result, "verify_s", verification.seconds),
    REAL(result, "device_bytes", verification.device_bytes),
    REAL(result, "host_bytes", verification.host_bytes),
    REAL(result, "op_bound", verification.op_bound),
    REAL(result, "op_difference", verification.op_difference),
    REAL(result, "repeat_bound", verification.repeat_bound),
    REAL(result, "repeat_difference", verification.repeat_difference),
    INTEGER(result, "replica_groups", replica_groups),
    INTEGER(result, "replica_groups_equal", replica_groups_equal),
    JSON_END
};
static const struct json_field journal[] = {
    INTEGER(result, "lines", journal_lines),
    TEXT(result, "xxh3", journal_digest),
    JSON_END
};
static const struct json_field fields[] = {
    JSON_SCHEMA(DOCUMENT NUMBER),
    TEXT(result, "run_id", run_id),
    JSON_CHOICE(result, "status", verdict, result_verdict_names),
    LIST("reasons", result_reason, reason, reasons),
    INTEGER(result, "exit_code", exit_code),
    TEXT(result, "started_utc", started),
    TEXT(result, "ended_utc", ended),
    JSON_OBJECT("journal", journal),
    JSON_OBJECT("tool", tool),
    JSON_OBJECT("config", config),
    JSON_OBJECT("device", device),
    MAP("environment", environment),
    LIST("environment_deviations", result_deviation, deviation, deviations),
    JSON_OBJECT("memory", memory),
    JSON_OBJECT("connections", connection_fields),
    JSON_OBJECT("preparation", preparation),
    JSON_OBJECT("plan", plan),
    JSON_OBJECT("waterfall", traced_fields),
    JSON_OBJECT("expected", expectation_fields),
    JSON_OBJECT("emulation", emulation),
    JSON_OBJECT("acceptance", acceptance),
    JSON_OBJECT("checkpoint", checkpoint),
    JSON_OBJECT("validation", validation),
    LIST("steps", result_step, step, steps),
    LIST("ranks", result_rank, rank, rank_fields),
    LIST("transfer_times", result_transfer_time, transfer_time, transfer_time_fields),
    LIST("compute_times", result_compute_time, compute_time, compute_time_fields),
    LIST("observations", observation, observation, observation_fields),
    LIST("expert_load", result_layer, layer_load, layer_loads),
    JSON_END
};
// clang-format on

json_t *result_to_json(const struct result *result)
{
    return json_from_struct(fields, result);
}

// Another schema number means other keys, or other meanings of the same keys.
static status check_schema(const json_t *document)
{
    const char *schema = json_string_value(json_object_get(document, "schema"));
    int64_t     number;
    if (schema == NULL || strncmp(schema, DOCUMENT, strlen(DOCUMENT)) != 0 ||
        !number_parse_integer(schema + strlen(DOCUMENT), &number) || number < 1) {
        return fail("not a result: \"schema\" must be \"" DOCUMENT NUMBER "\"");
    }
    if (strcmp(schema + strlen(DOCUMENT), NUMBER) == 0) {
        return OK;
    }
    bool is_older = number < strtoll(NUMBER, NULL, 10);
    return fail("%.40s was written by %s gswbench, and its keys differ from " DOCUMENT NUMBER " of this version: %s",
                schema, is_older ? "an older" : "a newer",
                is_older ? "read it with the version that wrote it, or run again"
                         : "install that version or a newer one");
}

status result_from_json(struct result *result, const json_t *document)
{
    TRY(check_schema(document));
    TRY(json_to_struct(fields, result, document));
    if (result->method != RESULT_METHOD) {
        return fail_as(EXIT_COMPARE, "tool: method %lld is not method %d of this version: run again",
                       (long long)result->method, RESULT_METHOD);
    }
    return OK;
}

json_t *result_step_to_json(const struct result_step *step)
{
    return json_from_struct(steps, step);
}

status result_step_from_json(struct result_step *step, const json_t *document)
{
    return json_to_struct(steps, step, document);
}

// Keeps the key "result" for correct runs, so that other programs do not read unverified figures by mistake.
const char *result_figures_key(const struct result *result)
{
    return result_is_right(result)   ? "result"
           : result_is_shown(result) ? result_verdict_names[result->verdict]
                                     : "unverified";
}

// The figures are under exactly one of four keys; only a correct run has "result".
json_t *result_schema(void)
{
    static const char *const keys[] = {"result", "emulated", "predicted", "unverified"};
    json_t *schema = json_schema(fields), *figures = json_schema(result_figure_fields), *choices = json_array();
    for (int i = 0; i < 4; i++) {
        json_object_set(json_object_get(schema, "properties"), keys[i], figures);
        json_array_append_new(choices, json_pack("{s:[s]}", "required", keys[i]));
    }
    json_object_set_new(schema, "oneOf", choices);
    json_decref(figures);
    return schema;
}

bool result_write_json(const struct result *result, FILE *file)
{
    json_t *document = result_to_json(result);
    json_object_set_new(document, result_figures_key(result), result_figures_to_json(result));
    bool written = json_print(document, file);
    json_decref(document);
    return written;
}

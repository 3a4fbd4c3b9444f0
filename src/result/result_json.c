// SPDX-License-Identifier: MIT
// Writes and reads result.json by tables that map its keys to struct fields. Fields of GPU observations are generated
// from the tables in observe.h. Derived figures are only written: the reader derives them again.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/number.h"
#include "internal.h"

#define DOCUMENT "gswbench.result/"
#define NUMBER   "5"

// clang-format off
#define LIST(key, element, list, fields) JSON_LIST(result, key, list##s, list##_count, sizeof(struct element), fields)
#define MAP(key, list) \
    JSON_ROW(key, JSON_FIELD_MAP, offsetof(struct result, list), sizeof(struct result_entry), NULL, NULL, \
             offsetof(struct result, list##_count), offsetof(struct result_entry, value))

static const struct json_field rank_fields[] = {
    ROW_INTEGER(result_rank, "rank", rank),
    ROW_TEXT(result_rank, "host", host),
    ROW_INTEGER(result_rank, "node", node),
    ROW_INTEGER(result_rank, "local_rank", local_rank),
    ROW_INTEGER(result_rank, "threads", threads),
    ROW_REAL(result_rank, "step_time_s_median", median_seconds),
    ROW_REAL(result_rank, "clock_drift_s", clock_drift_seconds),
    ROW_INTEGER(result_rank, "allocated_bytes", allocated_bytes),
    ROW_INTEGER(result_rank, "processors", processors),
    ROW_REAL(result_rank, "foreign_processors", foreign),
    ROW_INTEGER(result_rank, "class", class),
    ROW_REAL(result_rank, "compute_s_median", compute_seconds),
    ROW_REAL(result_rank, "compute_excess", excess),
    ROW_REAL(result_rank, "compute_excess_low", excess_low),
    ROW_REAL(result_rank, "checkpoint_load_s", load_seconds),
    ROW_REAL(result_rank, "checkpoint_load_bytes", load_bytes),
    ROW_REAL(result_rank, "checkpoint_save_s", save_seconds),
    ROW_REAL(result_rank, "checkpoint_save_bytes", save_bytes),
    JSON_END
};
static const struct json_field communication_time_fields[] = {
    ROW_TEXT(result_communication_time, "kind", kind),
    ROW_TEXT(result_communication_time, "axes", axes),
    ROW_TEXT(result_communication_time, "dtype", format),
    ROW_INTEGER(result_communication_time, "elements", elements),
    ROW_INTEGER(result_communication_time, "group_size", group_size),
    ROW_INTEGER(result_communication_time, "count", count),
    ROW_REAL(result_communication_time, "bytes", bytes),
    ROW_REAL(result_communication_time, "time_s", seconds),
    ROW_REAL(result_communication_time, "moving_s", moving_seconds),
    ROW_REAL(result_communication_time, "bus_bytes_per_s", bandwidth),
    ROW_REAL(result_communication_time, "alone_s", alone_seconds),
    ROW_REAL(result_communication_time, "alone_bus_bytes_per_s", alone_bandwidth),
    ROW_REAL(result_communication_time, "predicted_s", predicted_seconds),
    ROW_INTEGER(result_communication_time, "late_rank", late_rank),
    ROW_REAL(result_communication_time, "late_share", late_share),
    ROW_REAL(result_communication_time, "wait_s", wait_seconds),
    ROW_TEXT(result_communication_time, "algorithm", algorithm),
    ROW_TEXT(result_communication_time, "protocol", protocol),
    ROW_INTEGER(result_communication_time, "channels", channels),
    JSON_END
};
static const struct json_field compute_time_fields[] = {
    ROW_INTEGER(result_compute_time, "rank", rank),
    ROW_INTEGER(result_compute_time, "ranks", ranks),
    ROW_INTEGER(result_compute_time, "step", step),
    ROW_INTEGER(result_compute_time, "steps", steps),
    ROW_REAL(result_compute_time, "compute_s", seconds),
    ROW_REAL(result_compute_time, "excess", excess),
    JSON_END
};
static const struct json_field connection_fields[] = {
    ROW_BOOLEAN(result, "library_memory", connections.allocates),
    ROW_INTEGER(result, "windows", connections.windows),
    ROW_INTEGER(result, "registered", connections.registered),
    ROW_INTEGER(result, "refused", connections.refused),
    ROW_INTEGER(result, "zero_cta", connections.copying),
    ROW_INTEGER(result, "one_sided_rings", connections.putting),
    ROW_BOOLEAN(result, "all_to_all", connections.exchanges),
    ROW_INTEGER(result, "by_several_ids", connections.scalable),
    ROW_REAL(result, "library_bytes", connections.library_bytes),
    JSON_END
};
static const struct json_field moment_fields[] = {
    ROW_REAL(result_moment, "from_s", seconds),
    ROW_INTEGER(result_moment, "activation_bytes", bytes),
    JSON_END
};
static const struct json_field op_times[] = {
    ROW_TEXT(result_op_time, "kind", kind),
    ROW_TEXT(result_op_time, "phase", phase),
    ROW_INTEGER(result_op_time, "count", count),
    ROW_REAL(result_op_time, "time_s", seconds),
    ROW_REAL(result_op_time, "flops", flops),
    ROW_REAL(result_op_time, "bytes", bytes),
    JSON_END
};
static const struct json_field actions[] = {
    ROW_INTEGER(result_action, "stage", stage),
    ROW_TEXT(result_action, "phase", phase),
    ROW_INTEGER(result_action, "chunk", chunk),
    ROW_INTEGER(result_action, "microbatch", microbatch),
    ROW_REAL(result_action, "begin_s", begin),
    ROW_REAL(result_action, "end_s", end),
    JSON_END
};
static const struct json_field traced_fields[] = {
    JSON_CHOICE(result, "source", trace.source, result_source_names),
    ROW_TEXT(result, "timed_by", trace.timed_by),
    ROW_INTEGER(result, "lost_records", trace.lost_records),
    ROW_INTEGER(result, "rank", trace.rank),
    ROW_REAL(result, "step_s", trace.step_seconds),
    JSON_MEMBER(result, "parts_s", trace.waterfall, waterfall_fields),
    LIST("op_times", result_op_time, op_time, op_times),
    LIST("turns", result_action, action, actions),
    JSON_END
};
static const struct json_field expectation_fields[] = {
    ROW_TEXT(result, "profile", expectation.profile),
    ROW_TEXT(result, "reason", expectation.reason),
    ROW_REAL(result, "step_s", expectation.step_seconds),
    ROW_REAL(result, "percent", expectation.percent),
    ROW_REAL(result, "measured_share", expectation.measured_share),
    ROW_REAL(result, "peak_flops", expectation.peak),
    ROW_REAL(result, "memory_bytes_per_s", expectation.memory_bandwidth),
    JSON_MEMBER(result, "parts_s", expectation.waterfall, waterfall_fields),
    JSON_END
};

static const struct json_field gauge_fields[] = {
    ROW_REAL(gauge_values, "before", before),
    ROW_REAL(gauge_values, "minimum", minimum),
    ROW_REAL(gauge_values, "median", median),
    ROW_REAL(gauge_values, "maximum", maximum),
    ROW_REAL(gauge_values, "after", after),
    JSON_END
};
static const struct json_field counter_fields[] = {
    ROW_REAL(counter_values, "before", before),
    ROW_REAL(counter_values, "after", after),
    ROW_REAL(counter_values, "growth", growth),
    JSON_END
};
static const struct json_field throttle_fields[] = {
    ROW_REAL(throttle_values, "before", before),
    ROW_REAL(throttle_values, "samples", samples),
    ROW_REAL(throttle_values, "after", after),
    JSON_END
};

#define GAUGE_ROW(NAME, key, ...)     JSON_MEMBER(observation, #key, gauges[GAUGE_##NAME], gauge_fields),
#define COUNTER_ROW(NAME, key, ...)   JSON_MEMBER(observation, #key, counters[COUNTER_##NAME], counter_fields),
#define THROTTLE_ROW(NAME, key, ...)  JSON_MEMBER(observation, #key, throttles[THROTTLE_##NAME], throttle_fields),
#define NAME_ROW(key, bytes, words)   ROW_TEXT(observation, #key, key),
static const struct json_field gauges[]    = { GAUGES(GAUGE_ROW) JSON_END };
static const struct json_field counters[]  = { COUNTERS(COUNTER_ROW) JSON_END };
static const struct json_field throttles[] = { THROTTLES(THROTTLE_ROW) JSON_END };

static const struct json_field observation_fields[] = {
    ROW_INTEGER(observation, "rank", rank),
    ROW_TEXT(observation, "missing", missing),
    ROW_TEXT(observation, "unknown", unknown),
    OBSERVATION_NAMES(NAME_ROW)
    ROW_INTEGER(observation, "samples", samples),
    ROW_REAL(observation, "sampling_s", sampling_seconds),
    ROW_REAL(observation, "energy_j", energy_joules),
    ROW_TEXT(observation, "energy_source", energy_source),
    JSON_OBJECT("gauges", gauges),
    JSON_OBJECT("counters", counters),
    JSON_OBJECT("throttles", throttles),
    JSON_END
};
static const struct json_field tool[] = {
    ROW_TEXT(result, "version", version),
    ROW_TEXT(result, "compiler", compiler),
    ROW_INTEGER(result, "method", method),
    JSON_END
};
#define AXIS_SIZE(NAME, key, ...) ROW_INTEGER(result, #key, mesh.asked[AXIS_##NAME]),
static const struct json_field layout[] = {
    ROW_INTEGER(result, "ranks", mesh.world),
    AXES(AXIS_SIZE)
    ROW_INTEGER(result, "etp", mesh.etp),
    ROW_INTEGER(result, "vp", mesh.vp),
    ROW_INTEGER(result, "sequence", sequence),
    ROW_INTEGER(result, "micro_batch", micro_batch),
    ROW_INTEGER(result, "global_batch", global_batch),
    ROW_INTEGER(result, "accumulation", accumulation),
    JSON_END
};
static const struct json_field model[] = {
    ROW_INTEGER(result, "layers", layers),
    ROW_BOOLEAN(result, "is_proxy", is_proxy),
    ROW_INTEGER(result, "parameters", parameters),
    ROW_INTEGER(result, "active_parameters", active_parameters),
    JSON_MEMBER(result, "flops_per_sequence", flops_per_sequence, model_flop_fields),
    JSON_END
};
static const struct json_field published[] = {
    ROW_TEXT(result, "source", published_source),
    ROW_REAL(result, "step_s", published_seconds),
    ROW_REAL(result, "mfu", published_mfu),
    ROW_REAL(result, "peak_flops", published_peak),
    JSON_END
};
static const struct json_field config[] = {
    ROW_TEXT(result, "name", config_name),
    ROW_TEXT(result, "path", config_path),
    ROW_TEXT(result, "xxh3", config_hash),
    ROW_TEXT(result, "precision", precision),
    ROW_INTEGER(result, "steps", planned_steps),
    ROW_INTEGER(result, "warmup", planned_warmup),
    JSON_OBJECT("layout", layout),
    JSON_OBJECT("model", model),
    JSON_OBJECT("published", published),
    MAP("merged", config),
    JSON_END
};
static const struct json_field attention[] = {
    ROW_TEXT(result, "provider", attention.provider),
    ROW_TEXT(result, "library", attention.library),
    ROW_TEXT(result, "engines", attention.engines),
    ROW_TEXT(result, "refusal", attention.refusal),
    JSON_END
};
static const struct json_field device[] = {
    ROW_TEXT(result, "communicator", communicator),
    ROW_TEXT(result, "backend", backend),
    ROW_TEXT(result, "device", device),
    ROW_BOOLEAN(result, "computes", computes),
    JSON_OBJECT("attention", attention),
    ROW_REAL(result, "peak_flops", peak),
    ROW_TEXT(result, "peak_source", peak_source),
    JSON_END
};
static const struct json_field memory[] = {
    JSON_MEMBER(result, "storage_bytes", storage_bytes, plan_storage_fields),
    ROW_INTEGER(result, "activation_live_bytes", live_bytes),
    ROW_INTEGER(result, "allocated_bytes", allocated_bytes),
    ROW_INTEGER(result, "connection_bytes", connection_bytes),
    LIST("course", result_moment, moment, moment_fields),
    JSON_END
};
static const struct json_field preparation[] = {
    ROW_REAL(result, "tune_s", tune_seconds),
    ROW_REAL(result, "connect_s", connect_seconds),
    ROW_REAL(result, "capture_s", capture_seconds),
    ROW_REAL(result, "eager_step_s", eager_seconds),
    ROW_REAL(result, "captured_step_s", replay_seconds),
    JSON_END
};
static const struct json_field phase_flops[] = {
    ROW_REAL(result, "forward", flops[PHASE_FORWARD]),
    ROW_REAL(result, "recompute", flops[PHASE_RECOMPUTE]),
    ROW_REAL(result, "backward", flops[PHASE_BACKWARD]),
    ROW_REAL(result, "reduce", flops[PHASE_REDUCE]),
    ROW_REAL(result, "optimizer", flops[PHASE_OPTIMIZER]),
    JSON_END
};
static const struct json_field communications[] = {
    ROW_TEXT(result_communication, "kind", kind),
    ROW_TEXT(result_communication, "axes", axes),
    ROW_TEXT(result_communication, "dtype", format),
    ROW_INTEGER(result_communication, "elements", elements),
    ROW_INTEGER(result_communication, "group_size", group_size),
    ROW_INTEGER(result_communication, "count", count),
    ROW_REAL(result_communication, "bytes", bytes),
    JSON_END
};
static const struct json_field ops[] = {
    ROW_TEXT(result_kind, "kind", kind),
    ROW_INTEGER(result_kind, "count", count),
    JSON_END
};
static const struct json_field plan[] = {
    ROW_INTEGER(result, "tensors", tensor_count),
    ROW_INTEGER(result, "ops", op_count),
    JSON_OBJECT("flops", phase_flops),
    LIST("kinds", result_kind, kind, ops),
    LIST("transfers", result_communication, communication, communications),
    JSON_END
};
static const struct json_field emulation[] = {
    ROW_INTEGER(result, "stages", emulation.stages),
    ROW_INTEGER(result, "executed", emulation.executed),
    ROW_INTEGER(result, "ops", emulation.ops),
    ROW_INTEGER(result, "measured_ops", emulation.measured_ops),
    ROW_REAL(result, "measured_share", emulation.measured_share),
    JSON_END
};
static const struct json_field acceptance[] = {
    JSON_CHOICE(result, "verdict", acceptance.verdict, result_acceptance_names),
    ROW_TEXT(result, "basis", acceptance.basis),
    ROW_REAL(result, "expected_s", acceptance.expected_seconds),
    ROW_REAL(result, "percent", acceptance.percent),
    ROW_INTEGER(result, "outliers", acceptance.outliers),
    ROW_TEXT(result, "drain", acceptance.drain),
    ROW_TEXT(result, "reason", acceptance.reason),
    JSON_END
};
static const struct json_field checkpoint[] = {
    ROW_INTEGER(result, "first_step", checkpoint.first_step),
    ROW_REAL(result, "load_s", checkpoint.load_seconds),
    ROW_REAL(result, "load_bytes", checkpoint.load_bytes),
    ROW_REAL(result, "load_bytes_per_s", checkpoint.load_bandwidth),
    ROW_INTEGER(result, "saves", checkpoint.saves),
    ROW_REAL(result, "save_s", checkpoint.save_seconds),
    ROW_REAL(result, "save_bytes", checkpoint.save_bytes),
    ROW_REAL(result, "save_bytes_per_s", checkpoint.save_bandwidth),
    ROW_REAL(result, "stall_s", checkpoint.stall_seconds),
    ROW_INTEGER(result, "steps_beside", checkpoint.steps_beside),
    ROW_REAL(result, "step_beside_s_median", checkpoint.beside_seconds),
    ROW_REAL(result, "step_other_s_median", checkpoint.other_seconds),
    JSON_END
};
static const struct json_field reasons[] = {
    ROW_TEXT(result_reason, "id", id),
    JSON_CHOICE(result_reason, "verdict", verdict, result_verdict_names),
    ROW_INTEGER(result_reason, "rank", rank),
    ROW_INTEGER(result_reason, "step", step),
    ROW_TEXT(result_reason, "message", message),
    JSON_END
};
const struct json_field step_fields[] = {
    ROW_INTEGER(result_step, "i", index),
    JSON_CHOICE(result_step, "phase", phase, result_phase_names),
    ROW_REAL(result_step, "time_s", seconds),
    ROW_REAL(result_step, "rank0_time_s", rank0_seconds),
    ROW_REAL(result_step, "device_time_s", device_seconds),
    ROW_INTEGER(result_step, "slowest_rank", slowest_rank),
    ROW_REAL(result_step, "loss", loss),
    ROW_REAL(result_step, "prediction_loss", prediction_loss),
    ROW_REAL(result_step, "grad_norm", gradient_norm),
    ROW_REAL(result_step, "dropped", dropped),
    ROW_BOOLEAN(result_step, "run_twice", is_run_twice),
    ROW_BOOLEAN(result_step, "outlier", is_outlier),
    JSON_END
};
static const struct json_field load[] = {
    JSON_PLACE(JSON_FIELD_REAL, "busiest", LOAD_BUSIEST, sizeof(double)),
    JSON_PLACE(JSON_FIELD_REAL, "idlest", LOAD_IDLEST, sizeof(double)),
    JSON_PLACE(JSON_FIELD_REAL, "dropped", LOAD_DROPPED, sizeof(double)),
    JSON_PLACE(JSON_FIELD_REAL, "auxiliary_loss", LOAD_AUXILIARY, sizeof(double)),
    JSON_END
};
static const struct json_field layer_loads[] = {
    ROW_INTEGER(result_layer, "layer", layer),
    JSON_MEMBER(result_layer, "last", last, load),
    JSON_MEMBER(result_layer, "mean", mean, load),
    JSON_END
};
static const struct json_field deviations[] = {
    ROW_TEXT(result_deviation, "name", name),
    ROW_TEXT(result_deviation, "value", value),
    ROW_INTEGER(result_deviation, "count", count),
    ROW_TEXT(result_deviation, "ranks", ranks),
    ROW_TEXT(result_deviation, "host", host),
    JSON_END
};
static const struct json_field validation[] = {
    ROW_REAL(result, "wall_s", wall_seconds),
    ROW_INTEGER(result, "step_allocations", step_allocations),
    ROW_REAL(result, "start_loss", start_loss),
    ROW_REAL(result, "start_loss_margin", start_loss_margin),
    ROW_TEXT(result, "verify", verify),
    ROW_INTEGER(result, "examined_transfers", examined_communications),
    ROW_INTEGER(result, "examined_ops", examined_ops),
    ROW_INTEGER(result, "repeated_steps", repeated_steps),
    ROW_INTEGER(result, "repeated_steps_equal", repeated_equal),
    ROW_REAL(result, "expected_s", verification.expected_seconds),
    ROW_REAL(result, "verify_s", verification.seconds),
    ROW_REAL(result, "device_bytes", verification.device_bytes),
    ROW_REAL(result, "host_bytes", verification.host_bytes),
    ROW_REAL(result, "op_bound", verification.op_bound),
    ROW_REAL(result, "op_difference", verification.op_difference),
    ROW_REAL(result, "repeat_bound", verification.repeat_bound),
    ROW_REAL(result, "repeat_difference", verification.repeat_difference),
    ROW_INTEGER(result, "replica_groups", replica_groups),
    ROW_INTEGER(result, "replica_groups_equal", replica_groups_equal),
    JSON_END
};
static const struct json_field journal[] = {
    ROW_INTEGER(result, "lines", journal_lines),
    ROW_TEXT(result, "xxh3", journal_digest),
    JSON_END
};
static const struct json_field fields[] = {
    JSON_SCHEMA(DOCUMENT NUMBER),
    ROW_TEXT(result, "run_id", run_id),
    JSON_CHOICE(result, "status", verdict, result_verdict_names),
    LIST("reasons", result_reason, reason, reasons),
    ROW_INTEGER(result, "exit_code", exit_code),
    ROW_TEXT(result, "started_utc", started),
    ROW_TEXT(result, "ended_utc", ended),
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
    LIST("steps", result_step, step, step_fields),
    LIST("ranks", result_rank, rank, rank_fields),
    LIST("transfer_times", result_communication_time, communication_time, communication_time_fields),
    LIST("compute_times", result_compute_time, compute_time, compute_time_fields),
    LIST("observations", observation, observation, observation_fields),
    LIST("expert_load", result_layer, layer_load, layer_loads),
    JSON_END
};

static const struct json_field step_time[] = {
    ROW_INTEGER(result_figures, "n", step.count),
    ROW_INTEGER(result_figures, "warmup", warmup_steps),
    ROW_REAL(result_figures, "median", step.median),
    ROW_INTERVAL(result_figures, "ci95", step.low),
    ROW_REAL(result_figures, "mean", step.mean),
    ROW_REAL(result_figures, "min", step.minimum),
    ROW_REAL(result_figures, "max", step.maximum),
    ROW_REAL(result_figures, "p05", step.p05),
    ROW_REAL(result_figures, "p95", step.p95),
    ROW_REAL(result_figures, "cv", step.variation),
    ROW_REAL(result_figures, "drift_per_step", step.drift),
    ROW_INTEGER(result_figures, "outliers", step.outliers),
    JSON_END
};
const struct json_field result_figure_fields[] = {
    JSON_OBJECT("step_time_s", step_time),
    ROW_REAL(result_figures, "last_step_s", last_step_seconds),
    ROW_REAL(result_figures, "mean_35_44_s", mean_35_44_seconds),
    ROW_REAL(result_figures, "tokens_per_step", tokens_per_step),
    ROW_REAL(result_figures, "tokens_per_s", tokens_per_second),
    ROW_REAL(result_figures, "tokens_per_s_per_device", tokens_per_second_per_rank),
    JSON_CHOICE(result_figures, "flop_convention", convention, model_flop_names),
    ROW_REAL(result_figures, "tflops_per_device", teraflops_per_rank),
    JSON_MEMBER(result_figures, "mfu", utilization, model_flop_fields),
    ROW_REAL(result_figures, "days_1t", days_per_trillion_tokens),
    ROW_REAL(result_figures, "energy_j_per_step", joules_per_step),
    ROW_REAL(result_figures, "tokens_per_j", tokens_per_joule),
    ROW_REAL(result_figures, "published_ratio", published_ratio),
    JSON_END
};
// clang-format on

json_t *result_to_json(const struct result *result)
{
    return json_from_struct(fields, result);
}

// Checks that the file has this version's schema number. Another number means other keys, or other meanings of keys.
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

const char *const result_figures_keys[] = {"result", "emulated", "predicted", "unverified", NULL};

// Returns the key of the figures. Only correct runs get the key "result", so that other programs do not read unverified
// figures by mistake.
const char *result_figures_key(const struct result *result)
{
    return result_is_right(result)   ? "result"
           : result_is_shown(result) ? result_verdict_names[result->verdict]
                                     : "unverified";
}

// Returns the JSON Schema of result.json. A file has its figures under exactly one of four keys.
json_t *result_schema(void)
{
    json_t *schema = json_schema(fields), *figures = json_schema(result_figure_fields), *choices = json_array();
    for (const char *const *key = result_figures_keys; *key != NULL; key++) {
        json_object_set(json_object_get(schema, "properties"), *key, figures);
        json_array_append_new(choices, json_pack("{s:[s]}", "required", *key));
    }
    json_object_set_new(schema, "oneOf", choices);
    json_decref(figures);
    return schema;
}

bool result_write_json(const struct result *result, FILE *file)
{
    json_t *document = result_to_json(result);
    json_object_set_new(document, result_figures_key(result), json_from_struct(result_figure_fields, &result->figures));
    bool written = json_print(document, file);
    json_decref(document);
    return written;
}

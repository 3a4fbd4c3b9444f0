// SPDX-License-Identifier: MIT
// Has the JSON fields of parts of result.json: ranks and their times, the traced step, the expected step, and GPU
// observations, whose fields are generated from the tables in observe.h.

#include "internal.h"

// clang-format off

const struct json_field rank_fields[] = {
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
const struct json_field communication_time_fields[] = {
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
const struct json_field compute_time_fields[] = {
    ROW_INTEGER(result_compute_time, "rank", rank),
    ROW_INTEGER(result_compute_time, "ranks", ranks),
    ROW_INTEGER(result_compute_time, "step", step),
    ROW_INTEGER(result_compute_time, "steps", steps),
    ROW_REAL(result_compute_time, "compute_s", seconds),
    ROW_REAL(result_compute_time, "excess", excess),
    JSON_END
};
const struct json_field connection_fields[] = {
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
const struct json_field moment_fields[] = {
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
const struct json_field traced_fields[] = {
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
const struct json_field expectation_fields[] = {
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

const struct json_field observation_fields[] = {
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
// clang-format on

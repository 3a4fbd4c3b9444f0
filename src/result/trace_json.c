// SPDX-License-Identifier: MIT
// Fields of the traced step, its memory timeline, and the expected step in result.json.
#include <stddef.h>

#include "internal.h"

// clang-format off

const struct json_field moment_fields[] = {
    REAL(result_moment, "from_s", seconds),
    INTEGER(result_moment, "activation_bytes", bytes),
    JSON_END
};
static const struct json_field op_times[] = {
    TEXT(result_op_time, "kind", kind),
    TEXT(result_op_time, "phase", phase),
    INTEGER(result_op_time, "count", count),
    REAL(result_op_time, "time_s", seconds),
    REAL(result_op_time, "flops", flops),
    REAL(result_op_time, "bytes", bytes),
    JSON_END
};
static const struct json_field turns[] = {
    INTEGER(result_turn, "stage", stage),
    TEXT(result_turn, "phase", phase),
    INTEGER(result_turn, "chunk", chunk),
    INTEGER(result_turn, "microbatch", microbatch),
    REAL(result_turn, "begin_s", begin),
    REAL(result_turn, "end_s", end),
    JSON_END
};
const struct json_field traced_fields[] = {
    TEXT(result, "source", trace.source),
    TEXT(result, "timed_by", trace.timed_by),
    INTEGER(result, "lost_records", trace.lost_records),
    INTEGER(result, "rank", trace.rank),
    REAL(result, "step_s", trace.step_seconds),
    JSON_MEMBER(result, "parts_s", trace.waterfall, waterfall_fields),
    LIST("op_times", result_op_time, op_time, op_times),
    LIST("turns", result_turn, turn, turns),
    JSON_END
};
const struct json_field expectation_fields[] = {
    TEXT(result, "profile", expectation.profile),
    TEXT(result, "reason", expectation.reason),
    REAL(result, "step_s", expectation.step_seconds),
    REAL(result, "percent", expectation.percent),
    REAL(result, "measured_share", expectation.measured_share),
    REAL(result, "peak_flops", expectation.peak),
    REAL(result, "memory_bytes_per_s", expectation.memory_bandwidth),
    JSON_MEMBER(result, "parts_s", expectation.waterfall, waterfall_fields),
    JSON_END
};
// clang-format on

// SPDX-License-Identifier: MIT
// Where a step goes, and where it should: the parts of the traced step, and of the one that is expected.
#include <stddef.h>

#include "internal.h"

// clang-format off
#define TEXT(key, field) JSON_FIELD(result, JSON_FIELD_TEXT, key, field)
#define REAL(key, field) JSON_FIELD(result, JSON_FIELD_REAL, key, field)
#define PARTS(of)                                             \
    REAL("ideal", of.seconds[WATERFALL_IDEAL]),               \
    REAL("gemm", of.seconds[WATERFALL_GEMM]),                 \
    REAL("attention", of.seconds[WATERFALL_ATTENTION]),       \
    REAL("memory", of.seconds[WATERFALL_MEMORY]),             \
    REAL("cast", of.seconds[WATERFALL_CAST]),                 \
    REAL("recompute", of.seconds[WATERFALL_RECOMPUTE]),       \
    REAL("optimizer", of.seconds[WATERFALL_OPTIMIZER]),       \
    REAL("bubble", of.seconds[WATERFALL_BUBBLE]),             \
    REAL("exposed-dp", of.seconds[WATERFALL_EXPOSED_DP]),     \
    REAL("exposed-fsdp", of.seconds[WATERFALL_EXPOSED_FSDP]), \
    REAL("exposed-tp", of.seconds[WATERFALL_EXPOSED_TP]),     \
    REAL("exposed-cp", of.seconds[WATERFALL_EXPOSED_CP]),     \
    REAL("exposed-ep", of.seconds[WATERFALL_EXPOSED_EP]),     \
    REAL("exposed-pp", of.seconds[WATERFALL_EXPOSED_PP]),     \
    REAL("contention", of.seconds[WATERFALL_CONTENTION]),     \
    REAL("stragglers", of.seconds[WATERFALL_STRAGGLERS]),     \
    REAL("unexplained", of.seconds[WATERFALL_UNEXPLAINED]),   \
    JSON_END

const struct json_field waterfall_part_fields[] = { PARTS(trace.waterfall) };

static const struct json_field expected_parts[] = { PARTS(expectation.waterfall) };
const struct json_field expectation_fields[] = {
    TEXT("profile", expectation.profile),
    TEXT("reason", expectation.reason),
    REAL("step_s", expectation.step_seconds),
    REAL("percent", expectation.percent),
    REAL("measured_share", expectation.measured_share),
    JSON_OBJECT("parts_s", expected_parts),
    JSON_END
};
// clang-format on

// SPDX-License-Identifier: MIT
// JSON fields of a waterfall: seconds per part.
#include "gswbench/json.h"
#include "gswbench/waterfall.h"

// clang-format off
#define PART(key, part)              JSON_PLACE(JSON_FIELD_REAL, key, part, sizeof(double)),
#define EXPOSED_PART(NAME, key, ...) PART("exposed_" #key, WATERFALL_EXPOSED_##NAME)

const struct json_field waterfall_fields[] = {
    PART("ideal", WATERFALL_IDEAL)
    PART("gemm", WATERFALL_GEMM)
    PART("attention", WATERFALL_ATTENTION)
    PART("memory", WATERFALL_MEMORY)
    PART("cast", WATERFALL_CAST)
    PART("recompute", WATERFALL_RECOMPUTE)
    PART("optimizer", WATERFALL_OPTIMIZER)
    PART("bubble", WATERFALL_BUBBLE)
    AXES(EXPOSED_PART)
    PART("launch", WATERFALL_LAUNCH)
    PART("contention", WATERFALL_CONTENTION)
    PART("stragglers", WATERFALL_STRAGGLERS)
    PART("unexplained", WATERFALL_UNEXPLAINED)
    JSON_END
};
// clang-format on

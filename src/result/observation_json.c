// SPDX-License-Identifier: MIT
// Fields of a GPU observation in result.json, generated from the tables in observation.h.
#include "internal.h"

// clang-format off

#define GAUGE_FIELDS(NAME, key, ...) \
    static const struct json_field key##_fields[] = { \
        REAL(observation, "before", gauges[GAUGE_##NAME].before), \
        REAL(observation, "minimum", gauges[GAUGE_##NAME].minimum), \
        REAL(observation, "median", gauges[GAUGE_##NAME].median), \
        REAL(observation, "maximum", gauges[GAUGE_##NAME].maximum), \
        REAL(observation, "after", gauges[GAUGE_##NAME].after), \
        JSON_END \
    };
#define COUNTER_FIELDS(NAME, key, ...) \
    static const struct json_field key##_fields[] = { \
        REAL(observation, "before", counters[COUNTER_##NAME].before), \
        REAL(observation, "after", counters[COUNTER_##NAME].after), \
        REAL(observation, "growth", counters[COUNTER_##NAME].growth), \
        JSON_END \
    };
#define THROTTLE_FIELDS(NAME, key, ...) \
    static const struct json_field key##_fields[] = { \
        REAL(observation, "before", throttles[THROTTLE_##NAME].before), \
        REAL(observation, "samples", throttles[THROTTLE_##NAME].samples), \
        REAL(observation, "after", throttles[THROTTLE_##NAME].after), \
        JSON_END \
    };
GAUGES(GAUGE_FIELDS)
COUNTERS(COUNTER_FIELDS)
THROTTLES(THROTTLE_FIELDS)

#define OBJECT(NAME, key, ...)        JSON_OBJECT(#key, key##_fields),
#define NAME_ROW(key, bytes, words)   JSON_FIELD(observation, JSON_FIELD_TEXT, #key, key),
static const struct json_field gauges[]    = { GAUGES(OBJECT) JSON_END };
static const struct json_field counters[]  = { COUNTERS(OBJECT) JSON_END };
static const struct json_field throttles[] = { THROTTLES(OBJECT) JSON_END };

const struct json_field observation_fields[] = {
    JSON_FIELD(observation, JSON_FIELD_INTEGER, "rank", rank),
    JSON_FIELD(observation, JSON_FIELD_TEXT, "missing", missing),
    JSON_FIELD(observation, JSON_FIELD_TEXT, "unknown", unknown),
    OBSERVATION_NAMES(NAME_ROW)
    JSON_FIELD(observation, JSON_FIELD_INTEGER, "samples", samples),
    REAL(observation, "sampling_s", sampling_seconds),
    REAL(observation, "energy_j", energy_joules),
    JSON_FIELD(observation, JSON_FIELD_TEXT, "energy_source", energy_source),
    JSON_OBJECT("gauges", gauges),
    JSON_OBJECT("counters", counters),
    JSON_OBJECT("throttles", throttles),
    JSON_END
};
// clang-format on

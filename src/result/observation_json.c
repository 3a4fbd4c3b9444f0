// SPDX-License-Identifier: MIT
// An observation in result.json: a row for each field, from the tables of what is observed.
#include "internal.h"

// clang-format off
#define REAL(key, field) JSON_FIELD(observation, JSON_FIELD_REAL, key, field)

#define GAUGE_FIELDS(NAME, key, ...) \
    static const struct json_field key##_fields[] = { \
        REAL("before", gauges[GAUGE_##NAME].before), \
        REAL("minimum", gauges[GAUGE_##NAME].minimum), \
        REAL("median", gauges[GAUGE_##NAME].median), \
        REAL("maximum", gauges[GAUGE_##NAME].maximum), \
        REAL("after", gauges[GAUGE_##NAME].after), \
        JSON_END \
    };
#define COUNTER_FIELDS(NAME, key, ...) \
    static const struct json_field key##_fields[] = { \
        REAL("before", counters[COUNTER_##NAME].before), \
        REAL("after", counters[COUNTER_##NAME].after), \
        REAL("growth", counters[COUNTER_##NAME].growth), \
        JSON_END \
    };
#define THROTTLE_FIELDS(NAME, key, ...) \
    static const struct json_field key##_fields[] = { \
        REAL("before", throttles[THROTTLE_##NAME].before), \
        REAL("samples", throttles[THROTTLE_##NAME].samples), \
        REAL("after", throttles[THROTTLE_##NAME].after), \
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
    REAL("sampling_s", sampling_seconds),
    REAL("energy_j", energy_joules),
    JSON_FIELD(observation, JSON_FIELD_TEXT, "energy_source", energy_source),
    JSON_OBJECT("gauges", gauges),
    JSON_OBJECT("counters", counters),
    JSON_OBJECT("throttles", throttles),
    JSON_END
};
// clang-format on

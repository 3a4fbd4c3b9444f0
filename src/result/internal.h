// SPDX-License-Identifier: MIT
// Internal interface of src/result.
#ifndef GSWBENCH_RESULT_INTERNAL_H
#define GSWBENCH_RESULT_INTERNAL_H

#include <jansson.h>

#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// clang-format off
// Rows of field tables.
#define TEXT(owner, key, field)     JSON_FIELD(owner, JSON_FIELD_TEXT, key, field)
#define INTEGER(owner, key, field)  JSON_FIELD(owner, JSON_FIELD_INTEGER, key, field)
#define REAL(owner, key, field)     JSON_FIELD(owner, JSON_FIELD_REAL, key, field)
#define BOOLEAN(owner, key, field)  JSON_FIELD(owner, JSON_FIELD_BOOLEAN, key, field)
#define LIST(key, element, list, fields) \
    JSON_LIST(result, key, list##s, list##_count, sizeof(struct element), fields)
// clang-format on

// observation_json.c, ranks_json.c: fields of list elements.
extern const struct json_field observation_fields[];
extern const struct json_field rank_fields[], transfer_time_fields[], compute_time_fields[];
extern const struct json_field connection_fields[];

// trace_json.c: the traced step, its memory timeline, and the expected step.
extern const struct json_field traced_fields[], moment_fields[], expectation_fields[];

// device_check.c: judges the recorded GPU values; derives energy, which is NaN unless every rank reports it.
void devices_check(struct result *result);
void devices_derive_energy(struct result *result);

// quality_check.c: judges how reliable the step times of a correct run are.
void quality_check(struct result *result);

// rank_check.c: reports ranks that compute longer than the other ranks of their class.
void ranks_check(struct result *result);

#endif

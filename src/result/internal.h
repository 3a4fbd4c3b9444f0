// SPDX-License-Identifier: MIT
// What the files of this folder share.
#ifndef GSWBENCH_RESULT_INTERNAL_H
#define GSWBENCH_RESULT_INTERNAL_H

#include <jansson.h>

#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// clang-format off
// Rows of tables of fields.
#define TEXT(owner, key, field)     JSON_FIELD(owner, JSON_FIELD_TEXT, key, field)
#define INTEGER(owner, key, field)  JSON_FIELD(owner, JSON_FIELD_INTEGER, key, field)
#define REAL(owner, key, field)     JSON_FIELD(owner, JSON_FIELD_REAL, key, field)
#define BOOLEAN(owner, key, field)  JSON_FIELD(owner, JSON_FIELD_BOOLEAN, key, field)
#define LIST(key, element, list, fields) \
    JSON_LIST(result, key, list##s, list##_count, sizeof(struct element), fields)
// clang-format on

// observation_json.c, ranks_json.c: the fields of elements of lists.
extern const struct json_field observation_fields[];
extern const struct json_field rank_fields[], transfer_time_fields[], compute_time_fields[];
extern const struct json_field connection_fields[];

// trace_json.c: of the traced step, of the memory in its course, of what is expected of it.
extern const struct json_field traced_fields[], moment_fields[], expectation_fields[];

// device_check.c: judges what was observed of the devices; and the figures of energy, NaN where a rank's is not known.
void devices_check(struct result *result);
void devices_derive_energy(struct result *result);

// quality_check.c: judges the times of a run that is right.
void quality_check(struct result *result);

// rank_check.c: names ranks that compute longer than others like them.
void ranks_check(struct result *result);

#endif

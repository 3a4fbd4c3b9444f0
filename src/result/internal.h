// SPDX-License-Identifier: MIT
// Shared by the files of this folder: field tables, and checks of a run.
#pragma once

#include <jansson.h>

#include "gswbench/json.h"
#include "gswbench/result.h"

#define LIST(key, element, list, fields) JSON_LIST(result, key, list##s, list##_count, sizeof(struct element), fields)

// parts_json.c: fields of the parts of a result.
extern const struct json_field observation_fields[], rank_fields[], communication_time_fields[], compute_time_fields[];
extern const struct json_field connection_fields[], traced_fields[], moment_fields[], expectation_fields[];

// result.c: returns the first reason with this id; NULL: none.
const struct result_reason *result_find_reason(const struct result *result, const char *id);

// device_check.c: judges the recorded GPU values; derives energy, which is NaN unless every rank reports it.
void devices_check(struct result *result);
void devices_derive_energy(struct result *result);

// quality_check.c: judges how reliable the step times of a correct run are; reports ranks that compute longer than the
// other ranks with the same work (class).
void quality_check(struct result *result);

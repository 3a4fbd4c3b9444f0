// SPDX-License-Identifier: MIT
// Declares JSON field tables and checks of a run that the files of src/result share.
#pragma once

#include "gswbench/json.h"
#include "gswbench/result.h"

extern const struct json_field step_fields[];    // of a step in result.json (result_json.c)

// Reads a result from JSON, without validation and without its figures, which result_derive computes.
status result_from_json(struct result *result, const json_t *document);

// Returns the first reason with this id (result.c); NULL: none.
const struct result_reason *result_find_reason(const struct result *result, const char *id);

// Returns whether the reason says that a profiler, run.check or an injected fault slowed the run.
bool result_reason_slows(const struct result_reason *reason);

// devices_check judges the recorded GPU values. devices_derive_energy computes the energy figures, which are NaN unless
// every rank reports its energy (device_check.c).
void devices_check(struct result *result);
void devices_derive_energy(struct result *result);

// Judges how reliable the step times of a correct run are, and reports ranks that compute longer than the other ranks
// with the same work (quality_check.c).
void quality_check(struct result *result);

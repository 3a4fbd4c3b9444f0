// SPDX-License-Identifier: MIT
// What the files of this folder share.
#ifndef GSWBENCH_RESULT_INTERNAL_H
#define GSWBENCH_RESULT_INTERNAL_H

#include <jansson.h>

#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// observation_json.c: the fields of an observation.
extern const struct json_field observation_fields[];

// device_check.c: judges what was observed of the devices; and the figures of energy, NaN where a rank's is not known.
void devices_check(struct result *result);
void devices_derive_energy(struct result *result);

// result_read.c: whether a result that was read, with its figures derived, has values that can be, and the verdict that
// follows from them; and whether figures as written are those that were derived. Errors name the field.
status result_judge_again(struct result *result);
status result_compare_figures(const json_t *written, json_t *derived);

#endif

// SPDX-License-Identifier: MIT
// The parts of a result that have to do with the ranks' devices.
#ifndef GSWBENCH_RESULT_INTERNAL_H
#define GSWBENCH_RESULT_INTERNAL_H

#include "gswbench/json.h"
#include "gswbench/result.h"

// observation_json.c: the fields of an observation.
extern const struct json_field observation_fields[];

// device_check.c: judges what was observed of the devices; and the figures of energy, NaN where a rank's is not known.
void devices_check(struct result *result);
void devices_derive_energy(struct result *result);

#endif

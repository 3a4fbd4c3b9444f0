// SPDX-License-Identifier: MIT
// A result as JSON, written and read back.
#ifndef GSWBENCH_RESULT_JSON_H
#define GSWBENCH_RESULT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "gswbench/result.h"
#include "gswbench/status.h"

// result.json, schema "gswbench.result/1". Reading trusts nothing in the file and derives the figures anew.
bool   result_write_json(const struct result *result, FILE *file);
status result_read_json(struct result *result, const char *path);

// The figures of a result, as result.json has them. The caller owns the reference.
json_t *result_figures_to_json(const struct result *result);

#endif

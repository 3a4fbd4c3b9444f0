// SPDX-License-Identifier: MIT
// A result as JSON, written and read back.
#ifndef GSWBENCH_RESULT_JSON_H
#define GSWBENCH_RESULT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// result.json, schema "gswbench.result/5". Reading trusts nothing in the file and derives the figures anew.
bool   result_write_json(const struct result *result, FILE *file);
status result_read_json(struct result *result, const char *path);

// Parses a result or what belongs to one, whatever it says; the caller owns the reference.
status result_load_document(const char *path, json_t **document);

// A result without its figures, and one step of it. What is read is not judged. The caller owns what is returned.
json_t *result_to_json(const struct result *result);
status  result_from_json(struct result *result, const json_t *document);
json_t *result_step_to_json(const struct result_step *step);
status  result_step_from_json(struct result_step *step, const json_t *document);

// The figures of a result, as result.json has them, and under which key: "result", "emulated", "predicted" or
// "unverified". The caller owns the reference.
const char                    *result_figures_key(const struct result *result);
json_t                        *result_figures_to_json(const struct result *result);
extern const struct json_field result_figure_fields[];    // of struct result_figures

// The JSON Schema of result.json. The caller owns the reference.
json_t *result_schema(void);

#endif

// SPDX-License-Identifier: MIT
// Writes a result as JSON and reads it back.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// result.json, schema "gswbench.result/5". The reader trusts no figure in the file and derives them again.
bool   result_write_json(const struct result *result, FILE *file);
status result_read_json(struct result *result, const char *path);

// Parses a JSON file without checking its content. The caller owns the reference.
status result_load_document(const char *path, json_t **document);

// A result without its figures, and one of its steps. Reading does not validate. The caller owns the returned
// reference.
json_t *result_to_json(const struct result *result);
status  result_from_json(struct result *result, const json_t *document);
json_t *result_step_to_json(const struct result_step *step);
status  result_step_from_json(struct result_step *step, const json_t *document);

// The figures of a result and their key in result.json: "result", "emulated", "predicted" or "unverified". The caller
// owns the reference.
const char                    *result_figures_key(const struct result *result);
json_t                        *result_figures_to_json(const struct result *result);
extern const struct json_field result_figure_fields[];    // of struct result_figures

// Returns the JSON Schema of result.json. The caller owns the reference.
json_t *result_schema(void);

// SPDX-License-Identifier: MIT
// Shared by json.c (fields of one value) and json_map.c (lists of names and values).
#pragma once

#include "gswbench/json.h"

enum { LENGTH_MAX = 1000000 };    // limits the memory that a hostile file can request

// json.c: printable strings.
json_t *json_from_text(const char *text);
status  json_to_text(const struct json_field *field, char *to, size_t bytes, const json_t *value);

// json_map.c: JSON_FIELD_MAP.
json_t *json_from_map(const struct json_field *field, const char *elements, int64_t count);
status  json_to_map(const struct json_field *field, void *to, json_t *value);

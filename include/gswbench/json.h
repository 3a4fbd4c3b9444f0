// SPDX-License-Identifier: MIT
// Structs as JSON: a table of rows, one per key, drives both writing and reading, so that they cannot disagree.
// Reals have 17 significant digits and round-trip; NaN and infinities are null. Texts are made printable.
#ifndef GSWBENCH_JSON_H
#define GSWBENCH_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/status.h"

enum json_kind {
    JSON_FIELD_TEXT,        // char[size]
    JSON_FIELD_INTEGER,     // int64_t
    JSON_FIELD_REAL,        // double; null is NaN
    JSON_FIELD_BOOLEAN,     // bool
    JSON_FIELD_CHOICE,      // int64_t index into names, written as the name
    JSON_FIELD_INTERVAL,    // two doubles, [low, high]
    JSON_FIELD_OBJECT,      // the rows of fields, in an object of that key; offsets are of the same struct
    JSON_FIELD_LIST,        // elements of size bytes at a pointer, counted by the int64_t at count_offset
    JSON_FIELD_MAP,         // the same with elements that begin with two texts: an object of name and value
};

struct json_field {
    const char              *key;    // NULL ends a table
    enum json_kind           kind;
    size_t                   offset, size;
    const char *const       *names;
    const struct json_field *fields;
    size_t                   count_offset;
    size_t                   value_offset;    // map: where the second text begins; its room ends with the element
};

// A row of a plain field, and the end of a table.
// clang-format off
#define JSON_FIELD(owner, kind, key, field) \
    { key, kind, offsetof(struct owner, field), sizeof(((struct owner *)0)->field), NULL, NULL, 0, 0 }
#define JSON_OBJECT(key, fields) { key, JSON_FIELD_OBJECT, 0, 0, NULL, fields, 0, 0 }
#define JSON_END                 { NULL, JSON_FIELD_TEXT, 0, 0, NULL, NULL, 0, 0 }
// clang-format on

// An object of the rows. The caller owns the reference.
json_t *json_from_struct(const struct json_field *fields, const void *from);

// Reads what json_from_struct wrote; keys without a row are ignored. Lists are allocated and belong to the
// struct. The error names the key, with path before it: "steps[3].loss must be a number".
status json_to_struct(const struct json_field *fields, void *to, const json_t *object);

// One document, indented, with a newline at its end. False when it cannot be written.
bool json_print(const json_t *document, FILE *file);

#endif

// SPDX-License-Identifier: MIT
// Structs as JSON: a table of rows, one per key, drives writing, reading and the schema, so that they cannot disagree.
// Reals have 17 significant digits and round-trip; NaN and infinities are null. Texts are made printable.
#ifndef GSWBENCH_JSON_H
#define GSWBENCH_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/status.h"

enum json_kind {
    JSON_FIELD_TEXT,        // char[size]
    JSON_FIELD_INTEGER,     // int64_t; one that is not read may be of any size
    JSON_FIELD_REAL,        // double; null is NaN
    JSON_FIELD_BOOLEAN,     // bool; one that is not read may be an int64_t
    JSON_FIELD_CHOICE,      // int64_t index into names, written as the name
    JSON_FIELD_INTERVAL,    // two doubles, [low, high]
    JSON_FIELD_OBJECT,      // the rows of fields, in an object of that key; their offsets begin at this one's
    JSON_FIELD_LIST,        // elements of size bytes at a pointer, counted by the int64_t at count_offset
    JSON_FIELD_MAP,         // the same with elements that begin with two texts: an object of name and value, of
                            // "section.key" an object of the section, and of a number's text the number
    JSON_FIELD_COUNTS,      // the same with elements struct json_count: an object of whole numbers
    JSON_FIELD_LINES,       // char *, each line of which is an element; NULL: none
    JSON_FIELD_ARRAY,     // json_t *, an array of what fields describe; NULL: it is written elsewhere. Neither is read
    JSON_FIELD_SCHEMA,    // not of the struct: the name of the document, names[0]
};

struct json_count {
    const char *name;
    int64_t     count;
};

struct json_field {
    const char              *key;    // NULL ends a table
    enum json_kind           kind;
    size_t                   offset, size;
    const char *const       *names;
    const struct json_field *fields;
    size_t                   count_offset;
    size_t                   value_offset;    // map: where the second text begins; its room ends with the element
    bool                     is_reference;    // there is a pointer to what the kind says; NULL is null. Not read
};

// A row of a plain field, of other kinds, of a place in an array, and the end of a table. A table of one row whose
// key is "" is of elements that are that value itself.
// clang-format off
#define JSON_ROW(key, kind, offset, size, names, fields, count_offset, value_offset) \
    { key, kind, offset, size, names, fields, count_offset, value_offset, false }
#define JSON_FIELD(owner, kind, key, field) \
    JSON_ROW(key, kind, offsetof(struct owner, field), sizeof(((struct owner *)0)->field), NULL, NULL, 0, 0)
#define JSON_CHOICE(owner, key, field, names) \
    JSON_ROW(key, JSON_FIELD_CHOICE, offsetof(struct owner, field), 0, names, NULL, 0, 0)
#define JSON_LIST(owner, key, list, count, element_bytes, fields) \
    JSON_ROW(key, JSON_FIELD_LIST, offsetof(struct owner, list), element_bytes, NULL, fields, \
             offsetof(struct owner, count), 0)
#define JSON_COUNTS(owner, key, list, count) \
    JSON_ROW(key, JSON_FIELD_COUNTS, offsetof(struct owner, list), sizeof(struct json_count), NULL, NULL, \
             offsetof(struct owner, count), 0)
#define JSON_REFERENCE(owner, kind, key, field, fields) \
    { key, kind, offsetof(struct owner, field), 0, NULL, fields, 0, 0, true }
#define JSON_ARRAY(owner, key, field, fields) \
    JSON_ROW(key, JSON_FIELD_ARRAY, offsetof(struct owner, field), 0, NULL, fields, 0, 0)
#define JSON_MEMBER(owner, key, field, fields) \
    JSON_ROW(key, JSON_FIELD_OBJECT, offsetof(struct owner, field), 0, NULL, fields, 0, 0)
#define JSON_OBJECT(key, fields) JSON_ROW(key, JSON_FIELD_OBJECT, 0, 0, NULL, fields, 0, 0)
#define JSON_PLACE(kind, key, place, bytes) JSON_ROW(key, kind, (place) * (bytes), bytes, NULL, NULL, 0, 0)
#define JSON_SCHEMA(name)        JSON_ROW("schema", JSON_FIELD_SCHEMA, 0, 0, ((const char *const[]){name}), NULL, 0, 0)
#define JSON_END                 JSON_ROW(NULL, JSON_FIELD_TEXT, 0, 0, NULL, NULL, 0, 0)
// clang-format on

// An object of the rows. The caller owns the reference.
json_t *json_from_struct(const struct json_field *fields, const void *from);

// The JSON Schema of such an object, which has every key of the rows and no other. The caller owns the reference.
json_t *json_schema(const struct json_field *fields);

// Reads what json_from_struct wrote; keys without a row are ignored. Lists are allocated and belong to the
// struct. The error names the key, with path before it: "steps[3].loss must be a number".
status json_to_struct(const struct json_field *fields, void *to, const json_t *object);

// Parses a text without duplicate keys. A text whose values would take far more memory than it has bytes is refused.
json_t *json_parse(const char *text, size_t bytes, json_error_t *error);

// One document, indented, with a newline at its end. False when it cannot be written.
bool json_print(const json_t *document, FILE *file);

#endif

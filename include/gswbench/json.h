// SPDX-License-Identifier: MIT
// Converts structs to JSON and back. A table with one row per key drives writing, reading and the schema, so they
// agree. Doubles are written with 17 digits, which restore the same value; NaN and infinities become null. Strings are
// made printable.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/status.h"

enum json_kind {
    JSON_FIELD_TEXT,        // char[size]
    JSON_FIELD_INTEGER,     // int64_t; a write-only field may be 1, 2, 4 or 8 bytes
    JSON_FIELD_REAL,        // double; null is NaN
    JSON_FIELD_BOOLEAN,     // bool; a write-only field may be int64_t
    JSON_FIELD_CHOICE,      // int64_t index into names, written as the name
    JSON_FIELD_INTERVAL,    // two doubles, [low, high]
    JSON_FIELD_OBJECT,      // nested object; the offsets of its rows are relative to this row's offset
    JSON_FIELD_LIST,        // pointer to elements of `size` bytes; the int64_t at count_offset counts them
    JSON_FIELD_MAP,         // like LIST, but written as an object: elements start with two strings, key and value. A
                            // key "a.b" makes a nested object; numeric strings become numbers
    JSON_FIELD_COUNTS,    // like LIST, but elements are struct json_count, written as an object of integers; write-only
    JSON_FIELD_LINES,     // char *, one array element per line; NULL is an empty array; write-only
    JSON_FIELD_ARRAY,     // json_t *, an array whose elements `fields` describes; NULL becomes null; write-only
    JSON_FIELD_SCHEMA,    // the document's schema name, names[0]; no struct field
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
    size_t value_offset;    // map: offset of the value string, which extends to the end of the element
    bool   is_reference;    // the field is a pointer to the value; NULL becomes null; write-only
};

// Constructors of table rows. JSON_PLACE describes element number `place` of an array. A table of one row with key ""
// describes a plain value, not an object.
// clang-format off
#define JSON_ROW(key, kind, offset, size, names, fields, count_offset, value_offset) \
    { key, kind, offset, size, names, fields, count_offset, value_offset, false }
#define JSON_FIELD(owner, kind, key, field) \
    JSON_ROW(key, kind, offsetof(struct owner, field), sizeof(((struct owner *)0)->field), NULL, NULL, 0, 0)
#define ROW_TEXT(owner, key, field)     JSON_FIELD(owner, JSON_FIELD_TEXT, key, field)
#define ROW_INTEGER(owner, key, field)  JSON_FIELD(owner, JSON_FIELD_INTEGER, key, field)
#define ROW_REAL(owner, key, field)     JSON_FIELD(owner, JSON_FIELD_REAL, key, field)
#define ROW_BOOLEAN(owner, key, field)  JSON_FIELD(owner, JSON_FIELD_BOOLEAN, key, field)
#define ROW_INTERVAL(owner, key, field) JSON_FIELD(owner, JSON_FIELD_INTERVAL, key, field)
#define JSON_CHOICE(owner, key, field, names) \
    JSON_ROW(key, JSON_FIELD_CHOICE, offsetof(struct owner, field), 0, names, NULL, 0, 0)
#define JSON_LIST(owner, key, list, count, element_bytes, fields) \
    JSON_ROW(key, JSON_FIELD_LIST, offsetof(struct owner, list), element_bytes, NULL, fields, \
             offsetof(struct owner, count), 0)
#define JSON_COUNTS(owner, key, list, count) \
    JSON_ROW(key, JSON_FIELD_COUNTS, offsetof(struct owner, list), sizeof(struct json_count), NULL, NULL, \
             offsetof(struct owner, count), 0)
#define JSON_REFERENCE(owner, kind, key, field, fields) \
    { key, kind, offsetof(struct owner, field), sizeof(*((const struct owner *)NULL)->field), NULL, fields, 0, 0, true }
#define JSON_ARRAY(owner, key, field, fields) \
    JSON_ROW(key, JSON_FIELD_ARRAY, offsetof(struct owner, field), 0, NULL, fields, 0, 0)
#define JSON_MEMBER(owner, key, field, fields) \
    JSON_ROW(key, JSON_FIELD_OBJECT, offsetof(struct owner, field), 0, NULL, fields, 0, 0)
#define JSON_OBJECT(key, fields) JSON_ROW(key, JSON_FIELD_OBJECT, 0, 0, NULL, fields, 0, 0)
#define JSON_PLACE(kind, key, place, bytes) JSON_ROW(key, kind, (place) * (bytes), bytes, NULL, NULL, 0, 0)
#define JSON_SCHEMA(name)        JSON_ROW("schema", JSON_FIELD_SCHEMA, 0, 0, ((const char *const[]){name}), NULL, 0, 0)
#define JSON_END                 JSON_ROW(NULL, JSON_FIELD_TEXT, 0, 0, NULL, NULL, 0, 0)
// clang-format on

// Converts a struct to an object. The caller owns the reference.
json_t *json_from_struct(const struct json_field *fields, const void *from);

// Returns the object's JSON Schema: all keys required, no others allowed. The caller owns the reference.
json_t *json_schema(const struct json_field *fields);

// Reads an object that json_from_struct wrote; ignores unknown keys. Lists are allocated, and the caller frees them.
// Errors name the path: "steps[3].loss must be a number".
status json_to_struct(const struct json_field *fields, void *to, const json_t *object);

// Parses JSON. Rejects duplicate keys, and text that would need far more memory than its own size.
json_t *json_parse(const char *text, size_t bytes, json_error_t *error);

// Prints a document, indented, with a final newline. Returns false on failure.
bool json_print(const json_t *document, FILE *file);
bool json_write(const struct json_field *fields, const void *from, FILE *file);    // prints json_from_struct

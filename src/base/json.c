// SPDX-License-Identifier: MIT
// Writes and reads structs by their field tables.
#include "json_map.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"

static const void *at(const void *from, size_t offset)
{
    return (const char *)from + offset;
}

static int64_t integer_at(const void *from, size_t offset)
{
    return *(const int64_t *)at(from, offset);
}

static int64_t integer_of(const struct json_field *field, const void *value)
{
    switch (field->size) {
    case sizeof(int8_t):
        return *(const int8_t *)value;
    case sizeof(int16_t):
        return *(const int16_t *)value;
    case sizeof(int32_t):
        return *(const int32_t *)value;
    default:
        return *(const int64_t *)value;
    }
}

json_t *json_from_text(const char *text)
{
    size_t bytes     = strlen(text) + 1;
    char  *printable = memory_allocate(bytes);
    text_printable(printable, bytes, text);
    json_t *value = json_string(printable);
    free(printable);
    return value;
}

static json_t *from_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *from_list(const struct json_field *field, const void *from)
{
    const char *elements = *(const char *const *)at(from, field->offset);
    int64_t     count    = integer_at(from, field->count_offset);
    if (field->kind == JSON_FIELD_MAP) {
        return json_from_map(field, elements, count);
    }
    json_t *list = field->kind == JSON_FIELD_COUNTS ? json_object() : json_array();
    for (int64_t i = 0; i < count; i++) {
        const void *element = elements + (size_t)i * field->size;
        if (field->kind == JSON_FIELD_LIST) {
            json_array_append_new(list, json_from_struct(field->fields, element));
        } else {
            const struct json_count *one = element;
            json_object_set_new(list, one->name, json_integer(one->count));
        }
    }
    return list;
}

static json_t *from_lines(const char *text)
{
    json_t *lines = json_array();
    for (const char *line = text; line != NULL && *line != '\0'; line += strcspn(line, "\n") + 1) {
        json_array_append_new(lines, json_stringn(line, strcspn(line, "\n")));
    }
    return lines;
}

static json_t *from_value(const struct json_field *field, const void *from, const void *value)
{
    const double *reals = value;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        return json_from_text(value);
    case JSON_FIELD_INTEGER:
        return json_integer(integer_of(field, value));
    case JSON_FIELD_REAL:
        return from_real(reals[0]);
    case JSON_FIELD_BOOLEAN:
        return json_boolean(integer_of(field, value) != 0);
    case JSON_FIELD_CHOICE:
        return json_string(field->names[*(const int64_t *)value]);
    case JSON_FIELD_INTERVAL:
        return json_pack("[o, o]", from_real(reals[0]), from_real(reals[1]));
    case JSON_FIELD_OBJECT:
        return json_from_struct(field->fields, value);
    case JSON_FIELD_LIST:
    case JSON_FIELD_MAP:
    case JSON_FIELD_COUNTS:
        return from_list(field, from);
    case JSON_FIELD_LINES:
        return from_lines(*(const char *const *)value);
    case JSON_FIELD_ARRAY:
        return *(json_t *const *)value != NULL ? json_incref(*(json_t *const *)value) : json_null();
    case JSON_FIELD_SCHEMA:
        return json_string(field->names[0]);
    }
    return NULL;
}

static json_t *from_field(const struct json_field *field, const void *from)
{
    const void *value = at(from, field->offset);
    if (field->is_reference) {
        value = *(const void *const *)value;
    }
    return value == NULL ? json_null() : from_value(field, from, value);
}

json_t *json_from_struct(const struct json_field *fields, const void *from)
{
    if (fields->key[0] == '\0') {
        return from_field(fields, from);
    }
    json_t *object = json_object();
    for (const struct json_field *field = fields; field->key != NULL; field++) {
        json_object_set_new(object, field->key, from_field(field, from));
    }
    return object;
}

static status wrong(const struct json_field *field, const char *expected)
{
    return fail("%s must be %s", field->key, expected);
}

status json_to_text(const struct json_field *field, char *to, size_t bytes, const json_t *value)
{
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value) ||
        !text_copy(to, bytes, json_string_value(value))) {
        char expected[64];
        snprintf(expected, sizeof(expected), "a text of at most %zu bytes", bytes - 1);
        return wrong(field, expected);
    }
    text_printable(to, bytes, json_string_value(value));    // never longer than the original
    return OK;
}

static status to_real(const struct json_field *field, double *to, const json_t *value)
{
    if (!json_is_number(value) && !json_is_null(value)) {
        return wrong(field, "a number or null");
    }
    *to = json_is_null(value) ? NAN : json_number_value(value);
    return OK;
}

static status to_choice(const struct json_field *field, int64_t *to, const json_t *value)
{
    for (int64_t i = 0; json_is_string(value) && field->names[i] != NULL; i++) {
        if (strcmp(json_string_value(value), field->names[i]) == 0) {
            *to = i;
            return OK;
        }
    }
    return wrong(field, "one of its known words");
}

static status to_list(const struct json_field *field, void *to, const json_t *value)
{
    if (!json_is_array(value) || json_array_size(value) > LENGTH_MAX) {
        return wrong(field, "a list of at most a million elements");
    }
    size_t count                                   = json_array_size(value);
    char  *elements                                = memory_allocate(count * field->size);
    *(void **)((char *)to + field->offset)         = elements;
    *(int64_t *)((char *)to + field->count_offset) = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        status result = json_to_struct(field->fields, elements + i * field->size, json_array_get(value, i));
        if (failed(&result)) {
            return fail("%s[%zu]: %s", field->key, i, result.text);
        }
    }
    return OK;
}

static status to_field(const struct json_field *field, void *to, json_t *value)
{
    void *target = (char *)to + field->offset;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        return json_to_text(field, target, field->size, value);
    case JSON_FIELD_INTEGER:
        *(int64_t *)target = json_integer_value(value);
        return json_is_integer(value) ? OK : wrong(field, "a whole number");
    case JSON_FIELD_REAL:
        return to_real(field, target, value);
    case JSON_FIELD_BOOLEAN:
        *(bool *)target = json_is_true(value);
        return json_is_boolean(value) ? OK : wrong(field, "true or false");
    case JSON_FIELD_CHOICE:
        return to_choice(field, target, value);
    case JSON_FIELD_INTERVAL:
        TRY(to_real(field, target, json_array_get(value, 0)));
        return to_real(field, (double *)target + 1, json_array_get(value, 1));
    case JSON_FIELD_OBJECT: {
        status result = json_to_struct(field->fields, target, value);
        return failed(&result) ? fail("%s: %s", field->key, result.text) : OK;
    }
    case JSON_FIELD_LIST:
        return to_list(field, to, value);
    case JSON_FIELD_MAP:
        return json_to_map(field, to, value);
    case JSON_FIELD_SCHEMA:    // the caller checks the schema name
    case JSON_FIELD_COUNTS:    // write-only kinds
    case JSON_FIELD_LINES:
    case JSON_FIELD_ARRAY:
        break;
    }
    return OK;
}

status json_to_struct(const struct json_field *fields, void *to, const json_t *object)
{
    if (!json_is_object(object)) {
        return fail("an object is missing");
    }
    for (const struct json_field *field = fields; field->key != NULL; field++) {
        json_t *value = json_object_get(object, field->key);
        if (value == NULL) {
            return fail("%s is missing", field->key);
        }
        TRY(to_field(field, to, value));
    }
    return OK;
}

bool json_print(const json_t *document, FILE *file)
{
    return json_dumpf(document, file, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 && fputc('\n', file) != EOF;
}

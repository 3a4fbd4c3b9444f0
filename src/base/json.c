// SPDX-License-Identifier: MIT
// Converts structs to JSON and back according to tables of their fields, generates the JSON Schema of a table, and
// parses untrusted JSON.
#include "gswbench/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/text.h"

enum { LENGTH_MAX = 1000000 };    // limits the memory that a hostile file can request

static const void *at(const void *from, size_t offset)
{
    return (const char *)from + offset;
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

static json_t *from_text(const char *text)
{
    size_t bytes     = strlen(text) + 1;
    char  *printable = memory_allocate(bytes);
    text_printable(printable, bytes, text);
    json_t *value = json_string(printable);
    free(printable);
    return value;
}

// The following functions convert lists of names and values to JSON objects and back. "section.key" becomes a key in a
// nested object "section". A value such as "12" becomes a number if this number prints as the same text.
enum {
    SECTION_BYTES = 64,
    NAME_BYTES    = 256,
    NUMBER_BYTES  = 32,
    TEXTS_MAX     = 10000,
};

static void print_number(char number[NUMBER_BYTES], const json_t *value)
{
    if (json_is_integer(value)) {
        snprintf(number, NUMBER_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else {
        number_print_real(json_real_value(value), number, NUMBER_BYTES);
    }
}

static json_t *from_entry(const char *text)
{
    char    number[NUMBER_BYTES];
    double  real;
    int64_t integer;
    json_t *value = NULL;
    if (number_parse_integer(text, &integer)) {
        value = json_integer(integer);
    } else if (number_parse_real(text, &real)) {
        value = json_real(real);
    }
    if (value != NULL) {
        print_number(number, value);
        if (strcmp(number, text) == 0) {
            return value;
        }
        json_decref(value);
    }
    return from_text(text);
}

// Returns the nested object for the section of *name, the text before its dot. Creates the object if needed, and
// advances *name past the dot. Returns `object` if the name has no section.
static json_t *find_section(json_t *object, const char **name)
{
    char        section[SECTION_BYTES];
    const char *dot = strchr(*name, '.');
    if (dot == NULL || dot - *name >= SECTION_BYTES) {
        return object;
    }
    snprintf(section, sizeof(section), "%.*s", (int)(dot - *name), *name);
    json_t *found = json_object_get(object, section);
    if (found == NULL) {
        json_object_set_new(object, section, found = json_object());
    }
    *name = json_is_object(found) ? dot + 1 : *name;
    return json_is_object(found) ? found : object;
}

static json_t *from_map(const struct json_field *field, const char *elements, int64_t count)
{
    json_t *map = json_object();
    for (int64_t i = 0; i < count; i++) {
        const char *element = elements + (size_t)i * field->size;
        json_t     *text    = from_text(element);
        const char *name    = json_string_value(text);
        json_t     *section = find_section(map, &name);
        json_object_set_new(section, name, from_entry(element + field->value_offset));
        json_decref(text);
    }
    return map;
}

static json_t *from_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *from_list(const struct json_field *field, const void *from)
{
    const char *elements = *(const char *const *)at(from, field->offset);
    int64_t     count    = *(const int64_t *)at(from, field->count_offset);
    if (field->kind == JSON_FIELD_MAP) {
        return from_map(field, elements, count);
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
        return from_text(value);
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

static status to_text(const struct json_field *field, char *to, size_t bytes, const json_t *value)
{
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value) ||
        !text_copy(to, bytes, json_string_value(value))) {
        char expected[64];
        snprintf(expected, sizeof(expected), "a text of at most %zu bytes", bytes - 1);
        return wrong(field, expected);
    }
    text_printable(to, bytes, json_string_value(value));    // the result is never longer than the value
    return OK;
}

static size_t count_texts(json_t *map)
{
    const char *name;
    json_t     *value;
    size_t      count = 0;
    json_object_foreach(map, name, value)
    {
        count += json_is_object(value) ? json_object_size(value) : 1;
    }
    return count;
}

static status to_entry(const struct json_field *field, char *to, const json_t *value)
{
    size_t bytes = field->size - field->value_offset;
    char   number[NUMBER_BYTES];
    if (!json_is_number(value)) {
        return to_text(field, to, bytes, value);
    }
    print_number(number, value);
    return text_copy(to, bytes, number) ? OK : fail("%s has a number that is too long", field->key);
}

// Appends the members of `map` to a list. section: name of the nested object; NULL at the top level.
static status to_elements(const struct json_field *field, char **element, const char *section, json_t *map)
{
    const char *name;
    json_t     *value;
    json_object_foreach(map, name, value)
    {
        if (json_is_object(value) && section == NULL) {
            TRY(to_elements(field, element, name, value));
            continue;
        }
        char   whole[NAME_BYTES];
        size_t room = field->value_offset < NAME_BYTES ? field->value_offset : NAME_BYTES;
        int    length =
            snprintf(whole, sizeof(whole), "%s%s%s", section != NULL ? section : "", section != NULL ? "." : "", name);
        FAIL_IF(length >= (int)room, "%s must be an object with shorter names", field->key);
        text_printable(*element, field->value_offset, whole);
        TRY(to_entry(field, *element + field->value_offset, value));
        *element += field->size;
    }
    return OK;
}

static status to_map(const struct json_field *field, void *to, json_t *value)
{
    size_t count = json_is_object(value) ? count_texts(value) : TEXTS_MAX + 1;
    FAIL_IF(count > TEXTS_MAX, "%s must be an object of at most %d texts", field->key, TEXTS_MAX);
    char *element                                  = memory_allocate(count * field->size);
    *(void **)((char *)to + field->offset)         = element;
    *(int64_t *)((char *)to + field->count_offset) = (int64_t)count;
    return to_elements(field, &element, NULL, value);
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
    int64_t index = json_is_string(value) ? text_index(json_string_value(value), field->names) : -1;
    if (index < 0) {
        return wrong(field, "one of its known words");
    }
    *to = index;
    return OK;
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
        FAIL_IF(failed(&result), "%s[%zu]: %s", field->key, i, result.text);
    }
    return OK;
}

static status to_field(const struct json_field *field, void *to, json_t *value)
{
    void *target = (char *)to + field->offset;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        return to_text(field, target, field->size, value);
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
        return to_map(field, to, value);
    case JSON_FIELD_SCHEMA:    // the caller checks the schema name
    case JSON_FIELD_COUNTS:    // these kinds are never read
    case JSON_FIELD_LINES:
    case JSON_FIELD_ARRAY:
        break;
    }
    return OK;
}

status json_to_struct(const struct json_field *fields, void *to, const json_t *object)
{
    FAIL_IF(!json_is_object(object), "an object is missing");
    for (const struct json_field *field = fields; field->key != NULL; field++) {
        json_t *value = json_object_get(object, field->key);
        FAIL_IF(value == NULL, "%s is missing", field->key);
        TRY(to_field(field, to, value));
    }
    return OK;
}

bool json_print(const json_t *document, FILE *file)
{
    return json_dumpf(document, file, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 && fputc('\n', file) != EOF;
}

bool json_write(const struct json_field *fields, const void *from, FILE *file)
{
    json_t *document = json_from_struct(fields, from);
    bool    written  = json_print(document, file);
    json_decref(document);
    return written;
}

// The following functions return parts of the JSON Schema of a field table.
static json_t *of_type(const char *name)
{
    return json_pack("{s:s}", "type", name);
}

// Returns the schema of a number. NaN and infinities become null.
static json_t *of_real(void)
{
    return json_pack("{s:[s, s]}", "type", "number", "null");
}

static json_t *of_choice(const char *const *names)
{
    json_t *list = json_array();
    for (; *names != NULL; names++) {
        json_array_append_new(list, json_string(*names));
    }
    return json_pack("{s:o}", "enum", list);
}

static json_t *of_value(const struct json_field *field)
{
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        return of_type("string");
    case JSON_FIELD_INTEGER:
        return of_type("integer");
    case JSON_FIELD_REAL:
        return of_real();
    case JSON_FIELD_BOOLEAN:
        return of_type("boolean");
    case JSON_FIELD_CHOICE:
        return of_choice(field->names);
    case JSON_FIELD_INTERVAL:
        return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", of_real(), "minItems", 2, "maxItems", 2);
    case JSON_FIELD_OBJECT:
        return json_schema(field->fields);
    case JSON_FIELD_LIST:
    case JSON_FIELD_ARRAY:
        return json_pack("{s:s, s:o}", "type", "array", "items", json_schema(field->fields));
    case JSON_FIELD_LINES:
        return json_pack("{s:s, s:o}", "type", "array", "items", of_type("string"));
    case JSON_FIELD_MAP:
        return json_pack("{s:s, s:{s:[s, s, s], s:{s:[s, s]}}}", "type", "object", "additionalProperties", "type",
                         "string", "number", "object", "additionalProperties", "type", "string", "number");
    case JSON_FIELD_COUNTS:
        return json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type", "integer");
    case JSON_FIELD_SCHEMA:
        return json_pack("{s:s}", "const", field->names[0]);
    }
    return NULL;
}

json_t *json_schema(const struct json_field *fields)
{
    if (fields->key[0] == '\0') {
        return of_value(fields);
    }
    json_t *properties = json_object(), *required = json_array();
    for (const struct json_field *field = fields; field->key != NULL; field++) {
        json_t *value = of_value(field);
        if (field->is_reference) {
            value = json_pack("{s:[o, o]}", "anyOf", value, of_type("null"));
        }
        json_object_set_new(properties, field->key, value);
        json_array_append_new(required, json_string(field->key));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", 0);
}

// The following functions parse untrusted JSON. Three bytes of text can become 300 bytes of heap, so the memory is
// estimated before parsing.
//
// Costs are upper bounds of heap bytes per value. An element is a pointer in an array that grows by doubling, while the
// old array is still allocated.
enum { OBJECT_COST = 240, LIST_COST = 136, TEXT_COST = 112, NUMBER_COST = 32, ELEMENT_COST = 24 };

// The memory of a document is limited to TIMES_MAX times the bytes of its text, plus MORE_BYTES.
enum { TIMES_MAX = 10, MORE_BYTES = 128 << 20 };

// Returns the index of the closing quote of a string. at: index of its opening quote.
static size_t skip_text(const char *text, size_t bytes, size_t at)
{
    for (at++; at < bytes && text[at] != '"'; at++) {
        at += text[at] == '\\';
    }
    return at;
}

static size_t count_bytes(const char *text, size_t bytes)
{
    size_t count     = 0;
    bool   is_number = false;
    for (size_t at = 0; at < bytes; at++) {
        char c          = text[at];
        bool was_number = is_number;
        is_number       = c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E' || (c >= '0' && c <= '9');
        if (c == '"') {
            size_t end = skip_text(text, bytes, at);
            count += TEXT_COST + end - at;
            at = end;
        } else if (c == '{' || c == '[') {
            count += c == '{' ? OBJECT_COST : LIST_COST;
        } else if (c == ',') {
            count += ELEMENT_COST;
        } else if (is_number && !was_number) {
            count += NUMBER_COST;
        }
    }
    return count;
}

json_t *json_parse(const char *text, size_t bytes, json_error_t *error)
{
    if (count_bytes(text, bytes) > TIMES_MAX * bytes + MORE_BYTES) {
        *error = (json_error_t){.line = 1, .column = 0, .position = (int)bytes};
        strcpy(error->text, "it has more values than a file of its size should");
        return NULL;
    }
    return json_loadb(text, bytes, JSON_REJECT_DUPLICATES, error);
}

// SPDX-License-Identifier: MIT
// Generates the JSON Schema of a field table.
#include "gswbench/json.h"

static json_t *of_type(const char *name)
{
    return json_pack("{s:s}", "type", name);
}

// NaN and infinities are null.
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

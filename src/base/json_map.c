// SPDX-License-Identifier: MIT
// Name/value lists as JSON objects. "section.key" nests in an object per section. A string that prints the same as a
// number becomes a number.
#include "json_map.h"

#include <stdio.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/text.h"

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

static json_t *from_text(const char *text)
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
    return json_from_text(text);
}

// Returns the object of a name's section, created if needed, and advances name past the dot.
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

json_t *json_from_map(const struct json_field *field, const char *elements, int64_t count)
{
    json_t *map = json_object();
    for (int64_t i = 0; i < count; i++) {
        const char *element = elements + (size_t)i * field->size;
        json_t     *text    = json_from_text(element);
        const char *name    = json_string_value(text);
        json_t     *section = find_section(map, &name);
        json_object_set_new(section, name, from_text(element + field->value_offset));
        json_decref(text);
    }
    return map;
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

static status to_text(const struct json_field *field, char *to, const json_t *value)
{
    size_t bytes = field->size - field->value_offset;
    char   number[NUMBER_BYTES];
    if (!json_is_number(value)) {
        return json_to_text(field, to, bytes, value);
    }
    print_number(number, value);
    return text_copy(to, bytes, number) ? OK : fail("%s has a number that is too long", field->key);
}

// Appends the members of map. section is "" at the top level.
static status to_elements(const struct json_field *field, char **element, const char *section, json_t *map)
{
    const char *name;
    json_t     *value;
    json_object_foreach(map, name, value)
    {
        if (json_is_object(value) && section[0] == '\0') {
            TRY(to_elements(field, element, name, value));
            continue;
        }
        const char *dot = section[0] == '\0' ? "" : ".";
        char        whole[NAME_BYTES];
        size_t      room = field->value_offset < NAME_BYTES ? field->value_offset : NAME_BYTES;
        if (snprintf(whole, sizeof(whole), "%s%s%s", section, dot, name) >= (int)room) {
            return fail("%s must be an object with shorter names", field->key);
        }
        text_printable(*element, field->value_offset, whole);
        TRY(to_text(field, *element + field->value_offset, value));
        *element += field->size;
    }
    return OK;
}

status json_to_map(const struct json_field *field, void *to, json_t *value)
{
    size_t count = json_is_object(value) ? count_texts(value) : TEXTS_MAX + 1;
    if (count > TEXTS_MAX) {
        return fail("%s must be an object of at most %d texts", field->key, TEXTS_MAX);
    }
    char *element                                  = memory_allocate(count * field->size);
    *(void **)((char *)to + field->offset)         = element;
    *(int64_t *)((char *)to + field->count_offset) = (int64_t)count;
    return to_elements(field, &element, "", value);
}

// SPDX-License-Identifier: MIT
// Reads the file of another program as a list of names and values.
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

char *import_normalise(struct arena *arena, const char *name)
{
    char *word = arena_format(arena, "%s", name + strspn(name, "-"));
    for (char *dash = strchr(word, '-'); dash != NULL; dash = strchr(dash, '-')) {
        *dash = '_';
    }
    return word;
}

status import_add_value(struct import_values *values, const char *name, const char *value, struct import_value **added)
{
    const char *word = import_normalise(values->arena, name);
    int         at   = 0;
    while (at < values->count && strcmp(values->list[at].name, word) != 0) {
        at++;
    }
    if (at == IMPORT_VALUES_MAX) {
        return fail("%s has more than %d names", values->path, IMPORT_VALUES_MAX);
    }
    values->count    = at == values->count ? at + 1 : values->count;
    values->list[at] = (struct import_value){.name = word, .value = arena_format(values->arena, "%s", value)};
    *added           = &values->list[at];
    return OK;
}

// Replaces Infinity by null and NaN by 0. Python writes these numbers, but JSON does not have them.
static void blank_infinities(char *text)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    bool                     is_text = false;
    for (char *at = text; *at != '\0'; at++) {
        if (is_text && *at == '\\' && at[1] != '\0') {
            at++;
            continue;
        }
        is_text = is_text != (*at == '"');
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !is_text; i++) {
            if (strncmp(at, words[i], strlen(words[i])) == 0) {
                memset(at, ' ', strlen(words[i]));
                memcpy(at, i < 2 ? "null" : "0  ", i < 2 ? 4 : 3);
            }
        }
    }
}

// Reads JSON. A member of an inner object gets the name "object.name"; objects in it are kept as text. Members of
// text_config count as members of the file, and rope_parameters is the newer name of rope_scaling. Ignores null, and
// empty lists and objects.
static status read_json(struct import_values *values, json_t *root, const char *prefix)
{
    const char *name;
    json_t     *value;
    json_object_foreach(root, name, value)
    {
        struct import_value *added;
        bool is_object = json_is_object(value), is_model = is_object && strcmp(name, "text_config") == 0;
        bool is_empty = json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
                        (is_object && json_object_size(value) == 0);
        const char *object = strcmp(name, "rope_parameters") == 0 ? "rope_scaling" : name;
        const char *whole  = arena_format(values->arena, "%s%s", prefix, object);
        if (is_empty) {
            continue;
        }
        if (is_model || (is_object && *prefix == '\0')) {
            TRY(read_json(values, value, is_model ? "" : arena_format(values->arena, "%s.", whole)));
        } else if (json_is_string(value)) {
            TRY(import_add_value(values, whole, json_string_value(value), &added));
        } else {
            char  *text   = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
            status result = import_add_value(values, whole, text, &added);
            free(text);
            TRY(result);
        }
    }
    return OK;
}

// Reads a value of TOML in place: a string, a word, or an array, which may span lines. Leaves only the text: no quotes
// or brackets, and spaces between the items of an array. Returns the end of the value, or NULL if an array has no end.
static char *read_toml_value(char *value)
{
    char *at = value, *to = value, quote = '\0';
    int   depth = 0;
    for (; *at != '\0' && (*at != '\n' || depth > 0); at++) {
        if (quote == '\0' && *at == '#') {
            at += strcspn(at, "\n") - 1;
        } else if (quote != '\0' ? *at == quote : *at == '"' || *at == '\'') {
            quote = quote != '\0' ? '\0' : *at;
        } else if (quote == '\0' && (*at == '[' || *at == ']')) {
            depth += *at == '[' ? 1 : -1;
        } else if (quote == '\0' && (*at == ',' || isspace((unsigned char)*at))) {
            *to = ' ';
            to += to > value && to[-1] != ' ';
        } else {
            *to++ = *at;
        }
    }
    char *end = at + (*at == '\n');
    to -= to > value && to[-1] == ' ';
    *to = '\0';
    return depth == 0 ? end : NULL;
}

// Reads the part of TOML that torchtitan's files use: sections, and one name with its value per line.
static status read_toml(struct import_values *values, char *text)
{
    const char *section = "";
    for (char *at = text + strspn(text, " \t\r\n"); *at != '\0'; at += strspn(at, " \t\r\n")) {
        size_t               length = strcspn(at, "=\n");
        struct import_value *added;
        if (*at == '#') {
            at += strcspn(at, "\n");
        } else if (*at == '[') {
            at += strspn(at, "[ ");
            section = arena_format(values->arena, "%.*s.", (int)strcspn(at, " ]\r\n"), at);
            at += strcspn(at, "\n");
        } else if (at[length] == '=') {
            const char *name  = arena_format(values->arena, "%s%.*s", section, (int)strcspn(at, " \t="), at);
            char       *value = at + length + 1;
            at                = read_toml_value(value);
            TRY(at == NULL ? fail("%s: %s: the array has no ]", values->path, name) : OK);
            TRY(import_add_value(values, name, value, &added));
        } else {
            return fail("%s: \"%.*s\" is neither name = value nor [section]", values->path,
                        (int)strcspn(at, "\r\n") > 40 ? 40 : (int)strcspn(at, "\r\n"), at);
        }
    }
    return OK;
}

// Returns whether any line of the text starts a section of TOML.
static bool has_section(const char *text)
{
    const char *at = text;
    while (at != NULL && !(*at == '[' && isalpha((unsigned char)at[1]))) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 + strspn(at + 1, " \t\r\n") : NULL;
    }
    return at != NULL;
}

status import_read_values(struct import_values *values, enum import_format *format, char *text)
{
    const char  *start = text + strspn(text, " \t\r\n");
    json_error_t wrong;
    if (*start == '{') {
        blank_infinities(text);
        json_t *root = json_loads(text, 0, &wrong);
        *format      = IMPORT_HUGGING_FACE;
        if (root == NULL) {
            return fail("%s:%d: %s", values->path, wrong.line, wrong.text);
        }
        status result = read_json(values, root, "");
        json_decref(root);
        return result;
    }
    if (has_section(start)) {
        *format = IMPORT_TORCHTITAN;
        return read_toml(values, text);
    }
    if (strstr(text, "\n--") != NULL || strstr(text, " --") != NULL || strncmp(text, "--", 2) == 0) {
        *format = IMPORT_MEGATRON;
        return import_read_arguments(values, text);
    }
    return fail("%s is neither a config.json of Hugging Face, nor TOML of torchtitan, nor arguments of Megatron",
                values->path);
}

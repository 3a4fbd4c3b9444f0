// SPDX-License-Identifier: MIT
// Reads the file of another program as a list of names and values: JSON, TOML, or arguments in a shell script, with the
// variables that the script assigns.
#define _DEFAULT_SOURCE    // strsep
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "internal.h"

char *import_normalise(struct arena *arena, const char *name)
{
    char *word = arena_format(arena, "%s", name + strspn(name, "-"));
    for (char *dash = strchr(word, '-'); dash != NULL; dash = strchr(dash, '-')) {
        *dash = '_';
    }
    return word;
}

// Adds a value, or replaces the value that the name already has. Sets `added` to its place.
static status add_value(struct import_values *values, const char *name, const char *value, struct import_value **added)
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
            TRY(add_value(values, whole, json_string_value(value), &added));
        } else {
            char  *text   = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
            status result = add_value(values, whole, text, &added);
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
            TRY(add_value(values, name, value, &added));
        } else {
            return fail("%s: \"%.*s\" is neither name = value nor [section]", values->path,
                        (int)strcspn(at, "\r\n") > 40 ? 40 : (int)strcspn(at, "\r\n"), at);
        }
    }
    return OK;
}

static const char name_letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

enum { LOOKUPS_MAX = 256, EXPANSION_MAX = 1024 };

// A shell script without its comments.
struct script {
    struct arena *arena;
    const char   *text;
    int           lookups;    // variables expanded for a value; the limit ends recursions and growing texts
};

// Overwrites the comments of a shell script with spaces.
static void blank_comments(char *text)
{
    char quote = '\0';    // the open quote
    for (char *at = text; *at != '\0'; at++) {
        if (quote != '\0') {
            quote = *at == quote ? '\0' : quote;
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (*at == '#' && (at == text || isspace((unsigned char)at[-1]))) {
            memset(at, ' ', strcspn(at, "\n"));
        }
    }
}

static const char *expand(struct script *script, const char *text, const char *self);

// Finds the value of a variable: NULL if the script does not assign it. Returns false if the value is unknown, because
// assignments differ or depend on commands.
static bool find_variable(struct script *script, const char *name, const char **value)
{
    size_t length = strlen(name);
    *value        = NULL;
    for (const char *at = strstr(script->text, name); at != NULL; at = strstr(at + length, name)) {
        const char *word = at + length;
        if ((at > script->text && strchr(" \t\n;", at[-1]) == NULL) || (*word != '=' && strncmp(word, "+=", 2) != 0)) {
            continue;
        }
        bool        is_quoted = word[1] == '"' || word[1] == '\'';
        const char  quote[]   = {word[1], '\0'};
        const char *start     = word + 1 + is_quoted;
        size_t      end       = strcspn(start, is_quoted ? quote : " \t\r\n;)");
        const char *text      = arena_format(script->arena, "%.*s", (int)end, start);
        const char *assigned  = *word == '=' ? expand(script, text, name) : NULL;
        if (assigned == NULL || (*value != NULL && strcmp(*value, assigned) != 0)) {
            return false;
        }
        *value = assigned;
    }
    return true;
}

// Expands "NAME", "NAME:-default", "NAME-default" or "NAME:=default". Returns NULL if the value is unknown. In the
// assignment of the variable `self`, that variable has no value yet.
static const char *expand_variable(struct script *script, const char *variable, const char *self)
{
    if (script->lookups++ >= LOOKUPS_MAX) {
        return NULL;
    }
    size_t      length = strspn(variable, name_letters);
    char       *name   = arena_format(script->arena, "%.*s", (int)length, variable);
    size_t      mark   = length + (variable[length] == ':');
    char       *at     = strchr("-=", variable[mark]) != NULL && variable[mark] != '\0'
                             ? arena_format(script->arena, "%s", variable + mark + 1)
                             : NULL;
    const char *value  = NULL;
    if (length == 0 || (at == NULL && variable[length] != '\0') ||
        (strcmp(name, self) != 0 && !find_variable(script, name, &value))) {
        return NULL;
    }
    if (value == NULL && at != NULL) {
        size_t end = strlen(at);
        if (end > 1 && (*at == '"' || *at == '\'') && at[end - 1] == *at) {
            at[end - 1] = '\0';
            at++;
        }
        value = expand(script, at, self);
    }
    return value;
}

// Returns the length of a variable in braces, "{NAME:-default}", whose default may contain variables; 0 if it has no
// end.
static size_t braces_length(const char *text)
{
    int depth = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
        if (depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

// Replaces the variables of a text by their values. Returns NULL if a value is unknown.
static const char *expand(struct script *script, const char *text, const char *self)
{
    const char *expanded = "";
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, "$`");
        expanded      = arena_format(script->arena, "%s%.*s", expanded, (int)length, at);
        at += length;
        if (*at != '\0') {
            bool        is_braced = at[1] == '{';
            size_t      size      = is_braced ? braces_length(at + 1) : strspn(at + 1, name_letters);
            const char *inner =
                arena_format(script->arena, "%.*s", (int)(is_braced && size > 0 ? size - 2 : size), at + 1 + is_braced);
            const char *value = *at == '$' && size > 0 ? expand_variable(script, inner, self) : NULL;
            if (value == NULL || strlen(expanded) + strlen(value) > EXPANSION_MAX) {
                return NULL;
            }
            expanded = arena_format(script->arena, "%s%s", expanded, value);
            at += 1 + size;
        }
    }
    return expanded;
}

// Reads Megatron's arguments, in a shell script or alone: --name value, --name=value, --name. Replaces variables that
// the script assigns by their values. An argument takes one word, and an argument in `lists` all words up to the end of
// the line. Skips other words.
static status read_arguments(struct import_values *values, char *text)
{
    static const char        lists[]   = "recompute_modules cp_comm_type moe_aux_loss_coeff";
    static const char *const others[]  = {"pretrain_bert.py", "pretrain_t5.py", "pretrain_vlm.py", "pretrain_ict.py"};
    struct import_value     *open      = NULL;     // the argument that takes the next word; NULL: none
    bool                     has_value = false;    // `open` already has a word
    blank_comments(text);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strstr(text, others[i]) != NULL) {
            return fail("%s runs %s: only decoders (pretrain_gpt.py, pretrain_hybrid.py) are read", values->path,
                        others[i]);
        }
    }
    struct script script = {.arena = values->arena, .text = arena_format(values->arena, "%s", text)};
    for (char *line; (line = strsep(&text, "\n")) != NULL; open = has_value ? NULL : open) {
        for (char *word; (word = strsep(&line, " \t\r\"'()\\")) != NULL;) {
            char *equals = strchr(word, '=');
            if (strncmp(word, "--", 2) == 0 && word[2] != '\0') {
                word[strcspn(word, "=")] = '\0';
                TRY(add_value(values, word, equals != NULL ? equals + 1 : "true", &open));
                open      = equals != NULL || import_is_flag(open->name) ? NULL : open;
                has_value = false;
            } else if (*word != '\0' && open != NULL) {
                const char *before = has_value ? arena_format(values->arena, "%s, ", open->value) : "";
                open->value        = arena_format(values->arena, "%s%s", before, word);
                has_value          = true;
                open               = text_has_word(lists, open->name) ? open : NULL;
            }
        }
    }
    for (int i = 0; i < values->count; i++) {
        const char *expanded  = expand(&script, values->list[i].value, "");
        script.lookups        = 0;
        values->list[i].value = expanded != NULL ? expanded : values->list[i].value;
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
        return read_arguments(values, text);
    }
    return fail("%s is neither a config.json of Hugging Face, nor TOML of torchtitan, nor arguments of Megatron",
                values->path);
}

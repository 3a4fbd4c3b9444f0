// SPDX-License-Identifier: MIT
// Reads the arguments of Megatron in a shell script, and the variables that the script assigns.
#define _DEFAULT_SOURCE    // strsep
#include <ctype.h>
#include <string.h>

#include "internal.h"

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

// An argument takes one word, and an argument in `lists` all words up to the end of the line. Skips other words.
status import_read_arguments(struct import_values *values, char *text)
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
                TRY(import_add_value(values, word, equals != NULL ? equals + 1 : "true", &open));
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

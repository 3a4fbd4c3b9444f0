// SPDX-License-Identifier: MIT
// Says where values were set that a rule across options finds at odds. The file is read again: who has no error needs
// no places.
#include <string.h>

#include "internal.h"

enum { NAMED_MAX = 8 };

// NULL: by default. run.layers stands in for the layers of the model.
static const char *find_place(struct document *document, struct selection selection, const struct option *option)
{
    const struct assignment *layers = document_find(document, option_find(run_options, "layers"), selection);
    bool                     is_cut = option == option_find(model_options, "layers") && layers != NULL;
    const struct assignment *found  = is_cut ? layers : document_find(document, option, selection);
    if (found == NULL) {
        return preset_find_place(document, selection, option);
    }
    return found->origin == ORIGIN_OVERRIDE ? arena_format(&document->arena, "%s%s", found->place, found->value)
                                            : arena_format(&document->arena, "%s:%d", document->path, found->line);
}

static void print_place(struct text_buffer *places, struct document *document, struct selection selection,
                        const struct option *option, bool has_value)
{
    const char *place = find_place(document, selection, option);
    if (place != NULL || has_value) {
        text_append(places, "%s%s: %s", places->length > 0 ? "; " : "", option->key, place != NULL ? place : "default");
    }
}

// The option that a word names where it counts as one; and whether its value stands there.
static const struct option *find_named(const struct config_section *section, const char *word, size_t length,
                                       bool is_first, bool *has_value)
{
    char key[64];
    *has_value = strncmp(word + length, " = ", 3) == 0;
    bool counts =
        is_first || *has_value || strncmp(word + length, " x ", 3) == 0 || strncmp(word + length, " / ", 3) == 0;
    if (section == NULL || !counts || length >= sizeof(key)) {
        return NULL;
    }
    memcpy(key, word, length);
    key[length] = '\0';
    return option_find(section->options, key);
}

static bool add_new(const struct option *named[NAMED_MAX], int *count, const struct option *option)
{
    for (int i = 0; i < *count; i++) {
        if (named[i] == option) {
            return false;
        }
    }
    if (option == NULL || *count == NAMED_MAX) {
        return false;
    }
    named[(*count)++] = option;
    return true;
}

static void print_all(struct text_buffer *places, struct document *document, struct selection selection,
                      const char *text)
{
    const struct config_section *section = NULL;
    const struct option         *named[NAMED_MAX];
    int                          count = 0;
    for (const char *at = text; *at != '\0';) {
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (*at == '[') {
            length  = strcspn(at, "]");
            section = section_find(arena_format(&document->arena, "%.*s", (int)length - 1, at + 1));
            at += length + (at[length] == ']');
        } else if (length > 0) {
            bool                 has_value;
            bool                 is_first = at >= text + 2 && at[-2] == ']';
            const struct option *option   = find_named(section, at, length, is_first, &has_value);
            if (add_new(named, &count, option)) {
                print_place(places, document, selection, option, has_value);
            }
            at += length;
        } else {
            at++;
        }
    }
}

void config_print_places(struct text_buffer *places, const struct config_request *request, const char *text)
{
    struct text_buffer ignored  = {.text = NULL};
    struct document    document = {.errors = &ignored};
    char               path[1400];
    document_read(&document, request, path, sizeof(path));
    print_all(places, &document, document_select(&document, request), text);
    document_free(&document);
    text_free(&ignored);
}

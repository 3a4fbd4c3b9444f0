// SPDX-License-Identifier: MIT
// Finds where the options in an error message were set. Parses the file again, because this is needed only after an
// error.
#include <string.h>

#include "internal.h"

enum { NAMED_MAX = 16 };

// Returns where the option is set; NULL: nowhere. [run] layers replaces [model] layers, so for both options it returns
// where [run] layers is set.
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

// Returns whether a word of an error message is the name of an option. Messages write an option after its section,
// before a value or a factor, or in a list such as "(window, attention_sinks)" or "top_k, shared_ffn and
// capacity_factor".
static bool is_named(const char *text, const char *word, size_t length)
{
    static const char *const ends[] = {" = ", " x ", " / ", " and ", " or ", ",", ")"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (strncmp(word + length, ends[i], strlen(ends[i])) == 0) {
            return true;
        }
    }
    return (word >= text + 2 && word[-2] == ']') || (word > text && word[-1] == '(') ||
           (word >= text + 4 && strncmp(word - 4, "and ", 4) == 0);
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

// Prints where the options that the text names were set. takes_words: each word that equals an option's key names the
// option, without the test by is_named.
static void print_all(struct text_buffer *places, struct document *document, struct selection selection,
                      const char *text, bool takes_words)
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
            bool                 is_option = section != NULL && (takes_words || is_named(text, at, length));
            const struct option *option    = is_option ? section_find_option(section, at, length) : NULL;
            if (add_new(named, &count, option)) {
                print_place(places, document, selection, option, strncmp(at + length, " = ", 3) == 0);
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
    struct selection selection = document_select(&document, request);
    print_all(places, &document, selection, text, false);
    if (places->length == 0) {
        print_all(places, &document, selection, text, true);
    }
    document_free(&document);
    text_free(&ignored);
}

// SPDX-License-Identifier: MIT
// Reads the preset files of [model] preset, [hardware] profile and [software] profile.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct preset {
    const char *folder, *section, *key, *name;
    const char *ignored;    // a section to skip; NULL: none
};
enum { PRESETS = 3 };

// Lists the presets of a selection. The caller frees the returned config, which owns the strings of the presets.
static struct config *list_presets(struct preset presets[PRESETS], const struct document *document,
                                   struct selection selection)
{
    struct config *names = memory_allocate(sizeof(*names));
    config_set_defaults(names);
    document_apply(names, document, selection);
    presets[0] = (struct preset){"models", "model", "preset", names->model.preset, NULL};
    presets[1] = (struct preset){"hardware", "hardware", "profile", names->hardware.profile, "measured"};
    presets[2] = (struct preset){"software", "software", "profile", names->software.profile, NULL};
    return names;
}

// Finds a preset file. A name with '/' is a path to the user's own file.
static bool find_file(const char *folder, const char *name, char *path, size_t bytes)
{
    return strchr(name, '/') != NULL ? text_copy(path, bytes, name) : file_find(folder, name, path, bytes);
}

bool config_find_profile(const struct config *config, char *path, size_t bytes)
{
    char folder[1100];
    snprintf(folder, sizeof(folder), "%s/hardware", config_folder());
    return find_file(folder, config->hardware.profile, path, bytes);
}

// A preset file. For software, it is followed by the profiles that it inherits from: the key `profile` of each names
// the next.
enum { CHAIN_MAX = 4 };
struct chain {
    struct document *documents;    // [CHAIN_MAX], the named file first
    int              count;
};

// Parses one file. If it is missing, reports an error at `place` and returns an empty document.
static struct document read_file(struct document *document, const struct preset *preset, const char *place,
                                 const char *name)
{
    struct document values = {.errors      = document->errors,
                              .error_count = document->error_count,
                              .only        = preset->section,
                              .ignored     = preset->ignored};
    char            path[1400];
    char           *folder = arena_format(&document->arena, "%s/%s", config_folder(), preset->folder);
    if (find_file(folder, name, path, sizeof(path))) {
        document_parse_file(&values, path);
        document->error_count = values.error_count;
        return values;
    }
    const char *suggestion = file_suggest(&document->arena, folder, name);
    const char *all        = file_list(&document->arena, folder);
    document_error(document, "%s%s: no such file in %s%s%s", place, name, folder,
                   document_hint(document, "\"", suggestion, "\""),
                   suggestion == NULL && all[0] != '\0' ? arena_format(&document->arena, ", which has %s", all) : "");
    return values;
}

// Reads a preset file and the files that it inherits from. The chain is empty if no preset is named. The caller frees
// it.
static struct chain read_chain(struct document *document, struct selection selection, const struct preset *preset)
{
    struct chain             chain  = {.documents = memory_allocate(CHAIN_MAX * sizeof(*chain.documents))};
    const struct option     *option = option_find(section_find(preset->section)->options, preset->key);
    const struct assignment *naming = document_find(document, option, selection);
    const char              *name = preset->name, *place = naming != NULL ? naming->place : "";
    while (strcmp(name, option->fallback) != 0) {
        if (chain.count == CHAIN_MAX) {
            document_error(document, "%s%s: more than %d profiles inherit from each other", place, name, CHAIN_MAX);
            break;
        }
        struct document *values = &chain.documents[chain.count++];
        *values                 = read_file(document, preset, place, name);
        naming                  = document_find(values, option, selection);
        if (naming == NULL) {
            break;
        }
        name  = naming->value;
        place = naming->place;
    }
    return chain;
}

static void free_chain(struct chain *chain)
{
    for (int i = 0; i < chain->count; i++) {
        document_free(&chain->documents[i]);
    }
    free(chain->documents);
}

// Returns the selection for a file of the chain. Inherited files are read without fitted values, because these were
// fitted to results of another program.
static struct selection selection_of(struct selection selection, int depth)
{
    selection.skips_fits |= depth > 0;
    return selection;
}

void preset_apply_all(struct config *config, struct document *document, struct selection selection)
{
    struct preset  presets[PRESETS];
    struct config *names = list_presets(presets, document, selection);
    for (int i = 0; i < PRESETS; i++) {
        struct chain chain = read_chain(document, selection, &presets[i]);
        for (int depth = chain.count - 1; depth >= 0; depth--) {
            document_apply(config, &chain.documents[depth], selection_of(selection, depth));
        }
        free_chain(&chain);
    }
    free(names);
}

const char *preset_find_place(struct document *document, struct selection selection, const struct option *option)
{
    const char    *place = NULL;
    struct preset  presets[PRESETS];
    struct config *names = list_presets(presets, document, selection);
    for (int i = 0; i < PRESETS; i++) {
        struct chain chain = read_chain(document, selection, &presets[i]);
        for (int depth = 0; depth < chain.count && place == NULL; depth++) {
            struct document         *values = &chain.documents[depth];
            const struct assignment *found  = document_find(values, option, selection_of(selection, depth));
            if (found != NULL) {
                place = arena_format(&document->arena, "%s:%d", values->path, found->line);
            }
        }
        free_chain(&chain);
    }
    free(names);
    return place;
}

void config_list_words(struct text_buffer *words, const struct option *option)
{
    struct document document = {.errors = NULL};
    struct preset   presets[PRESETS];
    struct config  *names = list_presets(presets, &document, (struct selection){.ranks = -1, .compute = -1});
    for (const char *const *word = option_words(option); *word != NULL; word++) {
        text_append(words, "%s\n", *word);
    }
    for (int i = 0; i < PRESETS; i++) {
        const char  *folder = arena_format(&document.arena, "%s/%s", config_folder(), presets[i].folder);
        bool         is_it  = option_find(section_find(presets[i].section)->options, presets[i].key) == option;
        const char **files  = is_it ? config_names(&document.arena, folder) : NULL;
        for (; files != NULL && *files != NULL; files++) {
            text_append(words, "%s\n", *files);
        }
    }
    free(names);
    document_free(&document);
}

// SPDX-License-Identifier: MIT
// gswbench configs: lists installed configurations and their rows (jobs), and prints configuration files.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/show.h"
#include "internal.h"

const struct flag configs_flags[] = {
    OPERANDS(words, "NAME...", "print these config files, or with --json their rows"),
    FILTER_FLAGS(filter),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

struct listing {
    const struct arguments *arguments;
    json_t                 *list;     // NULL: rows are printed
    int64_t                 rows;     // matching rows so far
    struct shown_config     shown;    // the current configuration
};

// Adds a row if it matches the filter. Prints it, unless rows are collected in a list.
static status add_row(void *state, const struct job_selection *selection, const struct config_row *row)
{
    struct listing      *listing = state;
    struct shown_config *shown   = &listing->shown;
    struct shown_row    *added   = &shown->rows[shown->row_count];
    TRY(job_read_row(&added->job, selection, row));
    if (cli_wants_row(&listing->arguments->filter, &added->job.config)) {
        show_describe_row(added);
        if (listing->list == NULL) {
            if (listing->rows + shown->row_count == 0) {
                show_path("", config_folder(), "");
                show_configs_heading();
            }
            printf("%s%s", shown->row_count == 0 ? shown->name : "", shown->row_count == 0 ? "\n" : "");
            show_config_row(added);
        }
        shown->row_count++;
    }
    return OK;
}

static bool is_of_atlas(const char *path)
{
    static const char folder[] = "/" CONFIG_ATLAS;
    const char       *file     = strrchr(path, '/');
    size_t            length   = sizeof(folder) - 1;
    return file != NULL && (size_t)(file - path) >= length && strncmp(file - length, folder, length) == 0;
}

// Adds a configuration with its matching rows to the list, or prints it if there is no list.
static status list_config(void *state, const char *name, const char *path)
{
    struct listing      *listing = state;
    struct shown_config *shown   = &listing->shown;
    *shown                       = (struct shown_config){
                              .name = name, .is_atlas = is_of_atlas(path), .rows = memory_allocate(CONFIG_ROWS_MAX * sizeof(*shown->rows))};
    const struct job_selection selection = {.name = path, .errors = listing->arguments->config.errors};
    status                     result    = cli_visit_rows(&selection, add_row, listing);
    if (listing->list != NULL && shown->row_count > 0 && !failed(&result)) {
        json_array_append_new(listing->list, show_config_json(shown));
    }
    listing->rows += shown->row_count;
    free(shown->rows);
    return result;
}

static status find_config(const char *name, char *path, size_t bytes)
{
    return job_names_config(name) && config_find(name, path, bytes)
               ? OK
               : fail_as(EXIT_USAGE, "%s: no such configuration: gswbench configs lists them", name);
}

// Lists the named configurations, or all. Without --json, prints the files of named ones.
static status list_configs(struct listing *listing, const struct text_list *names)
{
    char path[1024];
    for (int i = 0; i < names->count; i++) {
        TRY(find_config(names->items[i], path, sizeof(path)));
        TRY(listing->arguments->json ? list_config(listing, names->items[i], path) : show_config_file(path));
    }
    return names->count == 0 ? cli_visit_configs(list_config, listing) : OK;
}

status command_configs(const struct arguments *configs)
{
    json_t        *list    = configs->json ? json_array() : NULL;
    struct listing listing = {.arguments = configs, .list = list};
    status         result  = list_configs(&listing, &configs->words);
    if (!failed(&result) && listing.rows == 0 && (configs->json || configs->words.count == 0)) {
        result = fail_as(EXIT_USAGE, "no row matches: gswbench configs lists all rows");
    }
    if (list != NULL && !failed(&result)) {
        show_rows(show_configs_fields, NULL, list);
    }
    json_decref(list);
    return result;
}

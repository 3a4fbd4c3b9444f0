// SPDX-License-Identifier: MIT
// Finds the configurations that commands read: installed ones, with a filter for their rows (jobs), and standard input.
// gswbench configs lists installed configurations and their rows, and prints configuration files.
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gswbench/benchmark.h"
#include "gswbench/output.h"
#include "gswbench/show.h"
#include "internal.h"

static status count_row(void *state, const struct job_selection *selection, const struct config_row *row)
{
    (void)selection, (void)row;
    ++*(int64_t *)state;
    return OK;
}

// A visit to the rows of all installed configurations.
struct row_tour {
    row_visitor                *visit;
    void                       *state;
    const struct job_selection *selection;
};

static status visit_config(void *state, const char *name, const char *path)
{
    const struct row_tour     *tour = state;
    const struct job_selection one  = {
         .name = path, .skips_fits = tour->selection->skips_fits, .errors = tour->selection->errors};
    (void)name;
    return cli_visit_rows(&one, tour->visit, tour->state);
}

status cli_visit_rows(const struct job_selection *selection, row_visitor *visit, void *state)
{
    int count;
    if (selection->name == NULL) {
        return cli_visit_configs(visit_config, &(struct row_tour){visit, state, selection});
    }
    struct config_row *rows   = memory_allocate(CONFIG_ROWS_MAX * sizeof(*rows));
    status             result = job_rows(selection, rows, &count);
    for (int i = 0; !failed(&result) && i < count; i++) {
        result = visit(state, selection, &rows[i]);
    }
    free(rows);
    return result;
}

status cli_count_rows(int64_t *count, const struct job_selection *selection)
{
    return cli_visit_rows(selection, count_row, count);
}

// Visits the configurations of a folder. Returns their number, or a negative number if the folder cannot be read.
static int visit_folder(config_visitor *visit, void *state, const char *folder, status *result)
{
    struct arena arena = {.blocks = NULL};
    const char **names = config_names(&arena, folder);
    int          count = names == NULL ? -1 : 0;
    for (; names != NULL && names[count] != NULL; count++) {
        char name[256];
        text_printable(name, sizeof(name), names[count]);
        if (!failed(result)) {
            *result = visit(state, name, arena_format(&arena, "%s/%s.ini", folder, names[count]));
        }
    }
    arena_free(&arena);
    return count;
}

status cli_visit_configs(config_visitor *visit, void *state)
{
    char   atlas[1100];
    status result = OK;
    int    count  = visit_folder(visit, state, config_folder(), &result);
    if (count <= 0) {
        return fail_as(EXIT_LAUNCH, "%s: %s; set GSWBENCH_CONFIGS to the folder of the installed configs",
                       config_folder(), count < 0 ? strerror(errno) : "no configurations");
    }
    snprintf(atlas, sizeof(atlas), "%s/" CONFIG_ATLAS, config_folder());
    visit_folder(visit, state, atlas, &result);
    return result;
}

bool cli_wants_row(const struct row_filter *filter, const struct config *config)
{
    const char *gpu = config->hardware.profile, *precision = precision_compute_names[config->precision.compute];
    return (filter->gpu == NULL || strncasecmp(gpu, filter->gpu, strlen(filter->gpu)) == 0) &&
           (filter->model == NULL || strstr(config->model.preset, filter->model) != NULL) &&
           (filter->software == NULL || strstr(config->software.profile, filter->software) != NULL) &&
           (filter->precision == NULL || strcasecmp(precision, filter->precision) == 0);
}

// Copies standard input to an unnamed file in memory, because a configuration is read more than once.
status cli_read_stdin(const char **path, struct arena *arena)
{
    enum { BYTES_MAX = 1 << 20 };
    char buffer[1 << 14];
    if (comm_launched_ranks() > 1) {
        return fail_as(EXIT_USAGE, "--config -: launched processes do not share standard input: name a file");
    }
    int     file = memfd_create("gswbench-config", MFD_CLOEXEC);
    ssize_t bytes, all = 0;
    while (file >= 0 && all <= BYTES_MAX && (bytes = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) {
        all += bytes;
        if (!output_put(file, buffer, (size_t)bytes)) {
            break;
        }
    }
    if (file < 0 || all > BYTES_MAX || bytes != 0) {
        return fail_as(EXIT_USAGE, "--config -: %s",
                       all > BYTES_MAX ? "standard input is larger than 1 MiB, the limit for a config"
                                       : strerror(errno));
    }
    *path = arena_format(arena, "%s%d", CONFIG_STDIN, file);
    return OK;
}

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

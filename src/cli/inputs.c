// SPDX-License-Identifier: MIT
// Finds the configurations that commands read: installed ones, with a filter for their rows (jobs), and standard input.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gswbench/benchmark.h"
#include "gswbench/output.h"
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

// SPDX-License-Identifier: MIT
// gswbench configs: lists the installed configurations and their rows.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "row_filter.h"

struct configs_arguments {
    struct text_list  names;
    struct row_filter filter;
    bool              json;
};

static const struct flag flags[] = {
    OPERANDS(configs_arguments, names, "NAME...", "print these config files"),
    FILTER_FLAGS(configs_arguments, filter),
    SWITCH_FLAG(configs_arguments, json, "--json", "print JSON"),
    END_FLAGS,
};

// A row, and a configuration, as printed in JSON.
struct row {
    struct job     job;
    const int64_t *ranks;    // NULL: any
    char           layout[256];
    double         published_seconds;
    bool           is_supported;
};
struct described {
    const char *name;
    bool        is_atlas;
    struct row *rows;
    int64_t     row_count;
};
struct list {
    json_t *configs;
};

// clang-format off
static const struct json_field row_fields[] = {
    JSON_REFERENCE(row, JSON_FIELD_INTEGER, "ranks", ranks, NULL),
    JSON_CHOICE(row, "precision", job.config.precision.compute, precision_compute_names),
    JSON_FIELD(row, JSON_FIELD_TEXT, "gpu", job.config.hardware.profile),
    JSON_FIELD(row, JSON_FIELD_TEXT, "model", job.config.model.preset),
    JSON_FIELD(row, JSON_FIELD_TEXT, "variant", job.config.published.variant),
    JSON_FIELD(row, JSON_FIELD_INTEGER, "layers", job.config.model.layers),
    JSON_FIELD(row, JSON_FIELD_TEXT, "layout", layout),
    JSON_FIELD(row, JSON_FIELD_REAL, "published_step_s", published_seconds),
    JSON_FIELD(row, JSON_FIELD_BOOLEAN, "supported", is_supported),
    JSON_FIELD(row, JSON_FIELD_TEXT, "reason", job.support.text),
    JSON_END
};
static const struct json_field config_fields[] = {
    JSON_REFERENCE(described, JSON_FIELD_TEXT, "name", name, NULL),
    JSON_FIELD(described, JSON_FIELD_BOOLEAN, "atlas", is_atlas),
    JSON_LIST(described, "rows", rows, row_count, sizeof(struct row), row_fields),
    JSON_END
};
const struct json_field cli_configs_fields[] = {
    JSON_SCHEMA("gswbench.configs/2"),
    JSON_ARRAY(list, "configs", configs, config_fields),
    JSON_END
};
// clang-format on

static void describe_row(struct row *row)
{
    const struct job *job  = &row->job;
    row->ranks             = job->is_open ? NULL : &job->request.mesh.world;
    row->published_seconds = job->config.published.step_seconds == 0.0 ? NAN : job->config.published.step_seconds;
    row->is_supported      = !failed(&job->support);
    job_layout(job, row->layout, sizeof(row->layout));
}

static void print_row(const struct job *job)
{
    char layout[256], seconds[32] = "-", ranks[32] = "any";
    if (!job->is_open) {
        snprintf(ranks, sizeof(ranks), "%" PRId64, job->request.mesh.world);
    }
    if (job->config.published.step_seconds != 0.0) {
        snprintf(seconds, sizeof(seconds), "%.3f s", job->config.published.step_seconds);
    }
    printf("  %6s  %-5s %-12s %8" PRId64 "  %-38s %9s  %s%s%s\n", ranks,
           precision_compute_names[job->config.precision.compute], job->config.hardware.profile,
           job->config.model.layers, job_layout(job, layout, sizeof(layout)), seconds,
           failed(&job->support) ? job->support.text : "runs", job->config.published.variant[0] != '\0' ? ": " : "",
           job->config.published.variant);
}

struct listing {
    const struct row_filter *filter;
    json_t                  *list;    // NULL: rows are printed
    int64_t                  rows;    // matching rows so far
};

// Reads the rows that match the filter, and prints them if there is no list.
static status read_rows(struct described *described, const struct listing *listing,
                        const struct job_selection *arguments, const struct config_row *list, int count,
                        struct text_buffer *errors)
{
    for (int i = 0; i < count; i++) {
        struct row *row = &described->rows[described->row_count];
        TRY(job_read_row(&row->job, arguments, &list[i], errors));
        if (!cli_wants_row(listing->filter, &row->job.config)) {
            continue;
        }
        describe_row(row);
        if (listing->list == NULL) {
            printf("%s%s", described->row_count == 0 ? described->name : "", described->row_count == 0 ? "\n" : "");
            print_row(&row->job);
        }
        described->row_count++;
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

// Adds a configuration with its matching rows to the list, or prints it.
static status list_config(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    struct listing      *listing   = state;
    struct job_selection arguments = {.name = path};
    struct config_row    rows[CONFIG_ROWS_MAX];
    int                  count;
    TRY(job_rows(&arguments, rows, &count, errors));
    struct described described = {
        .name = name, .is_atlas = is_of_atlas(path), .rows = memory_allocate((size_t)count * sizeof(*described.rows))};
    status result = read_rows(&described, listing, &arguments, rows, count, errors);
    if (listing->list != NULL && described.row_count > 0 && !failed(&result)) {
        json_array_append_new(listing->list, json_from_struct(config_fields, &described));
    }
    listing->rows += described.row_count;
    free(described.rows);
    return result;
}

// Prints a line with tabs replaced by spaces.
static void print_line(char *line)
{
    line[strcspn(line, "\n")] = '\0';
    for (char *tab = strchr(line, '\t'); tab != NULL; tab = strchr(tab, '\t')) {
        *tab = ' ';
    }
    text_print(line, stdout);
    fputc('\n', stdout);
}

static status show(const char *name)
{
    char   path[1024], *line = NULL;
    size_t room = 0;
    if (!cli_is_config(name) || !config_find(name, path, sizeof(path))) {
        return fail_as(EXIT_USAGE, "%s: no such configuration: gswbench configs lists them", name);
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return fail_as(EXIT_USAGE, "%s: cannot be read", path);
    }
    cli_print_path("# ", path, "");
    while (getline(&line, &room, file) >= 0) {
        print_line(line);
    }
    free(line);
    fclose(file);
    return OK;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct configs_arguments *configs = arguments;

    for (int i = 0; i < configs->names.count; i++) {
        TRY(show(configs->names.items[i]));
    }
    if (configs->names.count > 0) {
        return OK;
    }
    json_t        *list    = configs->json ? json_array() : NULL;
    struct listing listing = {.filter = &configs->filter, .list = list};
    if (list == NULL) {
        cli_print_path("", config_folder(), "");
        printf("  %6s  %-5s %-12s %8s  %-38s %9s\n", "ranks", "type", "gpu", "layers", "layout", "published");
    }
    status result = cli_visit_configs(list_config, &listing, errors);
    if (!failed(&result) && listing.rows == 0) {
        result = fail_as(EXIT_USAGE, "no row matches: gswbench configs lists all rows");
    }
    if (list != NULL && !failed(&result)) {
        cli_print_json(json_from_struct(cli_configs_fields, &(struct list){list}));
    }
    json_decref(list);
    return result;
}

const struct command command_configs = {
    .name    = "configs",
    .help    = "list installed configs, their rows, and what this build can run",
    .example = "gswbench configs --gpu b200",
    .flags   = flags,
    .bytes   = sizeof(struct configs_arguments),
    .run     = run,
};

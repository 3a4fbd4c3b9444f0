// SPDX-License-Identifier: MIT
// gswbench configs: the installed configurations and their rows.
#include <inttypes.h>

#include "internal.h"

struct configs_arguments {
    struct text_list names;
    bool             json;
};

static const struct flag flags[] = {
    OPERANDS(configs_arguments, names, "NAME...", "shows these configurations, as they are written"),
    SWITCH_FLAG(configs_arguments, json, "--json", "prints JSON"),
    END_FLAGS,
};

static json_t *describe_row(const struct job *job)
{
    char                           layout[256];
    const struct published_config *published = &job->config.published;
    return json_pack("{s:o, s:s, s:I, s:s, s:o, s:b, s:s}", "ranks",
                     job->is_open ? json_null() : json_integer(job->request.mesh.world), "precision",
                     precision_compute_names[job->config.precision.compute], "layers",
                     (json_int_t)job->config.model.layers, "layout", job_layout(job, layout, sizeof(layout)),
                     "published_step_seconds",
                     published->step_seconds == 0.0 ? json_null() : json_real(published->step_seconds), "supported",
                     !failed(&job->support), "reason", job->support.text);
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
    printf("  %6s  %-5s %8" PRId64 "  %-38s %9s  %s\n", ranks, precision_compute_names[job->config.precision.compute],
           job->config.model.layers, job_layout(job, layout, sizeof(layout)), seconds,
           failed(&job->support) ? job->support.text : "runs");
}

// Adds the configuration to the list, or prints it when there is no list.
static status list_config(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    json_t              *list      = state;
    struct job_selection arguments = {.name = path};
    struct config_row    rows[CONFIG_ROWS_MAX];
    int                  count;
    TRY(job_rows(&arguments, rows, &count, errors));
    json_t *described = NULL;
    if (list == NULL) {
        printf("%s\n", name);
    } else {
        described = json_array();
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", name, "rows", described));
    }
    for (int i = 0; i < count; i++) {
        struct job job;
        TRY(job_read_row(&job, &arguments, &rows[i], errors));
        if (list == NULL) {
            print_row(&job);
        } else {
            json_array_append_new(described, describe_row(&job));
        }
    }
    return OK;
}

static status show(const char *name)
{
    char path[1024], line[1024];
    if (!cli_is_config(name) || !config_find(name, path, sizeof(path))) {
        return fail_as(EXIT_USAGE, "%s: no such configuration: gswbench configs lists them", name);
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return fail_as(EXIT_USAGE, "%s: cannot be read", path);
    }
    printf("# %s\n", path);
    while (fgets(line, sizeof(line), file) != NULL) {
        fputs(line, stdout);
    }
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
    json_t *list = configs->json ? json_array() : NULL;
    if (list == NULL) {
        printf("%s\n  %6s  %-5s %8s  %-38s %9s\n", config_folder(), "ranks", "type", "layers", "layout", "published");
    }
    status result = cli_visit_configs(list_config, list, errors);
    if (list != NULL && !failed(&result)) {
        cli_print_json(json_incref(list));
    }
    json_decref(list);
    return result;
}

const struct command command_configs = {
    .name  = "configs",
    .help  = "list the installed configurations and their rows, and what this version can run",
    .flags = flags,
    .bytes = sizeof(struct configs_arguments),
    .run   = run,
};

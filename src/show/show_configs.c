// SPDX-License-Identifier: MIT
// Prints installed configurations and their rows (the jobs of a configuration) for gswbench configs. It also has the
// field tables of configs --json.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/show.h"

struct configs_document {
    json_t *configs;
};

// clang-format off
static const struct json_field row_fields[] = {
    JSON_REFERENCE(shown_row, JSON_FIELD_INTEGER, "ranks", ranks, NULL),
    JSON_CHOICE(shown_row, "precision", job.config.precision.compute, precision_compute_names),
    ROW_TEXT(shown_row, "gpu", job.config.hardware.profile),
    ROW_TEXT(shown_row, "model", job.config.model.preset),
    ROW_TEXT(shown_row, "variant", job.config.published.variant),
    ROW_INTEGER(shown_row, "layers", job.config.model.layers),
    ROW_TEXT(shown_row, "layout", layout),
    ROW_REAL(shown_row, "published_step_s", published_seconds),
    ROW_BOOLEAN(shown_row, "supported", is_supported),
    ROW_TEXT(shown_row, "reason", job.support.text),
    JSON_END
};
static const struct json_field config_fields[] = {
    JSON_REFERENCE(shown_config, JSON_FIELD_TEXT, "name", name, NULL),
    ROW_BOOLEAN(shown_config, "atlas", is_atlas),
    JSON_LIST(shown_config, "rows", rows, row_count, sizeof(struct shown_row), row_fields),
    JSON_END
};
const struct json_field show_configs_fields[] = {
    JSON_SCHEMA("gswbench.configs/2"),
    JSON_ARRAY(configs_document, "configs", configs, config_fields),
    JSON_END
};
// clang-format on

void show_describe_row(struct shown_row *row)
{
    const struct job *job  = &row->job;
    row->ranks             = job->is_open ? NULL : &job->request.mesh.world;
    row->published_seconds = job->config.published.step_seconds == 0.0 ? NAN : job->config.published.step_seconds;
    row->is_supported      = !failed(&job->support);
    job_layout(job, row->layout, sizeof(row->layout));
}

// The heading and the rows have the same columns.
void show_configs_heading(void)
{
    printf("%7s  %-4s  %-13s %6s %10s  %s\n", "ranks", "type", "gpu", "layers", "published", "layout");
}

void show_config_row(const struct job *job)
{
    char layout[256], seconds[32] = "-", ranks[32] = "any";
    if (!job->is_open) {
        snprintf(ranks, sizeof(ranks), "%" PRId64, job->request.mesh.world);
    }
    if (job->config.published.step_seconds != 0.0) {
        snprintf(seconds, sizeof(seconds), "%.3f s", job->config.published.step_seconds);
    }
    const char *variant = job->config.published.variant;
    bool        runs    = !failed(&job->support);
    show_line(48, "%7s  %-4s  %-13s %6" PRId64 " %10s  %s%s%s%s%s", ranks,
              precision_compute_names[job->config.precision.compute], job->config.hardware.profile,
              job->config.model.layers, seconds, job_layout(job, layout, sizeof(layout)),
              variant[0] != '\0' ? ", " : "", variant, runs ? "" : ", cannot run: ", runs ? "" : job->support.text);
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

status show_config_file(const char *name)
{
    char   path[1024], *line = NULL;
    size_t room = 0;
    if (!job_names_config(name) || !config_find(name, path, sizeof(path))) {
        return fail_as(EXIT_USAGE, "%s: no such configuration: gswbench configs lists them", name);
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return fail_as(EXIT_USAGE, "%s: cannot be read", path);
    }
    show_path("# ", path, "");
    while (getline(&line, &room, file) >= 0) {
        print_line(line);
    }
    free(line);
    fclose(file);
    return OK;
}

json_t *show_config_json(const struct shown_config *config)
{
    return json_from_struct(config_fields, config);
}

void show_configs_json(json_t *list)
{
    show_json(json_from_struct(show_configs_fields, &(struct configs_document){list}));
}

// SPDX-License-Identifier: MIT
// Prints installed configurations and their rows (the jobs of a configuration) for gswbench configs. It also has the
// field tables of configs --json.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/report.h"
#include "gswbench/show.h"

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
    JSON_ARRAY(show_document, "configs", rows, config_fields),
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

void show_config_row(const struct shown_row *row)
{
    const struct config *config    = &row->job.config;
    const char          *variant   = config->published.variant;
    char                 ranks[32] = "any";
    if (row->ranks != NULL) {
        snprintf(ranks, sizeof(ranks), "%" PRId64, *row->ranks);
    }
    show_line(48, "%7s  %-4s  %-13s %6" PRId64 " %10s  %s%s%s%s%s", ranks,
              precision_compute_names[config->precision.compute], config->hardware.profile, config->model.layers,
              report_number("%.3f s", row->published_seconds), row->layout, variant[0] != '\0' ? ", " : "", variant,
              row->is_supported ? "" : ", cannot run: ", row->is_supported ? "" : row->job.support.text);
}

status show_config_file(const char *path)
{
    char  *line = NULL;
    size_t room = 0;
    FILE  *file = fopen(path, "r");
    if (file == NULL) {
        return fail_as(EXIT_USAGE, "%s: cannot be read", path);
    }
    show_path("# ", path, "");
    while (getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        for (char *tab = strchr(line, '\t'); tab != NULL; tab = strchr(tab, '\t')) {
            *tab = ' ';
        }
        show_path("", line, "");
    }
    free(line);
    fclose(file);
    return OK;
}

json_t *show_config_json(const struct shown_config *config)
{
    return json_from_struct(config_fields, config);
}

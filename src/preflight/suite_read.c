// SPDX-License-Identifier: MIT
// Reads the file of a suite, which has this form, and finds the expected step time of each row:
//
//     about = NVIDIA's Exemplar models
//     [rows]
//     NAME = CONFIG SECTION.KEY=VALUE ...
#define _DEFAULT_SOURCE    // strsep
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gswbench/input.h"
#include "gswbench/predict.h"
#include "internal.h"

enum { ROWS_MAX = 64, FILE_BYTES_MAX = 1 << 16, SETTINGS_MAX = 64 };

static const double start_minutes = 1.0;    // assumed time to load, connect and check a job before its first step

static status find_file(struct suite *suite, const char *name)
{
    struct stat about;
    bool        is_path = strchr(name, '/') != NULL || config_stem(name) < strlen(name);
    snprintf(suite->path, sizeof(suite->path), "%s/suites/%s.ini", config_folder(), name);
    if (is_path) {
        text_copy(suite->path, sizeof(suite->path), name);
    } else if (stat(suite->path, &about) != 0) {
        return fail_as(EXIT_USAGE, "suite %s: no such suite in %s/suites; a path with a / names a file", name,
                       config_folder());
    }
    text_printable(suite->name, sizeof(suite->name), name);
    return OK;
}

void suite_row_set_dollars(struct suite_row *row, double step_seconds)
{
    const struct job *job = &row->benchmark->job;
    row->token_dollars    = hardware_token_dollars(job->config.hardware.gpu_hour_dollars, job->request.mesh.world,
                                                   job_tokens_per_second(job, step_seconds));
}

// Sets the row's published and expected step time, and estimates its minutes and cost from the expected time.
static void set_estimates(struct suite_row *row, const struct job *job)
{
    struct result_acceptance      expected = {.verdict = ACCEPTANCE_NONE, .expected_seconds = NAN, .percent = NAN};
    const struct hardware_config *hardware = &job->config.hardware;
    status                        support  = predict_supports(&job->request, hardware);
    if (hardware->device[0] != '\0' && failed(&support)) {    // such as FP8 on a GPU without FP8
        text_copy(row->reason, sizeof(row->reason), support.text);
    } else if (!accept_expect(&expected, job, hardware->device)) {
        snprintf(row->reason, sizeof(row->reason), "its memory does not fit %.200s: gswbench check says by how much",
                 hardware->profile);
    }
    row->published_seconds = job->config.published.step_seconds > 0.0 ? job->config.published.step_seconds : NAN;
    row->expected_seconds  = expected.expected_seconds;
    row->percent           = expected.percent;
    row->minutes =
        start_minutes + (double)(job->config.run.steps + job->config.trace.steps) * row->expected_seconds / 60.0;
    suite_row_set_dollars(row, row->expected_seconds);
    text_copy(row->basis, sizeof(row->basis), expected.basis);
    text_copy(row->precision, sizeof(row->precision), precision_compute_names[job->config.precision.compute]);
    job_layout(job, row->layout, sizeof(row->layout));
}

// Stores the first line of the error as the reason why the row cannot run. The error code at its start is left out.
static void keep_problem(struct suite_row *row, const status *error, const struct text_buffer *errors)
{
    const char *text = errors->text != NULL ? errors->text : error->text;
    const char *code = "E-CONFIG ";
    text += strncmp(text, code, strlen(code)) == 0 ? strlen(code) : 0;
    snprintf(row->problem, sizeof(row->problem), "%.*s", (int)strcspn(text, "\n"), text);
}

static void read_row(struct suite_row *row, struct job_selection *selection)
{
    struct text_buffer errors = {.text = NULL};
    row->benchmark            = memory_allocate(sizeof(*row->benchmark));
    selection->errors         = &errors;
    status read               = benchmark_read(row->benchmark, selection);
    if (failed(&read)) {
        keep_problem(row, &read, &errors);
        free(row->benchmark);
        row->benchmark = NULL;
    } else {
        set_estimates(row, &row->benchmark->job);
    }
    text_free(&errors);
}

// Adds a row "NAME = CONFIG SECTION.KEY=VALUE ...". `given` has the overrides of the command line. They are appended
// last, so they take precedence.
static status add_row(struct suite *suite, char *name, char *value, const struct job_selection *given, int line)
{
    char                 path[1024], output[OUTPUT_PATH_BYTES];
    bool                 is_long   = false;
    struct job_selection selection = *given;
    struct suite_row    *row       = LIST_ADD(suite->rows, suite->row_count);
    *row                           = (struct suite_row){.published_seconds = NAN,
                                                        .minutes           = NAN,
                                                        .expected_seconds  = NAN,
                                                        .percent           = NAN,
                                                        .token_dollars     = NAN,
                                                        .step_seconds      = NAN,
                                                        .low               = NAN,
                                                        .high              = NAN,
                                                        .published_percent = NAN};
    selection.name                 = strsep(&value, " \t");
    selection.overrides.count      = 0;
    for (const char *word; (word = strsep(&value, " \t")) != NULL;) {
        is_long |= selection.overrides.count == SETTINGS_MAX;
        if (word[0] != '\0' && !is_long) {
            selection.overrides.items[selection.overrides.count++] = word;
        }
    }
    if (!text_copy(row->name, sizeof(row->name), name) ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")] != '\0') {
        return fail("%s:%d: a row's name has small letters, digits, - and ., at most %d: %s", suite->path, line,
                    (int)sizeof(row->name) - 1, name);
    }
    if (strchr(selection.name, '/') == NULL && !config_find(selection.name, path, sizeof(path))) {
        return fail("%s:%d: %s: no config named %s: gswbench configs lists them", suite->path, line, name,
                    selection.name);
    }
    FAIL_IF(is_long || selection.overrides.count + given->overrides.count >= TEXT_LIST_MAX,
            "%s:%d: %s: too many settings", suite->path, line, name);
    for (int i = 0; i < given->overrides.count; i++) {
        selection.overrides.items[selection.overrides.count++] = given->overrides.items[i];
    }
    snprintf(output, sizeof(output), "--out run.output=%s/%s", suite->output, name);
    selection.overrides.items[selection.overrides.count++] = output;
    text_printable(row->config, sizeof(row->config), selection.name);
    read_row(row, &selection);
    return OK;
}

static status read_line(struct suite *suite, char *text, int line, bool *in_rows, const struct job_selection *selection)
{
    char *name, *value;
    text += strspn(text, " \t\r");
    if (text[0] == '\0' || text[0] == '#' || text[0] == ';') {
        return OK;
    }
    if (strncmp(text, "[rows]", strlen("[rows]")) == 0) {
        *in_rows = true;
        return OK;
    }
    if (!text_split_assignment(text, &name, &value)) {
        return fail("%s:%d: expected about = TEXT, [rows], or below it NAME = CONFIG", suite->path, line);
    }
    if (!*in_rows) {
        text_printable(suite->about, sizeof(suite->about), value);
        return strcmp(name, "about") == 0 ? OK : fail("%s:%d: unknown: %s", suite->path, line, name);
    }
    for (int64_t i = 0; i < suite->row_count; i++) {
        FAIL_IF(strcmp(suite->rows[i].name, name) == 0, "%s:%d: %s is there twice", suite->path, line, name);
    }
    return suite->row_count < ROWS_MAX ? add_row(suite, name, value, selection, line)
                                       : fail("%s:%d: more than %d rows", suite->path, line, ROWS_MAX);
}

status suite_read(struct suite *suite, const char *name, const struct job_selection *selection)
{
    char  *text = NULL;
    size_t bytes;
    bool   in_rows = false;
    int    line    = 0;
    status result  = OK;
    TRY(find_file(suite, name));
    status read = input_load(suite->path, FILE_BYTES_MAX, &text, &bytes);
    FAIL_IF(failed(&read), "%s: %s", suite->path, read.text);
    suite->minutes = suite->seconds / 60.0;
    suite->ranks   = selection->ranks;
    for (char *rest = text, *one; !failed(&result) && (one = strsep(&rest, "\n")) != NULL;) {
        result = read_line(suite, one, ++line, &in_rows, selection);
    }
    for (int64_t i = 0; i < suite->row_count; i++) {
        const struct suite_row *row = &suite->rows[i];
        suite->minutes += row->benchmark != NULL && row->reason[0] == '\0' ? row->minutes : 0.0;
        suite->ranks = row->benchmark != NULL ? row->benchmark->job.request.mesh.world : suite->ranks;
    }
    free(text);
    return failed(&result) || suite->row_count > 0 ? result : fail("%s has no rows", suite->path);
}

void suite_free(struct suite *suite)
{
    for (int64_t i = 0; i < suite->row_count; i++) {
        if (suite->rows[i].benchmark != NULL) {
            free(suite->rows[i].benchmark->config_text);
            free(suite->rows[i].benchmark);
        }
    }
    free(suite->rows);
    *suite = (struct suite){.rows = NULL};
}

// SPDX-License-Identifier: MIT
// Tests the 80 published step times of the first five configurations. From each, the program must compute the published
// tokens/s, MFU to the printed digits, and days for 1T tokens. A model with fewer layers must be labelled a proxy; no
// days are published for a proxy.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/job.h"
#include "gswbench/show.h"

#include "../config/published_rows.h"
#include "line.h"

// The label must say how many layers of the whole model a published proxy has.
static const struct {
    const char *config;
    int64_t     ranks;
    const char *label;
} proxies[] = {
    {"grok1-314b", 8, ", a proxy (2 of 64 layers),"},        {"grok1-314b", 16, ", a proxy (4 of 64 layers),"},
    {"grok1-314b", 32, ", a proxy (4 of 64 layers),"},       {"grok1-314b", 64, ", a proxy (8 of 64 layers),"},
    {"grok1-314b", 128, ", a proxy (16 of 64 layers),"},     {"grok1-314b", 256, ", a proxy (32 of 64 layers),"},
    {"llama3.1-405b", 32, ", a proxy (8 of 126 layers),"},   {"llama3.1-405b", 64, ", a proxy (30 of 126 layers),"},
    {"llama3.1-405b", 128, ", a proxy (62 of 126 layers),"},
};

static const char *find_label(const struct published_row *row)
{
    for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
        if (strcmp(proxies[i].config, row->config) == 0 && proxies[i].ranks == row->ranks) {
            return proxies[i].label;
        }
    }
    return "";
}

static void open_row(struct job *job, const struct published_row *row)
{
    struct text_buffer   errors    = {.text = NULL};
    struct job_selection selection = {.name = row->config, .ranks = row->ranks, .errors = &errors};
    selection.overrides.items[selection.overrides.count++] = line_of("precision.compute=%s", row->precision);
    status read                                            = job_read(job, &selection);
    cr_assert_not(failed(&read), "%s at %d ranks: %s", row->config, (int)row->ranks, errors.text);
    text_free(&errors);
}

// The published number is rounded, so the difference may be half a unit of its last digit.
static void expect_digits(const struct published_row *row, double found, const char *printed)
{
    const char *dot   = strchr(printed, '.');
    double      digit = pow(10, dot == NULL ? 0 : -(double)strlen(dot + 1));
    cr_expect_leq(fabs(found - strtod(printed, NULL)), 0.51 * digit, "%s at %d ranks, %s: %g, published %s",
                  row->config, (int)row->ranks, row->precision, found, printed);
}

static void expect_row(const struct published_row *row)
{
    struct job *job = malloc(sizeof(*job));
    char        label[64];
    open_row(job, row);
    double tokens = job_published_tokens_per_second(job), seconds = job->config.published.step_seconds;
    cr_expect_eq(seconds, strtod(row->step_seconds, NULL));
    cr_expect_float_eq(tokens * seconds, (double)(job->config.train.global_batch * job->config.train.sequence), 1e-3);
    expect_digits(row, 100 * job_published_mfu(job),
                  row->derived_percent != NULL ? row->derived_percent : row->mfu_percent);
    cr_expect_str_eq(show_proxy(&job->config, label, sizeof(label)), find_label(row), "%s at %d ranks", row->config,
                     (int)row->ranks);
    cr_expect_eq(config_is_proxy(&job->config), find_label(row)[0] != '\0');
    free(job);
}

Test(published_rows, of_the_first_systems_have_their_figures)
{
    int rows = 0, named = 0;
    for (const struct published_row *row = published_rows; row < published_rows + PUBLISHED_ROWS; row++) {
        if (row->step_seconds != NULL && strncmp(row->config, "kempnerforge", strlen("kempnerforge")) != 0) {
            expect_row(row);
            rows++;
            named += find_label(row)[0] != '\0';
        }
    }
    cr_expect_eq(rows, 80);
    cr_expect_eq(named, 18);
}

// The precision and the GPU of a row are overrides as well.
Test(published_rows, say_how_many_overrides_they_take)
{
    static struct job           job;
    static struct job_selection selection = {.name = "tiny-llama", .overrides = {.count = TEXT_LIST_MAX}};
    struct config_row           row       = {.ranks = 1, .precision = "bf16", .gpu = "h100-sxm"};
    cr_expect_str_eq(job_read_row(&job, &selection, &row).text, "more than 254 overrides");
}

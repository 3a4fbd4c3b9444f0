// SPDX-License-Identifier: MIT
// Plans the job of every published row. It has run, so the memory that is predicted for its framework must fit its GPU.
// If the row has published memory, as allocated or reserved bytes, the prediction must be near.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/predict.h"
#include "shipped_machine.h"

struct sum {
    int    published, modelled, rows;
    double fullest;          // largest fraction of a device's memory
    double size, maximum;    // absolute errors in percent of the rows with published memory
};

static void expect_fit(struct sum *sum, const struct job *job)
{
    struct footprint footprint;
    bool             is_planned = !failed(&job->support) || plan_is_long(&job->request);
    if (!is_planned || job->config.published.step_seconds == 0.0) {
        return;
    }
    sum->published++;
    if (!footprint_is_modelled(&job->config.software)) {
        return;
    }
    struct machine machine = predict_machine(&job->config, NULL);
    status         found   = predict_footprint(&footprint, &job->request, &machine);
    cr_assert_not(failed(&found), "%s", found.text);
    double share = (double)footprint.device / (job->config.hardware.memory_gb.value * 1e9);
    char   layout[256];
    cr_expect(share > 0.05 && share <= 1.0, "%s on %s, %s, %s: %.1f GB", job->config.name, job->config.hardware.profile,
              job->config.published.variant, job_layout(job, layout, sizeof(layout)), (double)footprint.device / 1e9);
    sum->modelled++;
    sum->fullest = fmax(sum->fullest, share);
}

static void add_row(void *context, const struct job_selection *selection, const struct config_row *chosen)
{
    struct sum        *sum  = context;
    struct predict_row row  = {.explanation = {.visit = NULL}};
    status             read = job_read_row(&row.job, selection, chosen);
    cr_assert_not(failed(&read), "%s", selection->errors->text);
    expect_fit(sum, &row.job);
    if (row.job.config.published.memory_gib == 0.0) {
        return;
    }
    predict_row_compute(&row, false);
    text_free(&row.warnings);
    cr_assert_not(failed(&row.support), "%s", row.support.text);
    double error = fabs(row.memory_error_percent);
    bool   tests = strncmp(row.job.config.name, "simumax-", strlen("simumax-")) == 0;
    cr_expect_leq(error, tests ? 1.0 : 20.0, "%s, %s: %+.1f %%", row.job.config.name, row.job.config.published.variant,
                  row.memory_error_percent);
    sum->rows++;
    sum->size += error;
    sum->maximum = fmax(sum->maximum, error);
}

// The profiles of MaxText and LLM Foundry have no memory model, so their rows are not modelled.
Test(memory_rows, fit_their_gpus_and_are_predicted_to_three_percent)
{
    struct sum sum = {.rows = 0};
    each_row(add_row, &sum);
    cr_expect_eq(sum.published, 520);
    cr_expect_eq(sum.modelled, 431);
    cr_expect_geq(sum.rows, 30);
    cr_expect_leq(sum.size / sum.rows, 3.0, "%d rows, size %.2f %%, most %.1f %%", sum.rows, sum.size / sum.rows,
                  sum.maximum);
    printf("%d of %d rows: the fullest takes %.1f %% of its GPU\n", sum.modelled, sum.published, 100 * sum.fullest);
    printf("%d rows: size %.2f %%, most %.1f %%\n", sum.rows, sum.size / sum.rows, sum.maximum);
}

// SPDX-License-Identifier: MIT
// Compares predicted with published memory for every row that has it, as allocated or reserved bytes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/predict.h"
#include "shipped_machine.h"

struct sum {
    int    rows;
    double size, maximum;
};

static void add_row(void *context, const struct job_selection *selection, const struct config_row *chosen)
{
    struct sum        *sum    = context;
    struct predict_row row    = {.explanation = {.visit = NULL}};
    struct text_buffer errors = {.text = NULL};
    status             read   = job_read_row(&row.job, selection, chosen, &errors);
    cr_assert_not(failed(&read), "%s", errors.text);
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

Test(memory_rows, are_predicted_to_three_percent)
{
    struct sum sum = {.rows = 0};
    each_row(add_row, &sum);
    cr_expect_geq(sum.rows, 30);
    cr_expect_leq(sum.size / sum.rows, 3.0, "%d rows, size %.2f %%, most %.1f %%", sum.rows, sum.size / sum.rows,
                  sum.maximum);
    printf("%d rows: size %.2f %%, most %.1f %%\n", sum.rows, sum.size / sum.rows, sum.maximum);
}

// SPDX-License-Identifier: MIT
// Each published job has run, so the memory predicted for its framework must fit its GPU. Plans every row of every
// configuration and simulates none.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/predict.h"
#include "shipped_machine.h"

struct sum {
    int    published, modelled;
    double fullest;    // largest fraction of a device's memory
};

static void add_row(void *context, const struct job_selection *selection, const struct config_row *chosen)
{
    struct sum        *sum = context;
    struct job         job;
    struct footprint   footprint;
    struct text_buffer errors = {.text = NULL};
    status             read   = job_read_row(&job, selection, chosen, &errors);
    cr_assert_not(failed(&read), "%s", errors.text);
    bool is_planned = !failed(&job.support) || plan_is_long(&job.request);
    if (!is_planned || job.config.published.step_seconds == 0.0) {
        return;
    }
    sum->published++;
    if (!footprint_is_modelled(&job.config.software)) {
        return;
    }
    struct machine machine = predict_machine(&job.config, NULL);
    status         found   = predict_footprint(&footprint, &job.request, &machine);
    cr_assert_not(failed(&found), "%s", found.text);
    double share = (double)footprint.device / (job.config.hardware.memory_gb.value * 1e9);
    char   layout[256];
    cr_expect(share > 0.05 && share <= 1.0, "%s on %s, %s, %s: %.1f GB", job.config.name, job.config.hardware.profile,
              job.config.published.variant, job_layout(&job, layout, sizeof(layout)), (double)footprint.device / 1e9);
    sum->modelled++;
    sum->fullest = share > sum->fullest ? share : sum->fullest;
}

// The profiles of MaxText and LLM Foundry have no memory model, so their rows are left out.
Test(published_memory, fits_the_gpu_of_every_row)
{
    struct sum sum = {.published = 0};
    each_row(add_row, &sum);
    cr_expect_eq(sum.published, 520);
    cr_expect_eq(sum.modelled, 431);
    printf("%d of %d rows: the fullest takes %.1f %% of its GPU\n", sum.modelled, sum.published, 100 * sum.fullest);
}

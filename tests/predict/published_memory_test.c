// SPDX-License-Identifier: MIT
// A published job ran, so the program that it names fits its GPU. Plans every row of every config and simulates none.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/predict.h"

struct sum {
    int    published, modelled;
    double fullest;    // largest share of a device's memory
};

static void add_row(struct sum *sum, const struct job_selection *selection, const struct config_row *chosen)
{
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

static void add_folder(struct sum *sum, const char *folder)
{
    struct dirent **entries;
    int             count = scandir(folder, &entries, config_is_file, alphasort);
    for (int i = 0; i < count; i++) {
        char               path[1400];
        struct config_row  rows[CONFIG_ROWS_MAX];
        struct text_buffer errors = {.text = NULL};
        int                row_count;
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        struct job_selection selection = {.name = path};
        status               listed    = job_rows(&selection, rows, &row_count, &errors);
        cr_assert_not(failed(&listed), "%s", errors.text);
        for (int row = 0; row < row_count; row++) {
            add_row(sum, &selection, &rows[row]);
        }
        free(entries[i]);
    }
    free(entries);
}

// The other programs, MaxText and LLM Foundry, have no model of their memory.
Test(published_memory, fits_the_gpu_of_every_row)
{
    struct sum sum = {.published = 0};
    char       folder[1024];
    snprintf(folder, sizeof(folder), "%s/configs", GSWBENCH_SOURCE_DIR);
    setenv("GSWBENCH_CONFIGS", folder, 1);
    add_folder(&sum, folder);
    snprintf(folder, sizeof(folder), "%s/configs/atlas", GSWBENCH_SOURCE_DIR);
    add_folder(&sum, folder);
    cr_expect_eq(sum.published, 414);
    cr_expect_eq(sum.modelled, 325);
    printf("%d of %d rows: the fullest takes %.1f %% of its GPU\n", sum.modelled, sum.published, 100 * sum.fullest);
}

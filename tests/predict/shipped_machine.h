// SPDX-License-Identifier: MIT
// Reads the shipped machine profiles, with which tests compare published results.
#pragma once

#include <criterion/criterion.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/job.h"
#include "layouts.h"
#include "line.h"

// Returns the configuration of a shipped machine profile, with gswbench as the framework.
static inline struct config read_machine(const char *profile)
{
    struct job job;
    layout_job(&job, "tiny-llama", 1, line_of("hardware.profile=%s", profile));
    return job.config;
}

typedef void visit_row(void *context, const struct job_selection *selection, const struct config_row *row);

// Calls visit for each row of every shipped configuration.
static inline void each_row(visit_row *visit, void *context)
{
    static const char *const folders[] = {GSWBENCH_SOURCE_DIR "/configs", GSWBENCH_SOURCE_DIR "/configs/atlas"};
    setenv("GSWBENCH_CONFIGS", folders[0], 1);
    for (int folder = 0; folder < 2; folder++) {
        struct arena arena = {.blocks = NULL};
        for (const char **name = config_names(&arena, folders[folder]); *name != NULL; name++) {
            struct config_row    rows[CONFIG_ROWS_MAX];
            struct text_buffer   errors = {.text = NULL};
            int                  row_count;
            struct job_selection selection = {.name   = arena_format(&arena, "%s/%s.ini", folders[folder], *name),
                                              .errors = &errors};
            status               listed    = job_rows(&selection, rows, &row_count);
            cr_assert_not(failed(&listed), "%s", errors.text);
            for (int row = 0; row < row_count; row++) {
                visit(context, &selection, &rows[row]);
            }
        }
        arena_free(&arena);
    }
}

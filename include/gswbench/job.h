// SPDX-License-Identifier: MIT
// A job: a configuration at a number of ranks, checked, and with everything derived from it that needs no plan.
#ifndef GSWBENCH_JOB_H
#define GSWBENCH_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/config.h"
#include "gswbench/mesh.h"
#include "gswbench/plan_build.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

// What selects a configuration, the same for every command that reads one.
struct job_selection {
    const char      *name;
    struct text_list overrides;
    int64_t          ranks;
    bool             skips_fits;    // of hardware and software profiles
};

// config_print_places of the configuration that is selected, for an error that was found later.
void job_print_places(struct text_buffer *places, const struct job_selection *selection, const char *text);

// Reads and checks the configuration that is selected; a name is required. Every error is a line of errors.
status job_read_config(struct config *config, const struct job_selection *selection, struct text_buffer *errors);

// check.c: resolves the layout of a configuration, and checks each section and the combination of all: divisibility,
// options that exclude each other. A failure has a line for each error. A layout that depends on an unknown number of
// ranks is not resolved.
status job_check(struct plan_request *request, const struct config *config);

// The same without the checks that depend on the layout of [parallel].
status job_check_sections(const struct config *config);

// What the axes of a resolved layout divide, and how it deals layers and tokens.
status job_check_layout(const struct plan_request *request, const struct config *config);

// The sections that determine a plan; they point into the configuration.
struct plan_sections job_sections(const struct config *config);

// Whether the number of ranks is not given and an axis is auto.
bool job_is_open(const struct config *config);

struct job {
    struct config       config;        // the axes and the batch are resolved: nothing is auto
    struct plan_request request;       // the same as plans are made of it, for rank 0
    status              support;       // plan_supports
    bool                has_layout;    // false: [parallel] does not fit the ranks, and a layout is to be chosen
    bool                is_open;       // ranks were not given and an axis is auto: stands for every number that fits
};
status job_read(struct job *job, const struct job_selection *selection, struct text_buffer *errors);

// The same for a job whose layout is to be chosen: [parallel] may not fit the ranks, but the sequences of a step are
// known.
status job_read_open(struct job *job, const struct job_selection *selection, struct text_buffer *errors);

// The same for one row of a configuration.
status job_read_row(struct job *job, const struct job_selection *selection, const struct config_row *row,
                    struct text_buffer *errors);

// The rows of the configuration: those of the file, or one for the selected number of ranks.
status job_rows(const struct job_selection *selection, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                struct text_buffer *errors);

// "fsdp 128 dp 4", "one rank"
const char *job_layout(const struct job *job, char *text, size_t bytes);

// A warning of a layout that runs, but slowly on [hardware]: tp over the links between nodes. NULL: none.
const char *job_warning(const struct job *job, char *text, size_t bytes);

// Figures that follow from the published step time of the job, by the published convention; NaN without one, and for a
// proxy.
double job_published_tokens_per_second(const struct job *job);
double job_published_mfu(const struct job *job);

// What a rank's share of the model's FLOPs takes at the peak of the machine of [hardware]: by the published convention
// where there is a table, else by the full one; NaN without a peak. Attention's share of it; MFU, NaN where that were
// above the peak, and rate of a step.
double job_ideal_seconds(const struct job *job);
double job_attention_share(const struct job *job);
double job_mfu(const struct job *job, double seconds);
double job_tokens_per_second(const struct job *job, double seconds);

#endif

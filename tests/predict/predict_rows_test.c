// SPDX-License-Identifier: MIT
// Tests that no prediction exceeds the peak of the machine. Predicts the first row of each configuration on all shipped
// machine profiles, and other rows on two of them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "gswbench/arena.h"
#include "gswbench/job.h"
#include "gswbench/peak.h"
#include "gswbench/plan_build.h"
#include "line.h"
#include "simulated.h"

static const char *const profiles[] = {"a100-80gb", "b200",  "h100-sxm",      "h200",  "a100-40gb",
                                       "b300",      "gb200", "h100-sxm-96gb", "gb300", "h100-sxm-efa"};
enum { PROFILES = sizeof(profiles) / sizeof(profiles[0]), PROFILES_OF_EACH = 2 };

static void open_row(struct job *job, const char *name, const struct config_row *chosen, const char *profile)
{
    layout_job(job, name, chosen->ranks,
               line_of("precision.compute=%s hardware.profile=%s", chosen->precision, profile));
}

// Returns the time that the FLOPs of a rank take at peak, in this FLOP convention.
static double ideal_seconds(const struct job *row, enum flop_convention convention)
{
    const struct config *config = &row->config;
    double               flops  = layers_flops(&config->model, &config->published, convention, config->train.sequence);
    return flops * (double)row->request.train.global_batch / (double)row->request.mesh.world /
           peak_of_hardware(&config->hardware, precision_rate(config->precision.compute)).flops;
}

static void expect_below_peak(const struct job *row, double seconds)
{
    for (int i = FLOPS_PUBLISHED; i <= FLOPS_6N; i++) {
        double ideal = ideal_seconds(row, (enum flop_convention)i);
        cr_expect(isnan(ideal) || ideal < seconds, "%s at %d ranks on %s: %g s, but %g s at the peak (%s)",
                  row->config.name, (int)row->request.mesh.world, row->config.hardware.profile, seconds, ideal,
                  model_flop_names[i]);
    }
}

static void expect_parts_from_zero(struct job *row, const struct machine *machine)
{
    struct predict_explanation explanation = {
        .ideal_seconds = ideal_seconds(row, FLOPS_FULL),
        .attention_share =
            layers_attention_share(&row->config.model, &row->config.published, FLOPS_FULL, row->config.train.sequence)};
    struct prediction prediction;
    REQUIRE(predict_explain(&explanation, &prediction, &row->request, machine));
    double sum = sum_parts(&explanation.waterfall);
    cr_expect_float_eq(sum, prediction.step_seconds, 1e-9 * sum, "%s at %d ranks on %s", row->config.name,
                       (int)row->request.mesh.world, row->config.hardware.profile);
}

// Predicts a row on the machines, for which it builds the pipeline only once. Returns the number of machines with a
// prediction.
static int predict_row(const char *name, const struct config_row *chosen, bool is_first)
{
    struct job             *rows = calloc(PROFILES, sizeof(*rows));
    struct predict_pipeline pipeline;
    struct prediction       prediction;
    int                     predicted = 0, count = is_first ? PROFILES : PROFILES_OF_EACH;
    for (int i = 0; i < count; i++) {
        open_row(&rows[i], name, chosen, profiles[i]);
    }
    REQUIRE(predict_pipeline_init(&pipeline, &rows[0].request));
    for (int i = 0; i < count; i++) {
        const struct config *config   = &rows[i].config;
        struct machine       machine  = {.hardware = &config->hardware, .software = &config->software};
        status               supports = predict_supports(&rows[i].request, &config->hardware);
        if (failed(&supports)) {
            cr_expect(config->precision.compute == COMPUTE_FP8 && strncmp(profiles[i], "a100", 4) == 0, "%s: %s", name,
                      supports.text);
            continue;
        }
        REQUIRE(predict_time_pipeline(&prediction, &pipeline, &rows[i].request, &machine));
        expect_below_peak(&rows[i], prediction.step_seconds);
        if (is_first) {
            expect_parts_from_zero(&rows[i], &machine);
        }
        predicted++;
    }
    predict_pipeline_free(&pipeline);
    free(rows);
    return predicted;
}

// Predicts the first row of each configuration, and an eighth of the others.
Test(predict_rows, are_below_the_peak_of_every_machine)
{
    static const char folder[]  = GSWBENCH_SOURCE_DIR "/configs";
    struct arena      arena     = {.blocks = NULL};
    int               predicted = 0;
    setenv("GSWBENCH_CONFIGS", folder, 1);
    for (const char **name = config_names(&arena, folder); *name != NULL; name++) {
        struct config_row     rows[CONFIG_ROWS_MAX];
        struct text_buffer    errors  = {.text = NULL};
        struct config_request request = {.name = *name};
        int                   row_count;
        REQUIRE(config_rows(&request, rows, &row_count, &errors));
        for (int row = 0; row < row_count && rows[row].ranks > 0; row++) {
            bool is_chosen = row == 0 || is_drawn(row, 8);
            predicted += is_chosen ? predict_row(*name, &rows[row], row == 0) : 0;
        }
    }
    arena_free(&arena);
    cr_expect_gt(predicted, 60, "%d predictions", predicted);
}

// SPDX-License-Identifier: MIT
// Predicts a job on the machine of [hardware] and compares it with its published result.
#include "gswbench/predict.h"

#include <math.h>

#include "gswbench/measured.h"
#include "gswbench/sweep.h"
#include "internal.h"

struct machine predict_machine(const struct config *config, const struct measured_ops *measured)
{
    const struct run_config *run = &config->run;
    return (struct machine){.hardware  = &config->hardware,
                            .software  = &config->software,
                            .measured  = measured,
                            .sm_margin = run->sm_margin > 0 ? run->sm_margin : 0,
                            .zero_cta  = run->zero_cta != 0};
}

static status predict_on_profile(struct predict_row *row, bool wants_range)
{
    const struct config *config   = &row->job.config;
    struct measured_ops  measured = {.ops = NULL};
    const struct machine machine  = predict_machine(config, &measured);
    TRY(predict_supports(&row->job.request, &config->hardware));
    status result = measured_read_profile(&measured, &row->job.config);
    if (!failed(&result)) {
        result = predict_explain_job(&row->explanation, &row->prediction, &row->job, &machine);
    }
    if (!failed(&result)) {
        predict_warn(&row->job, &row->prediction, &measured, &row->warnings);
        result = wants_range ? predict_range(&row->range, &row->job.request, &machine) : OK;
    }
    measured_free(&measured);
    return result;
}

void predict_row_compute(struct predict_row *row, bool wants_range)
{
    const struct config *config = &row->job.config;
    row->range.percent          = NAN;
    job_layout(&row->job, row->layout, sizeof(row->layout));
    row->support           = predict_on_profile(row, wants_range);
    row->published_seconds = isnan(job_published_tokens_per_second(&row->job)) ? NAN : config->published.step_seconds;
    double seconds         = row->prediction.step_seconds;
    row->tokens_per_second = job_tokens_per_second(&row->job, seconds);
    row->token_dollars =
        hardware_token_dollars(config->hardware.gpu_hour_dollars, row->job.request.mesh.world, row->tokens_per_second);
    row->mfu            = job_mfu(&row->job, seconds);
    row->fits           = sweep_fits(&config->hardware, row->prediction.largest_bytes);
    row->is_program_fit = sweep_fits(&config->hardware, row->prediction.footprint.device);
    row->program_fits   = footprint_is_modelled(&config->software) ? &row->is_program_fit : NULL;
    bool is_reserved    = config->published.memory == MEMORY_RESERVED;
    row->memory_bytes =
        (double)(is_reserved ? row->prediction.footprint.reserved : row->prediction.footprint.allocated);
    row->memory_error_percent = config->published.memory_gib > 0.0
                                    ? 100.0 * (row->memory_bytes / (config->published.memory_gib * 0x1p30) - 1.0)
                                    : NAN;
    row->error_percent        = 100.0 * (seconds / row->published_seconds - 1.0);
}

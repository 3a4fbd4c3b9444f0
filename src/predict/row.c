// SPDX-License-Identifier: MIT
// Predicts a job on the machine of [hardware], warns of reasons to doubt the prediction, and compares it with the
// published result.
#include <inttypes.h>
#include <math.h>

#include "gswbench/number.h"
#include "internal.h"

// Limits for warnings. Above 92 % of device memory, little memory is left for errors of the estimates.
static const double memory_limit_percent = 92.0, imbalance_limit_percent = 5.0;

// Warns if the device has too little memory. gswbench and the modelled framework need different memory, so there is a
// warning for each.
static void warn_of_memory(const struct job *job, const struct prediction *prediction, struct text_buffer *warnings)
{
    double device_bytes = job->config.hardware.memory_gb.value * 1e9, own_bytes = (double)prediction->own_bytes;
    double limit = memory_limit_percent / 100.0 * device_bytes;
    char   text[32];
    if (device_bytes > 0.0 && own_bytes > limit) {
        text_append(warnings,
                    "gswbench itself needs %s with connections and context, %.0f %% of device memory ([hardware])%s\n",
                    number_bytes(text, sizeof(text), own_bytes), 100.0 * own_bytes / device_bytes,
                    own_bytes > device_bytes ? ": it does not fit" : "");
    }
    double bytes = (double)prediction->footprint.device;
    if (device_bytes > 0.0 && footprint_is_modelled(&job->config.software) && bytes > device_bytes) {
        text_append(warnings, "%s needs %s, %.0f %% of device memory ([hardware]): it does not fit\n",
                    job->config.software.profile, number_bytes(text, sizeof(text), bytes),
                    100.0 * bytes / device_bytes);
    }
}

static void warn_of_stages(const struct job *job, const struct prediction *prediction, struct text_buffer *warnings)
{
    const struct config *config = &job->config;
    int64_t              layers = config->model.layers + (config->parallel.layers_per_chunk_embedding != 0 ? 2 : 0);
    int64_t              chunks = job->request.mesh.size[AXIS_PP] * job->request.mesh.vp;
    if (config->parallel.last_chunk_layers > 0) {
        layers -= config->parallel.last_chunk_layers;
        chunks--;
    }
    if (layers % chunks != 0) {
        text_append(warnings, "%" PRId64 " layers over %" PRId64 " chunks: some chunks have one layer more\n", layers,
                    chunks);
    }
    if (prediction->imbalance_percent > imbalance_limit_percent) {
        text_append(warnings, "stage %" PRId64 " computes %.1f %% longer than the mean of all stages\n",
                    prediction->busiest_stage, prediction->imbalance_percent);
    }
}

// Adds one line per reason to doubt the prediction or the layout.
static void warn(const struct job *job, const struct prediction *prediction, const struct measured_ops *measured,
                 struct text_buffer *warnings)
{
    char text[256];
    warn_of_memory(job, prediction, warnings);
    warn_of_stages(job, prediction, warnings);
    // The MFU may exceed 1, because a convention may count FLOPs that are never executed, such as both halves of causal
    // attention.
    if (job_ideal_seconds(job) > prediction->step_seconds) {
        text_append(warnings, "no MFU: the FLOPs of this convention exceed the peak in this step time\n");
    }
    if (plan_is_long(&job->request)) {
        text_append(warnings,
                    "the step has more ops than a plan may have: extrapolated from %" PRId64 " microbatches\n",
                    plan_enough_microbatches(&job->request));
    }
    if (job_warning(job, text, sizeof(text)) != NULL) {
        text_append(warnings, "%s\n", text);
    }
    if (measured->count > 0 && prediction->measured_percent < 99.5) {
        text_append(warnings, "%.0f %% of the compute time is of ops without a measurement\n",
                    100.0 - prediction->measured_percent);
    }
}

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
        warn(&row->job, &row->prediction, &measured, &row->warnings);
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
    bool is_known       = config->hardware.memory_gb.value > 0.0;
    row->is_fit         = hardware_holds(&config->hardware, row->prediction.own_bytes);
    row->fits           = is_known ? &row->is_fit : NULL;
    row->is_program_fit = hardware_holds(&config->hardware, row->prediction.footprint.device);
    row->program_fits   = is_known && footprint_is_modelled(&config->software) ? &row->is_program_fit : NULL;
    bool is_reserved    = config->published.memory == MEMORY_RESERVED;
    row->memory_bytes =
        (double)(is_reserved ? row->prediction.footprint.reserved : row->prediction.footprint.allocated);
    row->memory_error_percent = config->published.memory_gib > 0.0
                                    ? 100.0 * (row->memory_bytes / (config->published.memory_gib * 0x1p30) - 1.0)
                                    : NAN;
    row->error_percent        = 100.0 * (seconds / row->published_seconds - 1.0);
}

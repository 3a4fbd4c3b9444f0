// SPDX-License-Identifier: MIT
// Prints a job verified by gswbench check, in detail or as one line, and has the field tables of check --json.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/plan_build.h"
#include "gswbench/report.h"
#include "gswbench/show.h"

static void print_flops(const struct proved_job *proved)
{
    static const char *const meanings[] = {
        [FLOPS_PUBLISHED] = "as in the publication",        [FLOPS_FULL] = "full attention matrix",
        [FLOPS_CAUSAL] = "half of the attention matrix",    [FLOPS_6N] = "6 N + 12 L h s per token",
        [FLOPS_HARDWARE] = "executed, including recompute",
    };
    printf("FLOPs per sequence, forward and backward\n");
    for (int convention = 0; convention < FLOPS_COUNT; convention++) {
        if (!isnan(proved->flops[convention])) {
            printf("  %-12s %-14.6g %s\n", model_flop_names[convention], proved->flops[convention],
                   meanings[convention]);
        }
    }
}

static void print_published(const struct proved_job *proved)
{
    const struct published_config *published = &proved->job.config.published;
    double                         tokens    = proved->published_tokens;
    if (!isnan(tokens)) {
        char days[48] = "", printed[48] = "";
        if (!config_is_proxy(&proved->job.config)) {
            snprintf(days, sizeof(days), ", %.2f days to 1T tokens", 1e12 / tokens / 86400.0);
        }
        if (published->mfu_percent > 0) {
            snprintf(printed, sizeof(printed), " (printed: %.2f %%)", published->mfu_percent);
        }
        show_row("published", "%.3f s/step: %.0f tokens/s%s", published->step_seconds, tokens, days);
        show_row("", "MFU %.2f %%%s", 100 * proved->published_mfu, printed);
    }
}

static bool is_unfit(const bool *fits)
{
    return fits != NULL && !*fits;
}

static void print_plan(const struct proved_job *proved)
{
    if (failed(&proved->job.support)) {
        show_row("plan", "cannot run: %s", proved->job.support.text);
        return;
    }
    printf("plan           %" PRId32 " ops on rank %" PRId64 "\n", proved->proof.largest_ops,
           proved->proof.largest_rank);
    printf("verified       %" PRId64 " rank%s: %" PRId64 " plan%s built, %" PRId64 " distinct\n", proved->proof.world,
           proved->proof.world == 1 ? "" : "s", proved->proof.built, proved->proof.built == 1 ? "" : "s",
           proved->proof.classes);
    show_row("memory", "%s on rank %" PRId64 " (maximum)%s", report_bytes((double)proved->proof.largest_bytes),
             proved->proof.largest_rank,
             is_unfit(proved->fits) ? " for gswbench itself: more than [hardware] memory_gb" : "");
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        printf("  %-12s %s\n", plan_storage_name((enum storage)storage),
               report_bytes((double)proved->proof.largest_storage_bytes[storage]));
    }
    if (proved->connection_bytes > 0) {
        printf("connections    %s in addition (NCCL, estimated)\n", report_bytes((double)proved->connection_bytes));
    }
    int64_t context = hardware_context_bytes(&proved->job.config.hardware);
    if (proved->fits != NULL && context > 0) {
        printf("context        %s in addition (CUDA, estimated)\n", report_bytes((double)context));
    }
    if (proved->program_bytes != NULL) {
        show_row("program", "%s needs %s with connections and context%s", proved->job.config.software.profile,
                 report_bytes((double)proved->program_need),
                 is_unfit(proved->program_fits) ? ": more than [hardware] memory_gb; predict ends with CANNOT RUN"
                                                : "");
    }
    if (proved->excess[0] != '\0') {
        show_row("warning", "%s", proved->excess);
    }
    if (proved->proof.largest_quantized_bytes > 0) {
        bool is_fp4 = proved->job.config.precision.compute == COMPUTE_FP4;
        printf("casts to %s   %s read and written per step\n", is_fp4 ? "FP4" : "FP8",
               report_bytes((double)proved->proof.largest_quantized_bytes));
    }
}

static void print_warning(const struct proved_job *proved)
{
    if (proved->warning != NULL) {
        show_line(9, "warning: %s", proved->warning);
    }
}

void show_check_details(const struct proved_job *proved)
{
    const struct config       *config = &proved->job.config;
    const struct model_config *model  = &config->model;
    show_job(config, proved->job.request.mesh.world);
    show_row("model",
             "%s: %" PRId64 " layers, hidden %" PRId64 ", heads %" PRId64 " (%" PRId64 " KV) of %" PRId64
             ", MLP %" PRId64 " %s, vocabulary %" PRId64,
             model->preset[0] == '\0' ? "own shape" : model->preset, model->layers, model->hidden, model->heads,
             model->kv_heads, model->head_dim, model->ffn, model_activation_names[model->activation], model->vocab);
    char active[128] = "", trained[192] = "";
    if (layers_with_experts(model) > 0) {
        snprintf(active, sizeof(active), ", %" PRId64 " active (%" PRId64 " of %" PRId64 " experts per token)",
                 layers_active_parameters(model), model->top_k, model->experts);
    }
    if (model_is_frozen(model)) {
        char targets[64];
        option_print(option_find(adapters_options, "targets"), &model->adapters, targets, sizeof(targets));
        snprintf(trained, sizeof(trained), ", %" PRId64 " trained: adapters of rank %" PRId64 " on %s",
                 layers_trained_parameters(model), model->adapters.rank, targets);
    }
    show_row("parameters", "%" PRId64 "%s%s", layers_parameters(model), active, trained);
    show_row("layout", "%s%s", proved->layout, config->parallel.ep > 1 ? " (dp counts the ranks of ep)" : "");
    show_row("batch", "%" PRId64 " sequences of %" PRId64 " tokens; micro batch %" PRId64 ", accumulation %" PRId64,
             config->train.global_batch, config->train.sequence, config->train.micro_batch, config->train.accumulation);
    printf("recompute      %s\n", train_recompute_names[config->train.recompute]);
    print_flops(proved);
    print_published(proved);
    print_plan(proved);
    print_warning(proved);
}

void show_check_header(void)
{
    printf("%7s  %-4s  %-10s  %6s  %-12s %-12s %7s\n%15s\n", "ranks", "type", "parameters", "batch", "published",
           "full", "MFU", "layout");
}

void show_check_line(const struct proved_job *proved)
{
    const struct config *config   = &proved->job.config;
    bool                 own_fits = !is_unfit(proved->fits), program_fits = !is_unfit(proved->program_fits);
    char                 verified[160];
    snprintf(verified, sizeof(verified), "verified: %" PRId64 " plans built, %" PRId64 " distinct%s",
             proved->proof.built, proved->proof.classes,
             own_fits ? program_fits ? "" : "; the program CANNOT RUN: memory; gswbench fits"
             : program_fits && proved->program_fits != NULL ? "; gswbench CANNOT RUN: memory; the program fits"
                                                            : "; CANNOT RUN: memory");
    printf("%7" PRId64 "  %-4s  %-10s  %6" PRId64 "  %-12s %-12.6g %7s\n", proved->job.request.mesh.world,
           precision_compute_names[config->precision.compute], report_count((double)layers_parameters(&config->model)),
           config->train.global_batch, report_number("%.6g", proved->flops[FLOPS_PUBLISHED]), proved->flops[FLOPS_FULL],
           report_number("%.2f %%", 100 * proved->published_mfu));
    show_line(9, "         %s; %s", proved->layout, failed(&proved->job.support) ? proved->job.support.text : verified);
    print_warning(proved);
}

// A job in check --json. A NULL pointer and NaN values become null in JSON.
struct described_check {
    struct proved_job        row;
    const struct proved_job *plan;                 // NULL: this version of gswbench cannot run the job
    double                   step_seconds, mfu;    // published; NaN: not published
    int64_t                  parameters, active_parameters;
    bool                     is_supported;
};

// clang-format off
static const struct json_field verified[] = {
    ROW_INTEGER(proved_job, "ranks", proof.world),
    ROW_INTEGER(proved_job, "built", proof.built),
    ROW_INTEGER(proved_job, "distinct", proof.classes),
    ROW_INTEGER(proved_job, "ops", proof.ops),
    ROW_INTEGER(proved_job, "transfers", proof.communications),
    JSON_END
};
static const struct json_field fits[] = {
    JSON_REFERENCE(proved_job, JSON_FIELD_BOOLEAN, "gswbench", fits, NULL),
    JSON_REFERENCE(proved_job, JSON_FIELD_BOOLEAN, "program", program_fits, NULL),
    JSON_END
};
static const struct json_field plan[] = {
    ROW_INTEGER(proved_job, "ops", proof.largest_ops),
    ROW_INTEGER(proved_job, "total_bytes", proof.largest_bytes),
    JSON_MEMBER(proved_job, "storage_bytes", proof.largest_storage_bytes, plan_storage_fields),
    ROW_INTEGER(proved_job, "quantized_bytes", proof.largest_quantized_bytes),
    ROW_INTEGER(proved_job, "connection_bytes", connection_bytes),
    ROW_TEXT(proved_job, "ctas_warning", excess),
    JSON_REFERENCE(proved_job, JSON_FIELD_INTEGER, "program_bytes", program_bytes, NULL),
    JSON_OBJECT("fits", fits),
    JSON_OBJECT("verified", verified),
    JSON_END
};
static const struct json_field batch[] = {
    ROW_INTEGER(described_check, "sequence", row.job.config.train.sequence),
    ROW_INTEGER(described_check, "micro_batch", row.job.config.train.micro_batch),
    ROW_INTEGER(described_check, "accumulation", row.job.config.train.accumulation),
    ROW_INTEGER(described_check, "global_batch", row.job.config.train.global_batch),
    JSON_END
};
static const struct json_field published[] = {
    ROW_TEXT(described_check, "source", row.job.config.published.source),
    ROW_REAL(described_check, "step_s", step_seconds),
    ROW_REAL(described_check, "mfu", mfu),
    ROW_REAL(described_check, "derived_mfu", row.published_mfu),
    ROW_REAL(described_check, "derived_tokens_per_s", row.published_tokens),
    JSON_END
};
static const struct json_field row_fields[] = {
    ROW_INTEGER(described_check, "ranks", row.job.request.mesh.world),
    JSON_CHOICE(described_check, "precision", row.job.config.precision.compute, precision_compute_names),
    ROW_INTEGER(described_check, "layers", row.job.config.model.layers),
    ROW_INTEGER(described_check, "parameters", parameters),
    ROW_INTEGER(described_check, "active_parameters", active_parameters),
    JSON_MEMBER(described_check, "flops_per_sequence", row.flops, model_flop_fields),
    ROW_TEXT(described_check, "layout", row.layout),
    JSON_OBJECT("batch", batch),
    JSON_OBJECT("published", published),
    JSON_REFERENCE(described_check, JSON_FIELD_TEXT, "warning", row.warning, NULL),
    ROW_BOOLEAN(described_check, "supported", is_supported),
    ROW_TEXT(described_check, "reason", row.job.support.text),
    JSON_REFERENCE(described_check, JSON_FIELD_OBJECT, "plan", plan, plan),
    JSON_END
};
const struct json_field show_check_fields[] = {
    JSON_SCHEMA("gswbench.check/3"),
    JSON_REFERENCE(show_document, JSON_FIELD_TEXT, "config", config, NULL),
    JSON_ARRAY(show_document, "rows", rows, row_fields),
    JSON_END
};
// clang-format on

static double known(double value)
{
    return value == 0.0 ? NAN : value;
}

json_t *show_check_row(const struct proved_job *proved)
{
    const struct config    *config    = &proved->job.config;
    struct described_check *described = memory_allocate(sizeof(*described));
    *described                        = (struct described_check){.row               = *proved,
                                                                 .plan              = failed(&proved->job.support) ? NULL : proved,
                                                                 .step_seconds      = known(config->published.step_seconds),
                                                                 .mfu               = known(config->published.mfu_percent) / 100,
                                                                 .parameters        = layers_parameters(&config->model),
                                                                 .active_parameters = layers_active_parameters(&config->model),
                                                                 .is_supported      = !failed(&proved->job.support)};
    json_t *json                      = json_from_struct(row_fields, described);
    free(described);
    return json;
}

// SPDX-License-Identifier: MIT
// gswbench check: everything about a configuration that needs neither device nor MPI.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/layers.h"
#include "gswbench/number.h"
#include "gswbench/plan_build.h"
#include "gswbench/proof.h"
#include "gswbench/terminal.h"
#include "internal.h"

struct check_arguments {
    struct job_selection config;
    bool                 all, json;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(check_arguments, config),
    SWITCH_FLAG(check_arguments, all, "--all", "every row of every installed configuration, and their sum"),
    SWITCH_FLAG(check_arguments, json, "--json", "prints JSON"),
    END_FLAGS,
};

// One row with its proof, where this version can run it. FLOPs by convention; NaN: not known.
struct checked {
    struct job       job;
    double           flops[FLOPS_COUNT];
    struct job_proof proof;
    int64_t          connection_bytes;            // of the rank that needs the most memory, estimated
    char             excess[CLI_EXCESS_BYTES];    // of multiprocessors that transfers may hold; "": none
};

static status check(struct checked *checked)
{
    const struct config *config = &checked->job.config;
    for (int convention = 0; convention < FLOPS_COUNT; convention++) {
        checked->flops[convention] =
            layers_flops(&config->model, &config->published, (enum flop_convention)convention, config->train.sequence);
    }
    if (failed(&checked->job.support)) {
        return OK;
    }
    TRY(proof_check_backend(&checked->job.request, checked->job.config.run.backend));
    TRY(job_verify(&checked->job.request, &checked->proof));
    checked->flops[FLOPS_HARDWARE] = checked->proof.flops / (double)config->train.global_batch;
    return checked->proof.world == 1 ? OK
                                     : cli_check_connections(&checked->job, checked->proof.largest_rank,
                                                             &checked->connection_bytes, checked->excess);
}

static void print_flops(const struct checked *checked)
{
    static const char *const meanings[] = {
        [FLOPS_PUBLISHED] = "as the published table counts",
        [FLOPS_FULL]      = "whole square of attention",
        [FLOPS_CAUSAL]    = "half of the square",
        [FLOPS_6N]        = "6 N + 12 L h s a token",
        [FLOPS_HARDWARE]  = "what the step executes, recompute included",
    };
    printf("FLOPs a sequence, forward and backward\n");
    for (int convention = 0; convention < FLOPS_COUNT; convention++) {
        if (!isnan(checked->flops[convention])) {
            printf("  %-12s %-14.6g %s\n", model_flop_names[convention], checked->flops[convention],
                   meanings[convention]);
        }
    }
}

static void print_published(const struct job *job)
{
    const struct published_config *published = &job->config.published;
    double                         tokens    = job_published_tokens_per_second(job);
    if (!isnan(tokens)) {
        printf("published      %.3f s a step: %.0f tokens/s, %.2f days to 1T tokens, MFU %.2f %% (printed: %.2f %%)\n",
               published->step_seconds, tokens, 1e12 / tokens / 86400.0, job_published_mfu_percent(job),
               published->mfu_percent);
    }
}

// The plan against the device that results are set against.
enum fits { FITS_UNKNOWN, FITS_NOT, FITS };

static enum fits fits(const struct checked *checked)
{
    double device_bytes = checked->job.config.hardware.memory_gb.value * 1e9;
    if (device_bytes == 0.0) {
        return FITS_UNKNOWN;
    }
    return (double)(checked->proof.largest_bytes + checked->connection_bytes) > device_bytes ? FITS_NOT : FITS;
}

static void print_plan(const struct checked *checked)
{
    char text[32];
    if (failed(&checked->job.support)) {
        printf("plan           cannot run: %s\n", checked->job.support.text);
        return;
    }
    printf("plan           %" PRId32 " ops on rank %" PRId64 "\n", checked->proof.largest_ops,
           checked->proof.largest_rank);
    printf("verified       %" PRId64 " rank%s: %" PRId64 " plan%s built, %" PRId64 " distinct\n", checked->proof.world,
           checked->proof.world == 1 ? "" : "s", checked->proof.built, checked->proof.built == 1 ? "" : "s",
           checked->proof.distinct);
    printf("memory         %s on rank %" PRId64 ", the most%s\n",
           number_bytes(text, sizeof(text), (double)checked->proof.largest_bytes), checked->proof.largest_rank,
           fits(checked) == FITS_NOT ? ": more than the device of [hardware] has" : "");
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        printf("  %-12s %s\n", plan_storage_name((enum storage)storage),
               number_bytes(text, sizeof(text), (double)checked->proof.largest_storage_bytes[storage]));
    }
    if (checked->connection_bytes > 0) {
        printf("connections    %s beside it, estimated\n",
               number_bytes(text, sizeof(text), (double)checked->connection_bytes));
    }
    if (checked->excess[0] != '\0') {
        printf("warning        %s\n", checked->excess);
    }
    if (checked->proof.largest_quantized_bytes > 0) {
        printf("casts to FP8   %s read and written in a step\n",
               number_bytes(text, sizeof(text), (double)checked->proof.largest_quantized_bytes));
    }
}

static void print_details(const struct checked *checked)
{
    const struct config       *config = &checked->job.config;
    const struct model_config *model  = &config->model;
    char                       layout[256];

    printf("config         %s%s at %" PRId64 " rank%s, %s\n", config->name, config->run.layers > 0 ? ", a proxy," : "",
           checked->job.request.mesh.world, checked->job.request.mesh.world == 1 ? "" : "s",
           precision_compute_names[config->precision.compute]);
    printf("model          %s: %" PRId64 " layers, hidden %" PRId64 ", heads %" PRId64 " (%" PRId64 " KV) of %" PRId64
           ", MLP %" PRId64 " %s, vocabulary %" PRId64 "\n",
           model->preset[0] == '\0' ? "own shape" : model->preset, model->layers, model->hidden, model->heads,
           model->kv_heads, model->head_dim, model->ffn, model_activation_names[model->activation], model->vocab);
    printf("parameters     %" PRId64, layers_parameters(model));
    if (layers_with_experts(model) > 0) {
        printf(", %" PRId64 " active (%" PRId64 " of %" PRId64 " experts a token)", layers_active_parameters(model),
               model->top_k, model->experts);
    }
    printf("\nlayout         %s\n", job_layout(&checked->job, layout, sizeof(layout)));
    printf("batch          %" PRId64 " sequences of %" PRId64 " tokens a step; a replica computes %" PRId64
           " at a time, %" PRId64 " times\n",
           config->train.global_batch, config->train.sequence, config->train.micro_batch, config->train.accumulation);
    printf("recompute      %s\n", train_recompute_names[config->train.recompute]);
    print_flops(checked);
    print_published(&checked->job);
    print_plan(checked);
}

static void print_line(const struct checked *checked)
{
    const struct config *config = &checked->job.config;
    char                 layout[256], parameters[32], published[32] = "-", mfu[32] = "-", verified[64];
    snprintf(verified, sizeof(verified), "verified: %" PRId64 " plans built, %" PRId64 " distinct",
             checked->proof.built, checked->proof.distinct);
    if (!isnan(checked->flops[FLOPS_PUBLISHED])) {
        snprintf(published, sizeof(published), "%.6g", checked->flops[FLOPS_PUBLISHED]);
    }
    if (!isnan(job_published_mfu_percent(&checked->job))) {
        snprintf(mfu, sizeof(mfu), "%.2f %%", job_published_mfu_percent(&checked->job));
    }
    printf("%6" PRId64 "  %-5s %-10s %-38s %6" PRId64 "  %-12s %-12.6g %-8s %s\n", checked->job.request.mesh.world,
           precision_compute_names[config->precision.compute],
           number_count(parameters, sizeof(parameters), (double)layers_parameters(&config->model)),
           job_layout(&checked->job, layout, sizeof(layout)), config->train.global_batch, published,
           checked->flops[FLOPS_FULL], mfu, failed(&checked->job.support) ? checked->job.support.text : verified);
}

static void print_row(const struct checked *checked, bool is_alone)
{
    char        text[128];
    const char *warning = job_warning(&checked->job, text, sizeof(text));
    (is_alone ? print_details : print_line)(checked);
    if (warning != NULL) {
        printf("warning: %s\n", warning);
    }
}

// Rows that were looked at, and what was proven of them.
struct sum {
    struct progress  progress;
    int              rows, verified;
    struct job_proof proof;
};

static void add_proof(struct sum *sum, const struct job_proof *proof)
{
    sum->rows++;
    sum->verified += proof->built > 0;
    sum->proof.world += proof->world;
    sum->proof.built += proof->built;
    sum->proof.distinct += proof->distinct;
    sum->proof.ops += proof->ops;
    sum->proof.transfers += proof->transfers;
}

// Nothing was found in any of them, or there is no sum.
static void print_sum(const struct sum *sum)
{
    const struct job_proof *proof = &sum->proof;
    printf("%d of %d rows verified: %" PRId64 " ranks, %" PRId64 " plans built, %" PRId64 " distinct with %" PRId64
           " ops, %" PRId64 " of them transfers\n",
           sum->verified, sum->rows, proof->world, proof->built, proof->distinct, proof->ops, proof->transfers);
}

static json_t *describe_plan(const struct checked *checked)
{
    if (failed(&checked->job.support)) {
        return json_null();
    }
    json_t *bytes = json_object();
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        json_object_set_new(bytes, plan_storage_name((enum storage)storage),
                            json_integer(checked->proof.largest_storage_bytes[storage]));
    }
    json_t *fits_device = fits(checked) == FITS_UNKNOWN ? json_null() : json_boolean(fits(checked) == FITS);
    json_t *proof       = json_pack("{s:I, s:I, s:I, s:I, s:I}", "ranks", (json_int_t)checked->proof.world, "built",
                                    (json_int_t)checked->proof.built, "distinct", (json_int_t)checked->proof.distinct, "ops",
                                    (json_int_t)checked->proof.ops, "transfers", (json_int_t)checked->proof.transfers);
    return json_pack("{s:i, s:I, s:o, s:I, s:I, s:s?, s:o, s:o}", "ops", (int)checked->proof.largest_ops, "total_bytes",
                     (json_int_t)checked->proof.largest_bytes, "storage_bytes", bytes, "quantized_bytes",
                     (json_int_t)checked->proof.largest_quantized_bytes, "connection_bytes",
                     (json_int_t)checked->connection_bytes, "ctas_warning",
                     checked->excess[0] != '\0' ? checked->excess : NULL, "fits_device", fits_device, "verified",
                     proof);
}

static json_t *describe(const struct checked *checked)
{
    const struct config       *config = &checked->job.config;
    const struct model_config *model  = &config->model;
    char                       layout[256], warning[128];

    json_t *flops = json_object();
    for (int convention = 0; convention < FLOPS_COUNT; convention++) {
        json_object_set_new(flops, model_flop_names[convention], cli_json_real(checked->flops[convention]));
    }
    json_t *published = json_pack(
        "{s:s, s:o, s:o, s:o, s:o}", "source", config->published.source, "step_seconds",
        config->published.step_seconds == 0.0 ? json_null() : json_real(config->published.step_seconds), "mfu_percent",
        config->published.mfu_percent == 0.0 ? json_null() : json_real(config->published.mfu_percent),
        "derived_mfu_percent", cli_json_real(job_published_mfu_percent(&checked->job)), "derived_tokens_per_second",
        cli_json_real(job_published_tokens_per_second(&checked->job)));
    return json_pack(
        "{s:I, s:s, s:I, s:I, s:I, s:o, s:s, s:{s:I, s:I, s:I, s:I}, s:o, s:s?, s:b, s:s, s:o}", "ranks",
        (json_int_t)checked->job.request.mesh.world, "precision", precision_compute_names[config->precision.compute],
        "layers", (json_int_t)model->layers, "parameters", (json_int_t)layers_parameters(model), "active_parameters",
        (json_int_t)layers_active_parameters(model), "flops_per_sequence", flops, "layout",
        job_layout(&checked->job, layout, sizeof(layout)), "batch", "sequence", (json_int_t)config->train.sequence,
        "micro_batch", (json_int_t)config->train.micro_batch, "accumulation", (json_int_t)config->train.accumulation,
        "global_batch", (json_int_t)config->train.global_batch, "published", published, "warning",
        job_warning(&checked->job, warning, sizeof(warning)), "supported", !failed(&checked->job.support), "reason",
        checked->job.support.text, "plan", describe_plan(checked));
}

// Goes through all rows, so that the errors of all of them are reported; the status is the last one's. list: where rows
// are described, not printed; or NULL.
static status check_rows(const struct check_arguments *options, json_t *list, struct sum *sum,
                         struct text_buffer *errors)
{
    struct config_row rows[CONFIG_ROWS_MAX];
    int               count;
    status            result = OK;
    TRY(job_rows(&options->config, rows, &count, errors));
    bool is_alone = count == 1 && !options->all;
    if (!is_alone && list == NULL) {
        printf("%6s  %-5s %-10s %-38s %6s  %-12s %-12s %-8s\n", "ranks", "type", "parameters", "layout", "batch",
               "published", "full", "MFU");
    }
    for (int i = 0; i < count; i++) {
        struct checked checked = {.proof = {.world = 0}};
        status         row     = job_read_row(&checked.job, &options->config, &rows[i], errors);
        if (!failed(&row)) {
            progress_show(&sum->progress, sum->rows, checked.job.config.name);
            row = check(&checked);
            progress_clear(&sum->progress);
        }
        if (failed(&row)) {
            result = row;
        } else if (list != NULL) {
            json_array_append_new(list, describe(&checked));
        } else {
            print_row(&checked, is_alone);
        }
        add_proof(sum, &checked.proof);
    }
    return result;
}

// Of check --all: goes on after a failure, so that the errors of all are reported.
struct tour {
    const struct check_arguments *options;
    struct sum                   *sum;
    bool                          has_begun;
    status                        result;    // of the last configuration that failed
};

static status check_config(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    struct tour           *tour = state;
    struct check_arguments one  = *tour->options;
    one.config.name             = path;
    printf("%s%s\n", tour->has_begun ? "\n" : "", name);
    tour->has_begun = true;
    status checked  = check_rows(&one, NULL, tour->sum, errors);
    tour->result    = failed(&checked) ? checked : tour->result;
    return OK;
}

static status check_all(const struct check_arguments *options, struct sum *sum, struct text_buffer *errors)
{
    struct tour tour = {.options = options, .sum = sum};
    TRY(cli_visit_configs(check_config, &tour, errors));
    return tour.result;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct check_arguments *options = arguments;
    struct sum                    sum     = {.rows = 0};
    int64_t                       count   = 0;
    if (options->all && (options->json || options->config.name != NULL)) {
        return fail_as(EXIT_USAGE, "--all stands for every --config, and has no --json");
    }
    TRY(cli_count_rows(&count, &options->config, errors));
    sum.progress   = progress_begin("rows", count);
    json_t *list   = options->json ? json_array() : NULL;
    status  result = options->all ? check_all(options, &sum, errors) : check_rows(options, list, &sum, errors);
    if (!failed(&result) && list != NULL) {
        cli_print_json(json_pack("{s:s, s:O}", "config", options->config.name, "rows", list));
    } else if (!failed(&result) && sum.rows > 1) {
        print_sum(&sum);
    }
    json_decref(list);
    return result;
}

const struct command command_check = {
    .name  = "check",
    .help  = "check a configuration without device or MPI: parameters, FLOPs, batch, layout, memory, plan",
    .flags = flags,
    .bytes = sizeof(struct check_arguments),
    .run   = run,
};

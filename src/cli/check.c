// SPDX-License-Identifier: MIT
// gswbench check: verifies a configuration without a device or MPI.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/layers.h"
#include "gswbench/number.h"
#include "gswbench/plan_build.h"
#include "gswbench/proof.h"
#include "gswbench/terminal.h"
#include "check.h"

struct check_arguments {
    struct job_selection config;
    bool                 all, json;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(check_arguments, config),
    HEADING("Output"),
    SWITCH_FLAG(check_arguments, all, "--all", "check every row of every installed config"),
    SWITCH_FLAG(check_arguments, json, "--json", "print JSON"),
    END_FLAGS,
};

// Compares the largest plan plus NCCL memory with the memory of the [hardware] device.
static void set_fits(struct checked *checked)
{
    double device_bytes = checked->job.config.hardware.memory_gb.value * 1e9;
    checked->is_fit     = (double)(checked->proof.largest_bytes + checked->connection_bytes) <= device_bytes;
    checked->fits       = device_bytes > 0.0 ? &checked->is_fit : NULL;
}

static status check(struct checked *checked)
{
    const struct config *config = &checked->job.config;
    checked->published_mfu      = job_published_mfu(&checked->job);
    checked->published_tokens   = job_published_tokens_per_second(&checked->job);
    job_layout(&checked->job, checked->layout, sizeof(checked->layout));
    checked->warning = job_warning(&checked->job, checked->warning_text, sizeof(checked->warning_text));
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
    if (checked->proof.world > 1) {
        TRY(cli_check_connections(&checked->job, checked->proof.largest_rank, &checked->connection_bytes,
                                  checked->excess));
    }
    set_fits(checked);
    return OK;
}

static void print_flops(const struct checked *checked)
{
    static const char *const meanings[] = {
        [FLOPS_PUBLISHED] = "as in the publication",        [FLOPS_FULL] = "full attention matrix",
        [FLOPS_CAUSAL] = "half of the attention matrix",    [FLOPS_6N] = "6 N + 12 L h s per token",
        [FLOPS_HARDWARE] = "executed, including recompute",
    };
    printf("FLOPs per sequence, forward and backward\n");
    for (int convention = 0; convention < FLOPS_COUNT; convention++) {
        if (!isnan(checked->flops[convention])) {
            printf("  %-12s %-14.6g %s\n", model_flop_names[convention], checked->flops[convention],
                   meanings[convention]);
        }
    }
}

static void print_published(const struct checked *checked)
{
    const struct published_config *published = &checked->job.config.published;
    double                         tokens    = checked->published_tokens;
    if (!isnan(tokens)) {
        printf("published      %.3f s/step: %.0f tokens/s, %.2f days to 1T tokens, MFU %.2f %%",
               published->step_seconds, tokens, 1e12 / tokens / 86400.0, 100 * checked->published_mfu);
        if (published->mfu_percent > 0) {
            printf(" (printed: %.2f %%)", published->mfu_percent);
        }
        putchar('\n');
    }
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
    printf("memory         %s on rank %" PRId64 " (maximum)%s\n",
           number_bytes(text, sizeof(text), (double)checked->proof.largest_bytes), checked->proof.largest_rank,
           checked->fits != NULL && !*checked->fits ? ": more than [hardware] memory_gb" : "");
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        printf("  %-12s %s\n", plan_storage_name((enum storage)storage),
               number_bytes(text, sizeof(text), (double)checked->proof.largest_storage_bytes[storage]));
    }
    if (checked->connection_bytes > 0) {
        printf("connections    %s in addition (NCCL, estimated)\n",
               number_bytes(text, sizeof(text), (double)checked->connection_bytes));
    }
    if (checked->excess[0] != '\0') {
        printf("warning        %s\n", checked->excess);
    }
    if (checked->proof.largest_quantized_bytes > 0) {
        printf("casts to FP8   %s read and written per step\n",
               number_bytes(text, sizeof(text), (double)checked->proof.largest_quantized_bytes));
    }
}

static void print_details(const struct checked *checked)
{
    const struct config       *config = &checked->job.config;
    const struct model_config *model  = &config->model;

    printf("config         %s%s at %" PRId64 " rank%s, %s\n", config->name, config->run.layers > 0 ? ", a proxy," : "",
           checked->job.request.mesh.world, checked->job.request.mesh.world == 1 ? "" : "s",
           precision_compute_names[config->precision.compute]);
    printf("model          %s: %" PRId64 " layers, hidden %" PRId64 ", heads %" PRId64 " (%" PRId64 " KV) of %" PRId64
           ", MLP %" PRId64 " %s, vocabulary %" PRId64 "\n",
           model->preset[0] == '\0' ? "own shape" : model->preset, model->layers, model->hidden, model->heads,
           model->kv_heads, model->head_dim, model->ffn, model_activation_names[model->activation], model->vocab);
    printf("parameters     %" PRId64, layers_parameters(model));
    if (layers_with_experts(model) > 0) {
        printf(", %" PRId64 " active (%" PRId64 " of %" PRId64 " experts per token)", layers_active_parameters(model),
               model->top_k, model->experts);
    }
    printf("\nlayout         %s\n", checked->layout);
    printf("batch          %" PRId64 " sequences of %" PRId64 " tokens per step; micro batch %" PRId64
           ", gradient accumulation %" PRId64 "\n",
           config->train.global_batch, config->train.sequence, config->train.micro_batch, config->train.accumulation);
    printf("recompute      %s\n", train_recompute_names[config->train.recompute]);
    print_flops(checked);
    print_published(checked);
    print_plan(checked);
}

static void print_line(const struct checked *checked)
{
    const struct config *config = &checked->job.config;
    char                 parameters[32], published[32] = "-", mfu[32] = "-", verified[64];
    snprintf(verified, sizeof(verified), "verified: %" PRId64 " plans built, %" PRId64 " distinct",
             checked->proof.built, checked->proof.distinct);
    if (!isnan(checked->flops[FLOPS_PUBLISHED])) {
        snprintf(published, sizeof(published), "%.6g", checked->flops[FLOPS_PUBLISHED]);
    }
    if (!isnan(checked->published_mfu)) {
        snprintf(mfu, sizeof(mfu), "%.2f %%", 100 * checked->published_mfu);
    }
    printf("%6" PRId64 "  %-5s %-10s %-38s %6" PRId64 "  %-12s %-12.6g %-8s %s\n", checked->job.request.mesh.world,
           precision_compute_names[config->precision.compute],
           number_count(parameters, sizeof(parameters), (double)layers_parameters(&config->model)), checked->layout,
           config->train.global_batch, published, checked->flops[FLOPS_FULL], mfu,
           failed(&checked->job.support) ? checked->job.support.text : verified);
}

static void print_row(const struct checked *checked, bool is_alone)
{
    (is_alone ? print_details : print_line)(checked);
    if (checked->warning != NULL) {
        printf("warning: %s\n", checked->warning);
    }
}

// Number of rows checked, and the sum of their proofs.
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

// Prints the totals. The caller does this only if every row passed.
static void print_sum(const struct sum *sum)
{
    const struct job_proof *proof = &sum->proof;
    printf("%d of %d rows verified: %" PRId64 " ranks, %" PRId64 " plans built, %" PRId64 " distinct with %" PRId64
           " ops, %" PRId64 " of them transfers\n",
           sum->verified, sum->rows, proof->world, proof->built, proof->distinct, proof->ops, proof->transfers);
}

// Checks all rows and reports the errors of each; the status is the last row's. list receives the rows as JSON; NULL:
// rows are printed.
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
            json_array_append_new(list, check_describe(&checked));
        } else {
            print_row(&checked, is_alone);
        }
        add_proof(sum, &checked.proof);
    }
    return result;
}

// State of check --all, which continues after a failure to report the errors of all configurations.
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
        return fail_as(EXIT_USAGE, "--all checks every config: leave --config and --json out");
    }
    TRY(cli_count_rows(&count, &options->config, errors));
    sum.progress   = progress_begin("rows", count);
    json_t *list   = options->json ? json_array() : NULL;
    status  result = options->all ? check_all(options, &sum, errors) : check_rows(options, list, &sum, errors);
    if (!failed(&result) && list != NULL) {
        cli_print_json(json_from_struct(cli_check_fields, &(struct check_document){options->config.name, list}));
    } else if (!failed(&result) && sum.rows > 1) {
        print_sum(&sum);
    }
    json_decref(list);
    return result;
}

const struct command command_check = {
    .name    = "check",
    .help    = "check a config: parameters, FLOPs, batch, layout, memory",
    .example = "gswbench check llama3.1-8b --ranks 8",
    .flags   = flags,
    .bytes   = sizeof(struct check_arguments),
    .run     = run,
};

// SPDX-License-Identifier: MIT
// From the arguments of a command to a checked configuration and all that follows from it without a plan.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "internal.h"

static struct config_request make_request(const struct config_arguments *arguments)
{
    return (struct config_request){
        .name           = arguments->name,
        .overrides      = arguments->overrides.items,
        .override_count = arguments->overrides.count,
        .ranks          = arguments->ranks,
        .skips_fits     = arguments->skips_fits,
    };
}

static status require_config(const struct config_arguments *arguments)
{
    if (arguments->name == NULL) {
        return fail_as(EXIT_USAGE, "--config is missing: gswbench configs lists the installed ones");
    }
    return OK;
}

// Gives each line of the check's result its place, as the errors of reading have.
static status report(const struct config *config, const char *lines, struct text_buffer *errors)
{
    int count = 0;
    for (const char *line = lines; *line != '\0'; count++) {
        size_t length = strcspn(line, "\n");
        text_append(errors, "E-CONFIG %s: %.*s", config->path, (int)length, line);
        if (config->ranks > 0) {
            text_append(errors, " (at %" PRId64 " rank%s)", config->ranks, config->ranks == 1 ? "" : "s");
        }
        text_append(errors, "\n");
        line += length + (line[length] == '\n');
    }
    return fail("%d configuration error%s", count, count == 1 ? "" : "s");
}

status cli_read_config(struct config *config, const struct config_arguments *arguments, struct text_buffer *errors)
{
    TRY(require_config(arguments));
    struct config_request request = make_request(arguments);
    TRY(config_read(config, &request, errors));
    status check = config_check(config);
    return failed(&check) ? report(config, check.text, errors) : OK;
}

static bool has_auto_axis(const struct parallel_config *parallel)
{
    return parallel->tp == 0 || parallel->cp == 0 || parallel->fsdp == 0 || parallel->dp == 0 || parallel->pp == 0;
}

status job_read(struct job *job, const struct config_arguments *arguments, struct text_buffer *errors)
{
    struct config *config = &job->config;
    TRY(cli_read_config(config, arguments, errors));
    TRY(mesh_init(&job->mesh, &config->parallel, config->ranks));
    job->is_open          = config->ranks == 0 && has_auto_axis(&config->parallel);
    config->parallel.tp   = job->mesh.asked[AXIS_TP];
    config->parallel.cp   = job->mesh.asked[AXIS_CP];
    config->parallel.fsdp = job->mesh.asked[AXIS_FSDP];
    config->parallel.dp   = job->mesh.asked[AXIS_DP];
    config->parallel.pp   = job->mesh.asked[AXIS_PP];
    TRY(train_resolve(&config->train, config->parallel.fsdp * config->parallel.dp));
    job->request = (struct plan_request){
        .model     = &config->model,
        .parallel  = &config->parallel,
        .train     = &config->train,
        .precision = &config->precision,
        .world     = job->mesh.world,
    };
    job->support = plan_supports(&job->request);
    return OK;
}

// The row's precision comes before the user's overrides, which win.
status job_read_row(struct job *job, const struct config_arguments *arguments, const struct config_row *row,
                    struct text_buffer *errors)
{
    struct config_arguments selected = {
        .name = arguments->name, .ranks = row->ranks, .skips_fits = arguments->skips_fits};
    char precision[64];
    if (row->precision[0] != '\0') {
        snprintf(precision, sizeof(precision), "precision.compute=%s", row->precision);
        selected.overrides.items[selected.overrides.count++] = precision;
    }
    if (selected.overrides.count + arguments->overrides.count > LIST_ITEMS_MAX) {
        return fail_as(EXIT_USAGE, "more than %d overrides", LIST_ITEMS_MAX - 1);
    }
    for (int i = 0; i < arguments->overrides.count; i++) {
        selected.overrides.items[selected.overrides.count++] = arguments->overrides.items[i];
    }
    return job_read(job, &selected, errors);
}

status job_rows(const struct config_arguments *arguments, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                struct text_buffer *errors)
{
    TRY(require_config(arguments));
    if (arguments->ranks > 0) {
        rows[0] = (struct config_row){.ranks = arguments->ranks};
        *count  = 1;
        return OK;
    }
    struct config_request request = make_request(arguments);
    return config_rows(&request, rows, count, errors);
}

status job_read_measured(const struct job *job, struct measured_ops *measured)
{
    char profile[1400];
    *measured = (struct measured_ops){.ops = NULL};
    return config_find_profile(&job->config, profile, sizeof(profile)) ? measured_read(measured, profile) : OK;
}

const char *job_layout(const struct job *job, char *text, size_t bytes)
{
    const struct parallel_config *parallel = &job->config.parallel;
    const struct {
        const char *name;
        int64_t     size, plain;
    } parts[] = {
        {"fsdp", parallel->fsdp, 1}, {"dp", parallel->dp, 1}, {"tp", parallel->tp, 1}, {"cp", parallel->cp, 1},
        {"ep", parallel->ep, 1},     {"pp", parallel->pp, 1}, {"vp", parallel->vp, 1}, {"zero", parallel->zero, 0},
    };
    snprintf(text, bytes, "one rank");
    size_t length = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && length < bytes; i++) {
        if (parts[i].size != parts[i].plain) {
            length += (size_t)snprintf(text + length, bytes - length, "%s%s %" PRId64, length == 0 ? "" : " ",
                                       parts[i].name, parts[i].size);
        }
    }
    return text;
}

// Ranks of tp follow each other, and fill nodes in order.
const char *job_warning(const struct job *job, char *text, size_t bytes)
{
    int64_t tp = job->mesh.size[AXIS_TP], devices = job->config.hardware.gpus_per_node;
    if (job->mesh.world <= devices || devices % tp == 0) {
        return NULL;
    }
    snprintf(text, bytes,
             "[parallel] tp = %" PRId64 " crosses nodes of [hardware] gpus_per_node = %" PRId64
             ": every layer waits for the links between them",
             tp, devices);
    return text;
}

// A proxy is not what was published.
static bool has_published_step(const struct config *config)
{
    return config->published.step_seconds > 0.0 && config->run.layers == 0;
}

double job_tokens_per_second(const struct job *job, double seconds)
{
    return (double)job->config.train.sequence * (double)job->config.train.global_batch / seconds;
}

double job_published_tokens_per_second(const struct job *job)
{
    bool is_published = has_published_step(&job->config);
    return is_published ? job_tokens_per_second(job, job->config.published.step_seconds) : NAN;
}

static enum flop_convention convention_of(const struct config *config)
{
    return config->published.convention != FLOPS_PUBLISHED ? FLOPS_PUBLISHED : FLOPS_FULL;
}

double job_ideal_seconds(const struct job *job)
{
    const struct config           *config    = &job->config;
    const struct published_config *published = &config->published;
    bool                           is_fp8    = config->precision.compute == COMPUTE_FP8;
    double                         table     = is_fp8 ? published->peak_fp8 : published->peak_bf16;
    double                         device = is_fp8 ? config->hardware.peak_fp8.value : config->hardware.peak_bf16.value;
    double                         peak   = convention_of(config) == FLOPS_PUBLISHED ? table : device;
    double flops = model_flops(&config->model, published, convention_of(config), config->train.sequence);
    double work  = flops * (double)config->train.global_batch / (double)job->mesh.world;
    return peak > 0.0 ? work / peak : NAN;
}

double job_attention_share(const struct job *job)
{
    const struct config *config = &job->config;
    return model_attention_share(&config->model, &config->published, convention_of(config), config->train.sequence);
}

double job_mfu_percent(const struct job *job, double seconds)
{
    return 100.0 * job_ideal_seconds(job) / seconds;
}

double job_published_mfu_percent(const struct job *job)
{
    bool is_published = has_published_step(&job->config) && job->config.published.convention != FLOPS_PUBLISHED;
    return is_published ? job_mfu_percent(job, job->config.published.step_seconds) : NAN;
}

status job_explain(struct predict_explanation *explanation, struct prediction *prediction, const struct job *job,
                   const struct machine *machine)
{
    double ideal                 = job_ideal_seconds(job);
    explanation->ideal_seconds   = isnan(ideal) ? 0.0 : ideal;
    explanation->attention_share = job_attention_share(job);
    return predict_explain(explanation, prediction, &job->request, machine);
}

json_t *cli_json_real(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

json_t *cli_json_waterfall(const struct waterfall *waterfall)
{
    json_t *parts = json_object();
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        json_object_set_new(parts, waterfall_part_names[part], json_real(waterfall->seconds[part]));
    }
    return parts;
}

void cli_print_json(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(value);
}

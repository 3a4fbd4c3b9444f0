// SPDX-License-Identifier: MIT
// Validates a config: each section by the module that has its options, then rules that concern several sections.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/backend.h"
#include "gswbench/job.h"

// Returns the value of the integer option "section.key". `shown` receives "[section] key".
static int64_t number_of(const struct config *config, const char *name, char *shown, size_t bytes)
{
    const struct config_section *section;
    const struct option         *option = config_find_option(name, strlen(name), &section);
    snprintf(shown, bytes, "[%s] %s", section->name, option->key);
    return *(const int64_t *)(const void *)((const char *)config + section->offset + option->offset);
}

static void check_divides(status *errors, const struct config *config, const char *what, int64_t parts,
                          const char *divided)
{
    char    shown[64];
    int64_t number = number_of(config, divided, shown, sizeof(shown));
    status_add_if(errors, number % parts != 0, "[parallel] %s = %" PRId64 " does not divide %s = %" PRId64, what, parts,
                  shown, number);
}

static void check_meets(status *errors, const struct config *config, const struct axis_row *axis, int64_t size)
{
    char    shown[64];
    int64_t number = number_of(config, axis->meets, shown, sizeof(shown));
    status_add_if(errors, number > 0 && number % size != 0 && size % number != 0,
                  "[parallel] %s = %" PRId64 " neither divides %s = %" PRId64 " nor is a multiple of it", axis->name,
                  size, shown, number);
}

static void check_axis(status *errors, const struct config *config, const struct axis_row *axis, int64_t size)
{
    char    what[64];
    int64_t pieces = size > 1 && axis->pieces > 1 ? axis->pieces : 1;
    snprintf(what, sizeof(what), "%s", axis->name);
    if (pieces > 1) {
        snprintf(what, sizeof(what), "%" PRId64 " x %s", pieces, axis->name);
    }
    for (int i = 0; i < AXIS_DIVIDES && axis->divides[i] != NULL; i++) {
        check_divides(errors, config, what, pieces * size, axis->divides[i]);
    }
    if (axis->meets != NULL) {
        check_meets(errors, config, axis, size);
    }
    status_add_if(errors, (axis->shares & AXIS_SHARES_EXPERTS) != 0 && config->model.experts == 0 && size > 1,
                  "[parallel] %s = %" PRId64 " needs experts: set [model] experts, or leave %s out", axis->name, size,
                  axis->name);
}

struct plan_sections job_sections(const struct config *config)
{
    return (struct plan_sections){.model     = &config->model,
                                  .parallel  = &config->parallel,
                                  .train     = &config->train,
                                  .precision = &config->precision,
                                  .world     = config->ranks};
}

bool job_is_open(const struct config *config)
{
    return config->ranks == 0 && mesh_has_auto(&config->parallel);
}

// Checks the widths of heads and of rows in norms against the backend's limits. Without MLA, the widths of MLA are 0
// and fit.
static void check_widths(status *errors, const struct config *config)
{
    const struct model_config *model   = &config->model;
    const char                *backend = config->run.backend;
    struct backend_widths      widths  = backend_widths(backend);
    int64_t                    key = model_key_dim(model), value = model_value_dim(model);
    const struct {
        const char *name;
        int64_t     elements;
    } rows[]           = {{"hidden", model->hidden}, {"q_rank", model->q_rank}, {"kv_rank", model->kv_rank}};
    bool is_value_wide = value > widths.head && model->value_dim > 0;
    char more[64]      = "";
    if (key > model->head_dim) {
        snprintf(more, sizeof(more), " and rope_dim = %" PRId64, model->rope_dim);
    }
    status_add_if(errors, key > widths.head,
                  "[model] head_dim = %" PRId64 "%s: attention of [run] backend = %s supports up to %" PRId64
                  " elements per head: use a smaller value, or backend = host",
                  model->head_dim, more, backend, widths.head);
    status_add_if(errors, is_value_wide,
                  "[model] value_dim = %" PRId64 ": attention of [run] backend = %s supports up to %" PRId64
                  " elements per head: use a smaller value, or backend = host",
                  value, backend, widths.head);
    status_add_if(errors, !is_value_wide && widths.needs_equal_alignment && (key % 8 == 0) != (value % 8 == 0),
                  "[model] value_dim = %" PRId64 " and head_dim + rope_dim = %" PRId64
                  ": attention of [run] backend = %s needs both or neither to be multiples of 8: change one, or use "
                  "backend = host",
                  value, key, backend);
    status_add_if(errors,
                  model->mamba_heads > 0 &&
                      (model->mamba_head_dim > widths.mamba_head || model->mamba_state > widths.mamba_state),
                  "[model] mamba_head_dim = %" PRId64 " and mamba_state = %" PRId64
                  ": scans of [run] backend = %s support up to %" PRId64 " elements per head and %" PRId64
                  " states: use smaller values, or backend = host",
                  model->mamba_head_dim, model->mamba_state, backend, widths.mamba_head, widths.mamba_state);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        status_add_if(errors, rows[i].elements > widths.norm,
                      "[model] %s = %" PRId64 ": norms of [run] backend = %s support rows of up to %" PRId64
                      " elements: use a smaller value, or backend = host",
                      rows[i].name, rows[i].elements, backend, widths.norm);
    }
}

// Tensor cores compute in FP4 from Blackwell on. The host backend computes in FP4 for any hardware profile.
static void check_fp4(status *errors, const struct config *config)
{
    const struct hardware_config *hardware = &config->hardware;
    bool                          is_gpu   = hardware->device[0] != '\0' && strcmp(config->run.backend, "host") != 0;
    status_add_if(
        errors, config->precision.compute == COMPUTE_FP4 && is_gpu && hardware->peak[RATE_FP4].value == 0.0,
        "[precision] compute = fp4: %s has no FP4 (hardware profile %s has no peak_fp4): use compute = fp8, or "
        "the profile of a B200 or newer",
        hardware->device, hardware->profile);
}

static void check_run(status *errors, const struct config *config)
{
    check_fp4(errors, config);
    status_add_if(errors, config->run.warmup >= config->run.steps,
                  "[run] warmup = %" PRId64 " leaves no measured step of steps = %" PRId64 ": use at most %" PRId64
                  " (--set run.warmup=%" PRId64 ")",
                  config->run.warmup, config->run.steps, config->run.steps - 1, run_warmup(config->run.steps));
    status_add_if(
        errors, config->precision.compute == COMPUTE_FP32 && backend_lacks_fp32(config->run.backend),
        "[run] backend = %s does not support fp32 attention: use backend = host, or [precision] compute = bf16",
        config->run.backend);
    bool is_stored =
        model_is_frozen(&config->model) && config->precision.fp8_weights && config->precision.compute >= COMPUTE_FP8;
    status_add_if(
        errors, is_stored && config->checkpoint.save[0] != '\0',
        "[checkpoint] save: this version does not save frozen weights in FP8 or FP4 ([precision] fp8_weights = "
        "yes with [adapters] rank = %" PRId64 "): set fp8_weights = no, or use --weights-out",
        config->model.adapters.rank);
    check_widths(errors, config);
    status_add(errors, checkpoint_config_check(&config->checkpoint));
    status_add(errors, profile_config_check_steps(&config->profile, config->run.steps));
    status_add_if(errors, config->run.output[0] == '\0',
                  "[run] output is empty: set it to a folder, or to . for the current folder");
}

status job_check_sections(const struct config *config)
{
    struct plan_sections sections = job_sections(config);
    status               errors   = plan_check(&sections);
    check_run(&errors, config);
    return errors;
}

static status check_overlap(const struct plan_request *request)
{
    const char option[] = "[train] overlap_microbatches = yes";
    if (request->train.overlap_microbatches == 0) {
        return OK;
    }
    if (request->model.experts == 0) {
        return fail(
            "%s needs experts, whose all-to-alls it overlaps, but [model] experts = 0: set overlap_microbatches = no",
            option);
    }
    if (mesh_group_size(&request->mesh, request->mesh.owner_axes) == 1) {
        return fail(
            "%s: with [parallel] ep = 1 there is no all-to-all to overlap (set ep > 1, or overlap_microbatches = no)",
            option);
    }
    if (request->train.accumulation == 1) {
        return fail("%s needs two or more microbatches per step (raise global_batch or lower micro_batch)", option);
    }
    return OK;
}

status job_check_layout(const struct plan_request *request, const struct config *config)
{
    status errors = OK;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        check_axis(&errors, config, &axis_rows[axis], request->mesh.asked[axis]);
    }
    check_divides(&errors, config, "tp", request->mesh.etp, "model.expert_ffn");    // etp = 1: experts are not sharded
    status_add(&errors, check_overlap(request));
    return failed(&errors) ? errors : plan_check_layout(request);
}

status job_check(struct plan_request *request, const struct config *config)
{
    if (job_is_open(config)) {
        return job_check_sections(config);    // the layout can only be resolved when the number of ranks is known
    }
    struct plan_sections sections = job_sections(config);
    status               errors   = plan_resolve(request, &sections);
    check_run(&errors, config);
    if (request->mesh.world > 0) {
        status layout = job_check_layout(request, config);
        if (!failed(&errors) && !failed(&layout)) {
            layout = plan_is_long(request) ? OK : plan_check_size(request);
        }
        status_add(&errors, layout);
        status_add(&errors, trace_config_check(&config->trace, request->mesh.world));
        status_add(&errors, profile_config_check_ranks(&config->profile, request->mesh.world));
    }
    return errors;
}

// SPDX-License-Identifier: MIT
// Chooses the configuration that `gswbench init` writes: a published config, a model, or a job that fits the machine.
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/job.h"

status job_read_settings(struct config *config, const struct job_selection *selection, const char *const *first,
                         int count)
{
    struct text_list overrides = {.count = 0};
    for (; overrides.count < count; overrides.count++) {
        overrides.items[overrides.count] = first[overrides.count];
    }
    for (int i = 0; i < selection->overrides.count; i++) {
        if (overrides.count == TEXT_LIST_MAX) {
            return fail_as(EXIT_USAGE,
                           "more than %d overrides with --set and --precision: write them to the file instead",
                           TEXT_LIST_MAX - count);
        }
        overrides.items[overrides.count++] = selection->overrides.items[i];
    }
    struct config_request request = {
        .name = "init", .overrides = overrides.items, .override_count = overrides.count, .ranks = selection->ranks};
    struct plan_request resolved;
    TRY(config_read_text(config, &request, "", 0, selection->errors));
    return job_check(&resolved, config);
}

static status read_model(struct config *config, struct job_selection *selection)
{
    char        model[1100];
    const char *first[] = {model, "parallel.fsdp=auto"};
    snprintf(model, sizeof(model), "--model model.preset=%s", selection->name);
    return job_read_settings(config, selection, first, 2);
}

// Reads a published configuration, with layout and batch for the selected number of ranks; without a selection, for the
// smallest number of ranks in its table of published results.
static status read_published(struct config *config, struct job_selection *selection)
{
    struct config_row *rows = memory_allocate(CONFIG_ROWS_MAX * sizeof(*rows));
    struct job        *job  = memory_allocate(sizeof(*job));
    int                count;
    status             result = job_rows(selection, rows, &count);
    if (!failed(&result)) {
        selection->ranks = rows[0].ranks;
        result           = rows[0].ranks == 0 ? job_read_config(&job->config, selection) : job_read(job, selection);
    }
    if (!failed(&result)) {
        *config = job->config;
    }
    free(rows);
    free(job);
    return result;
}

// Checks a configuration whose number of ranks is not known yet (job_is_open), with its smallest layout.
static status check_open(const struct config *config)
{
    struct plan_request  request;
    struct plan_sections sections = job_sections(config);
    if (!job_is_open(config)) {
        return OK;
    }
    TRY(plan_resolve(&request, &sections));
    return job_check_layout(&request, config);
}

static status is_small_enough(bool *is_small, const struct config *config, int64_t bytes)
{
    static const double  kept_free = 0.1;    // fraction of device memory for libraries and the CUDA context
    struct plan_request  request;
    struct plan_sections sections = job_sections(config);
    struct job_proof     proof;
    TRY(plan_resolve(&request, &sections));
    TRY(job_verify(&request, &proof));
    *is_small = (double)proof.largest_bytes <= (1 - kept_free) * (double)bytes;
    return OK;
}

// Chooses the model tiny-llama, which fits any machine. If the user selected no number of ranks, the job gets 4, 2
// or 1 ranks, at most `places`: the number of devices, or of cores on a machine without devices.
static status choose_small(struct config *config, struct job_selection *selection, int places)
{
    selection->name  = "tiny-llama";
    selection->ranks = selection->ranks > 0 ? selection->ranks : places >= 4 ? 4 : places >= 2 ? 2 : 1;
    return job_read_config(config, selection);
}

// Chooses Llama 3.1 8B with FSDP over all devices, and halves its 32 layers until it fits; else tiny-llama.
static status choose_for_devices(struct config *config, struct job_selection *selection,
                                 const struct job_machine *machine)
{
    struct hardware_config hardware;
    struct job_selection   all      = *selection;
    bool                   is_known = config_find_hardware(&hardware, machine->device), is_small = false;
    char                   layers[64], profile[sizeof(hardware.profile) + 32];
    all.ranks = all.ranks > 0 ? all.ranks : machine->devices;
    snprintf(profile, sizeof(profile), "hardware.profile=%s", is_known ? hardware.profile : "none");
    for (int number = 32; number > 0 && !is_small; number /= 2) {
        const char *first[] = {"model.preset=llama3.1-8b", "parallel.fsdp=auto", "train.sequence=8192", profile,
                               layers};
        snprintf(layers, sizeof(layers), "model.layers=%d", number);
        TRY(job_read_settings(config, &all, first, sizeof(first) / sizeof(first[0])));
        TRY(is_small_enough(&is_small, config, machine->device_bytes));
    }
    if (is_small) {
        *selection = all;
        return OK;
    }
    return choose_small(config, selection, machine->devices);
}

status job_choose(struct config *config, struct job_selection *selection, const struct job_machine *machine)
{
    if (selection->name != NULL) {
        TRY((job_names_config(selection->name) ? read_published : read_model)(config, selection));
    } else if (machine->devices > 0) {
        TRY(choose_for_devices(config, selection, machine));
    } else {
        TRY(choose_small(config, selection, machine->cores));
    }
    return check_open(config);
}

// SPDX-License-Identifier: MIT
// gswbench init: writes a commented configuration to start from: of a model, a published job, or this machine.
#include <inttypes.h>
#include <stdlib.h>

#include "gswbench/output.h"
#include "gswbench/environment.h"
#include "gswbench/proof.h"
#include "internal.h"

struct init_arguments {
    struct job_selection config;
    struct text_list     files;
};

static const struct flag flags[] = {
    OPERANDS(init_arguments, files, "FILE", "config file to write; must not exist"),
    TEXT_FLAG(init_arguments, config.name, "--model", "NAME",
              "published config or model; default: a job that fits this machine"),
    INTEGER_FLAG(init_arguments, config.ranks, "--ranks", "N", 1, 1048576,
                 "number of ranks; default: the fewest of a published config, or all devices of this machine"),
    OVERRIDE_FLAG(init_arguments, config.overrides, "--precision", "TYPE", "precision.compute", "bf16, fp8 or fp32"),
    LIST_FLAG(init_arguments, config.overrides, "--set", "SECTION.KEY=VALUE", "override a value; repeatable"),
    END_FLAGS,
};

// Builds a configuration from overrides alone; the user's overrides come last.
static status read_plain(struct config *config, const struct job_selection *selection, const char *const *first,
                         int count, struct text_buffer *errors)
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
    TRY(config_read_text(config, &request, "", 0, errors));
    return job_check(&resolved, config);
}

static status read_model(struct config *config, const struct job_selection *selection, struct arena *arena,
                         struct text_buffer *errors)
{
    const char *model   = arena_format(arena, "--model model.preset=%s", selection->name);
    const char *first[] = {model, "parallel.fsdp=auto"};
    return read_plain(config, selection, first, 2, errors);
}

// Reads the first row of a published configuration, with layout and batch for the given ranks.
static status read_published(struct config *config, struct job_selection *selection, struct text_buffer *errors)
{
    struct config_row rows[CONFIG_ROWS_MAX];
    struct job        job;
    int               count;
    TRY(job_rows(selection, rows, &count, errors));
    selection->ranks = rows[0].ranks;
    if (selection->ranks == 0) {
        return job_read_config(config, selection, errors);
    }
    TRY(job_read(&job, selection, errors));
    *config = job.config;
    return OK;
}

// If the number of ranks is open, checks the smallest layout.
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
    static const double  kept_free = 0.1;    // for libraries and the CUDA context
    struct plan_request  request;
    struct plan_sections sections = job_sections(config);
    struct job_proof     proof;
    TRY(plan_resolve(&request, &sections));
    TRY(job_verify(&request, &proof));
    *is_small = (double)proof.largest_bytes <= (1 - kept_free) * (double)bytes;
    return OK;
}

// A model that is small on any machine, on at most as many ranks as it is meant for.
static status choose_small(struct config *config, struct job_selection *selection, int places,
                           struct text_buffer *errors)
{
    selection->name  = "tiny-llama";
    selection->ranks = selection->ranks > 0 ? selection->ranks : places >= 4 ? 4 : places >= 2 ? 2 : 1;
    return job_read_config(config, selection, errors);
}

// Llama 3.1 8B sharded over all devices, with as many of its layers as fit in powers of two.
static status choose_for_devices(struct config *config, struct job_selection *selection,
                                 const struct environment_machine *machine, struct text_buffer *errors)
{
    struct hardware_config hardware;
    struct job_selection   all      = *selection;
    bool                   is_known = config_find_hardware(&hardware, machine->device), is_small = false;
    char                   layers[64], profile[160];
    all.ranks = all.ranks > 0 ? all.ranks : machine->devices;
    snprintf(profile, sizeof(profile), "hardware.profile=%s", is_known ? hardware.profile : "none");
    for (int number = 32; number > 0 && !is_small; number /= 2) {
        const char *first[] = {"model.preset=llama3.1-8b", "parallel.fsdp=auto", "train.sequence=8192", profile,
                               layers};
        snprintf(layers, sizeof(layers), "model.layers=%d", number);
        TRY(read_plain(config, &all, first, sizeof(first) / sizeof(first[0]), errors));
        TRY(is_small_enough(&is_small, config, machine->device_bytes));
    }
    if (is_small) {
        *selection = all;
        return OK;
    }
    return choose_small(config, selection, machine->devices, errors);
}

status init_choose(struct config *config, struct job_selection *selection, const struct environment_machine *machine,
                   struct text_buffer *errors)
{
    return machine->devices > 0 ? choose_for_devices(config, selection, machine, errors)
                                : choose_small(config, selection, machine->cores, errors);
}

// Reads the configuration and names its subject for the first line of the file.
static status read(struct config *config, struct job_selection *selection, struct text_buffer *subject,
                   struct arena *arena, struct text_buffer *errors)
{
    struct environment_machine machine;
    if (selection->name != NULL) {
        char name[256];
        text_printable(name, sizeof(name), selection->name);
        text_append(subject, "%s", name);
        return cli_is_config(selection->name) ? read_published(config, selection, errors)
                                              : read_model(config, selection, arena, errors);
    }
    TRY(environment_find_machine(&machine));
    TRY(init_choose(config, selection, &machine, errors));
    if (machine.devices > 0) {
        text_append(subject, "this machine, %d x %s", machine.devices, machine.device);
    } else {
        text_append(subject, "this machine, %d core%s", machine.cores, machine.cores == 1 ? "" : "s");
    }
    return OK;
}

static void print_introduction(FILE *file, const char *path, const char *subject, int64_t ranks)
{
    char given[32] = "", shown[1024];
    text_printable(shown, sizeof(shown), path);
    if (ranks > 0) {
        snprintf(given, sizeof(given), " --ranks %" PRId64, ranks);
    }
    fprintf(file,
            "# Written by gswbench init for %s. Next:\n"
            "#   gswbench check --config %s%s\n"
            "#   gswbench predict --config %s%s\n",
            subject, shown, given, shown, given);
    if (ranks > 1) {
        fprintf(file, "#   mpirun -np %" PRId64 " gswbench --config %s\n", ranks, shown);
        fprintf(file, "#   gswbench --config %s%s --comm local    # ranks as threads, without MPI\n", shown, given);
    } else {
        fprintf(file, "#   gswbench --config %s%s\n", shown, given);
    }
    fputs("# Lines that begin with ; show defaults. gswbench options lists the options of all sections.\n", file);
}

static status write_file(const char *path, const char *subject, const struct config *config, int64_t ranks)
{
    struct text_stream text;
    text_stream_open(&text);
    print_introduction(text.file, path, subject, ranks);
    config_write_commented(config, text.file);
    text_stream_close(&text);
    status result = output_create(path, text.data, text.bytes);
    free(text.data);
    return result;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct init_arguments *init      = arguments;
    struct job_selection         selection = init->config;
    struct text_buffer           subject   = {.text = NULL};
    struct arena                 arena     = {0};
    struct config                config;
    if (init->files.count != 1) {
        return fail_as(EXIT_USAGE, "init writes one file, but %d are given: gswbench init job.ini --model llama3.1-8b",
                       init->files.count);
    }
    status result = read(&config, &selection, &subject, &arena, errors);
    if (!failed(&result)) {
        result = check_open(&config);
    }
    if (!failed(&result)) {
        result = write_file(init->files.items[0], subject.text, &config, selection.ranks);
    }
    if (!failed(&result)) {
        char path[1024], shown[512];
        text_printable(path, sizeof(path), init->files.items[0]);
        text_printable(shown, sizeof(shown), subject.text);
        printf("%s: %s\n", path, shown);
    }
    text_free(&subject);
    arena_free(&arena);
    return result;
}

const struct command command_init = {
    .name    = "init",
    .help    = "write a commented config for a model or for this machine",
    .example = "gswbench init --model llama3.1-8b my.ini",
    .flags   = flags,
    .bytes   = sizeof(struct init_arguments),
    .run     = run,
};

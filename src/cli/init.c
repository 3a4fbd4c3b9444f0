// SPDX-License-Identifier: MIT
// gswbench init: writes a commented configuration to start from: for a model, a published job, a job of another
// program, or this machine.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/environment.h"
#include "gswbench/output.h"
#include "internal.h"

const struct flag init_flags[] = {
    OPERANDS(words, "FILE", "config file to write; must not exist"),
    TEXT_FLAG(config.name, "--model", "NAME", "published config or model; default: a job that fits this machine"),
    TEXT_FLAG(from, "--from", "FILE",
              "job of another program: config.json of Hugging Face, arguments of Megatron, TOML of torchtitan"),
    INTEGER_FLAG(config.ranks, "--ranks", "N", 1, 1048576,
                 "number of ranks; default: the fewest of a published config, or all devices of this machine"),
    OVERRIDE_FLAG(config.overrides, "--precision", "TYPE", "precision.compute", "bf16, fp8, fp4 or fp32"),
    OVERRIDE_FLAG(config.overrides, "--gpu", "NAME", "hardware.profile", "GPU of predictions, e.g. h100-sxm"),
    LIST_FLAG(config.overrides, "--set", "SECTION.KEY=VALUE", "override a value; repeatable"),
    SWITCH_FLAG(is_short, "--short", "write only what differs from the defaults"),
    END_FLAGS,
};

static status read_import(struct config *config, const struct job_selection *selection, const char *path,
                          struct text_buffer *subject, struct arena *arena)
{
    static const char *const programs[] = {"Hugging Face", "Megatron", "torchtitan"};
    struct import            import;
    char                     shown[256];
    TRY(import_read(&import, path, arena));
    text_printable(shown, sizeof(shown), path);
    text_append(subject, "%s (%s)", shown, programs[import.format]);
    if (import.passed[0] != '\0') {
        char *passed = arena_allocate(arena, strlen(import.passed) + 1);
        text_printable(passed, strlen(import.passed) + 1, import.passed);
        text_print_wrapped(stderr, passed, fprintf(stderr, "not used by gswbench: "), 80, "  ");
    }
    status result = job_read_settings(config, selection, import.settings.items, import.settings.count);
    if (failed(&result) && import.format == IMPORT_MEGATRON && config->model.vocab == 0) {
        fprintf(stderr, "Megatron reads the vocabulary from the tokenizer: add --set model.vocab=N\n");
    }
    TRY(result);
    if (import.format == IMPORT_HUGGING_FACE) {
        fprintf(stderr,
                "a config.json has no batch; defaults: [train] sequence = %" PRId64 ", micro_batch = %" PRId64
                ",\none microbatch per step\n",
                config->train.sequence, config->train.micro_batch);
    }
    return OK;
}

// Reads the configuration to write, and describes its subject (a model, a job or this machine) for the first line of
// the file.
static status read_config(struct config *config, struct job_selection *selection, struct text_buffer *subject)
{
    struct environment_machine machine;
    if (selection->name != NULL) {
        char name[256];
        text_printable(name, sizeof(name), selection->name);
        text_append(subject, "%s", name);
        return job_choose(config, selection, NULL);
    }
    TRY(environment_find_machine(&machine));
    if (machine.devices > 0) {
        text_append(subject, "this machine, %d x %s", machine.devices, machine.device);
    } else {
        text_append(subject, "this machine, %d core%s", machine.cores, machine.cores == 1 ? "" : "s");
    }
    const struct job_machine found = {machine.devices, machine.device, machine.device_bytes, machine.cores};
    return job_choose(config, selection, &found);
}

// Contents of the file's first lines. is_of_model: the file is for a model, not for this machine.
struct introduction {
    const char *path, *subject;
    int64_t     ranks;
    bool        is_of_model, has_profile;
};

static void print_introduction(const struct introduction *introduction, FILE *file)
{
    char    given[32] = "", shown[1024];
    int64_t ranks     = introduction->ranks;
    text_printable(shown, sizeof(shown), introduction->path);
    if (ranks > 0) {
        snprintf(given, sizeof(given), " --ranks %" PRId64, ranks);
    }
    fprintf(file,
            "# Written by gswbench init for %s. Next:\n"
            "#   gswbench check --config %s%s\n",
            introduction->subject, shown, given);
    if (introduction->has_profile) {
        fprintf(file, "#   gswbench predict --config %s%s\n", shown, given);
    } else if (introduction->is_of_model) {
        fprintf(file, "#   gswbench predict --config %s%s --gpu h100-sxm\n", shown, ranks > 0 ? given : " --ranks 8");
    } else {
        fprintf(file,
                "#   gswbench calibrate --config %s%s%s -o here.ini\n"
                "#   gswbench predict --config %s%s --gpu ./here.ini\n",
                shown, given, ranks > 1 ? " --comm local" : "", shown, given);
    }
    if (ranks > 1) {
        fprintf(file, "#   mpirun -np %" PRId64 " gswbench --config %s\n", ranks, shown);
        fprintf(file, "#   gswbench --config %s%s --comm local    # ranks as threads, without MPI\n", shown, given);
    } else {
        fprintf(file, "#   gswbench --config %s%s\n", shown, given);
    }
}

static status write_file(const struct introduction *introduction, const struct config *config, bool is_short)
{
    struct text_stream text;
    struct config      own = *config;
    option_set_defaults(software_options, &own.software);    // the file names no framework: gswbench runs it
    text_stream_open(&text);
    print_introduction(introduction, text.file);
    fprintf(text.file, "# gswbench options lists all options.%s\n",
            is_short ? "" : " Lines that begin with ; show defaults.");
    config_write_commented(&own, is_short, text.file);
    text_stream_close(&text);
    status result = output_create(introduction->path, text.data, text.bytes);
    free(text.data);
    return result;
}

status command_init(const struct arguments *init)
{
    struct job_selection selection = init->config;
    struct text_buffer   subject   = {.text = NULL};
    struct arena         arena     = {0};
    struct config        config;
    if (init->words.count != 1) {
        return fail_as(EXIT_USAGE, "init writes one file, but %d are given: gswbench init job.ini --model llama3.1-8b",
                       init->words.count);
    }
    if (init->from != NULL && selection.name != NULL) {
        return fail_as(EXIT_USAGE, "--from and --model: give one");
    }
    status result = init->from != NULL ? read_import(&config, &selection, init->from, &subject, &arena)
                                       : read_config(&config, &selection, &subject);
    if (!failed(&result)) {
        const struct introduction introduction = {.path        = init->words.items[0],
                                                  .subject     = subject.text,
                                                  .ranks       = selection.ranks,
                                                  .is_of_model = init->from != NULL || init->config.name != NULL,
                                                  .has_profile = strcmp(config.hardware.profile, "none") != 0};
        result                                 = write_file(&introduction, &config, init->is_short);
    }
    if (!failed(&result)) {
        text_print(init->words.items[0], stdout);
        fputs(": ", stdout);
        text_print(subject.text, stdout);
        putchar('\n');
    }
    text_free(&subject);
    arena_free(&arena);
    return result;
}

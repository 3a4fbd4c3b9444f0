// SPDX-License-Identifier: MIT
// The list of commands, the choice among them, and shared code of commands that read a configuration.
#include "gswbench/cli.h"

#include <string.h>

#include "gswbench/benchmark.h"
#include "gswbench/doctor.h"
#include "gswbench/version.h"
#include "internal.h"

// clang-format off
const struct command *const cli_commands[] = {
    &command_doctor,
    &command_run,
    &command_accept,
    &command_preflight,
    &command_calibrate,
    &command_check,
    &command_plan,
    &command_predict,
    &command_atlas,
    &command_report,
    &command_compare,
    &command_table,
    &command_configs,
    &command_init,
    &command_options,
    &command_schema,
    &command_data,
    &command_weights,
    &command_checkpoint,
    &command_verify,
    NULL,
};
// clang-format on
enum { COMMANDS = sizeof(cli_commands) / sizeof(cli_commands[0]) - 1 };

static status unknown_command(const char *name)
{
    const char *names[COMMANDS + 1] = {NULL};
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = cli_commands[i]->name;
    }
    const char *closest = text_closest(name, names);
    if (closest != NULL) {
        return fail_as(EXIT_USAGE, "unknown command %s: did you mean %s?", name, closest);
    }
    return fail_as(EXIT_USAGE, "unknown command %s: gswbench --help lists the commands", name);
}

const struct command *cli_find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0) {
            return cli_commands[i];
        }
    }
    return NULL;
}

// Returns the heading that a command starts in the help, or NULL.
static const char *find_heading(const struct command *command)
{
    return command == &command_doctor    ? "Measure on this machine"
           : command == &command_check   ? "Check and predict, without GPUs"
           : command == &command_report  ? "Show results"
           : command == &command_configs ? "Configs and file formats"
           : command == &command_data    ? "Data, weights and checkpoints"
                                         : NULL;
}

static void print_help(void)
{
    printf("gswbench %s: benchmark of LLM training steps\n\n"
           "usage: gswbench [COMMAND] [FLAG]...\n",
           version_text);
    for (int i = 0; i < COMMANDS; i++) {
        const char *heading = find_heading(cli_commands[i]);
        if (heading != NULL) {
            printf("\n%s:\n", heading);
        }
        printf("  %-10s  %s\n", cli_commands[i]->name, cli_commands[i]->help);
    }
    printf("\nThe default COMMAND is run. gswbench COMMAND --help lists its flags.\n"
           "\nExample:\n    mpirun -np 8 gswbench run llama3.1-8b\n");
}

static bool asks_for_help(int count, char *const words[])
{
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

// Some errors of a configuration appear only with a device or a plan; this adds the lines of the file to such an error.
static status name_places(status error, const struct command *command, const void *arguments)
{
    const struct flag          *config    = flags_find(command, "--config", strlen("--config"));
    const struct job_selection *selection = NULL;
    struct text_buffer          places    = {.text = NULL};
    size_t                      length    = strlen(error.text);
    if (config != NULL) {
        selection = (const void *)((const char *)arguments + config->offset - offsetof(struct job_selection, name));
    }
    if (selection != NULL && selection->name != NULL) {
        job_print_places(&places, selection, error.text);
    }
    if (places.length > 0 && length + places.length + sizeof(" ()") <= sizeof(error.text)) {
        snprintf(error.text + length, sizeof(error.text) - length, " (%s)", places.text);
    }
    text_free(&places);
    return error;
}

static status run(const struct command *command, int count, char *const words[], struct text_buffer *errors)
{
    struct arena arena     = {0};
    void        *arguments = arena_allocate(&arena, command->bytes);
    status       result    = flags_parse(command, count, words, arguments, &arena);
    if (!failed(&result)) {
        result = command->run(arguments, errors);
        result = failed(&result) ? name_places(result, command, arguments) : result;
    }
    arena_free(&arena);
    return failed(&result) && command->meets ? launch_fail(result, errors) : result;
}

static status explain(const char *name)
{
    const struct command *command = name != NULL ? cli_find_command(name) : NULL;
    if (name != NULL && command == NULL) {
        return unknown_command(name);
    }
    if (command != NULL) {
        flags_print_help(command, stdout);
    } else {
        print_help();
    }
    return OK;
}

status cli_run(int argc, char *const argv[], struct text_buffer *errors)
{
    bool named = argc > 1 && argv[1][0] != '-';
    if (argc < 2 || (!named && asks_for_help(1, argv + 1))) {
        print_help();
        return OK;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        char build[VERSION_BUILD_BYTES];
        version_build(build);
        printf("gswbench %s\nbuild %s\n", version_text, build);
        for (int i = 0; argc > 2 && strcmp(argv[2], "--verbose") == 0 && doctor_features[i] != NULL; i++) {
            printf("with %s\n", doctor_features[i]);
        }
        return OK;
    }
    if (strcmp(argv[1], "help") == 0) {
        return explain(argc > 2 ? argv[2] : NULL);
    }
    if (strcmp(argv[1], "complete") == 0) {    // called by shell completion
        completion_print_words(argc - 2, argv + 2, stdout);
        return OK;
    }
    const char           *name    = named ? argv[1] : "run";
    const struct command *command = cli_find_command(name);
    int                   skipped = named ? 2 : 1;
    if (command == NULL && job_names_config(name)) {    // a configuration without a command means run
        command = cli_find_command("run");
        skipped = 1;
    }
    if (command == NULL) {
        return unknown_command(name);
    }
    if (asks_for_help(argc - skipped, argv + skipped)) {
        flags_print_help(command, stdout);
        return OK;
    }
    return run(command, argc - skipped, argv + skipped, errors);
}

// SPDX-License-Identifier: MIT
// Lists the commands, runs the one that the command line names, and prints the help. If the command line names a
// configuration but no command, the command is "run".
#include "gswbench/cli.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/benchmark.h"
#include "gswbench/doctor.h"
#include "gswbench/version.h"
#include "internal.h"

// clang-format off
const struct command cli_commands[] = {
    {"doctor", "Measure on this machine", command_doctor, false, doctor_flags,
     "check this host: GPUs, driver, libraries, MPI, network, limits", "srun --ntasks-per-node=1 gswbench doctor"},
    {"run", NULL, command_run, true, run_flags,
     "run training steps, measure them and write a result", "mpirun -np 8 gswbench run llama3.1-8b --steps 50"},
    {"accept", NULL, command_accept, true, accept_flags,
     "check this machine against a published or predicted step time", "mpirun -np 8 gswbench accept llama3.1-8b"},
    {"suite", NULL, command_suite, true, suite_flags,
     "accept this machine by a list of configs, in one launch", "mpirun -np 8 gswbench suite node --gpu h100-sxm"},
    {"preflight", NULL, command_preflight, true, preflight_flags,
     "find slow or faulty devices, links and hosts before a run", "mpirun -np 8 gswbench preflight llama3.1-8b"},
    {"calibrate", NULL, command_calibrate, true, calibrate_flags,
     "measure the ops of a config here and write a hardware profile",
     "mpirun -np 8 gswbench calibrate llama3.1-8b -o my-gpu.ini"},
    {"check", "Check and predict, without GPUs", command_check, false, check_flags,
     "check a config: parameters, FLOPs, batch, layout, memory", "gswbench check llama3.1-8b --ranks 8"},
    {"plan", NULL, command_plan, false, plan_flags,
     "print a rank's step: layers, memory, communication, FLOPs, ops", "gswbench plan llama3.1-8b --ranks 8 --ops"},
    {"predict", NULL, command_predict, false, predict_flags,
     "predict the step time of a config, without GPUs", "gswbench predict llama3.1-70b --ranks 64 --gpu h100-sxm"},
    {"atlas", NULL, command_atlas, false, atlas_flags,
     "compare predictions with all published rows", "gswbench atlas --gpu b200"},
    {"report", "Show results", command_report, false, report_flags,
     "show a result as text, HTML page, tables or JSON", "gswbench report results/latest --format html > report.html"},
    {"compare", NULL, command_compare, false, compare_flags,
     "compare results: which is faster, by how much, and where",
     "gswbench compare results/old results/new --fail-on slower:2%"},
    {"table", NULL, command_table, false, table_flags,
     "list results in one table, with scaling and ratio to published", "gswbench table results"},
    {"configs", "Configs and file formats", command_configs, false, configs_flags,
     "list installed configs, their rows, and what this build can run", "gswbench configs --gpu b200"},
    {"init", NULL, command_init, false, init_flags,
     "write a commented config for a model or for this machine", "gswbench init --model llama3.1-8b my.ini"},
    {"options", NULL, command_options, false, options_flags,
     "print every config option: default, allowed values, meaning", "gswbench options train"},
    {"schema", NULL, command_schema, false, schema_flags,
     "print the JSON Schema of gswbench's output files", "gswbench schema run"},
    {"data", "Data, weights and checkpoints", command_data, false, data_flags,
     "write the tokens of the first steps as safetensors",
     "gswbench data tiny-llama --steps 10 -o tokens.safetensors"},
    {"weights", NULL, command_weights, false, weights_flags,
     "write the initial weights in Hugging Face format (safetensors)", "gswbench weights tiny-llama -o weights"},
    {"checkpoint", NULL, command_checkpoint, false, checkpoint_flags,
     "verify a checkpoint, or export its weights", "gswbench checkpoint export checkpoints/step-100 weights"},
    {"verify", NULL, command_verify, false, verify_flags,
     "read a checkpoint and compare its checksums", "gswbench verify checkpoints/step-100"},
    {NULL, NULL, NULL, false, NULL, NULL, NULL},
};
// clang-format on
enum { COMMANDS = sizeof(cli_commands) / sizeof(cli_commands[0]) - 1 };

// Returns the command to which other programs give this name, or NULL.
static const char *find_synonym(const char *name)
{
    static const char *const synonyms[][2] = {{"version", "--version"}, {"list", "configs"}, {"bench", "run"},
                                              {"benchmark", "run"},     {"train", "run"},    {"test", "check"},
                                              {"history", "table"},     {"diff", "compare"}};
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++) {
        if (strcmp(name, synonyms[i][0]) == 0) {
            return synonyms[i][1];
        }
    }
    return NULL;
}

static status unknown_command(const char *name)
{
    const char *names[COMMANDS + 1] = {NULL};
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = cli_commands[i].name;
    }
    const char *synonym = find_synonym(name);
    const char *closest = synonym != NULL ? synonym : text_closest(name, names);
    if (closest != NULL) {
        return fail_as(EXIT_USAGE, "unknown command %s: did you mean %s?", name, closest);
    }
    char config[CONFIG_NAME_BYTES];
    if (config_suggest(name, config)) {
        return fail_as(EXIT_USAGE, "unknown command %s: did you mean the config %s?", name, config);
    }
    return fail_as(EXIT_USAGE, "unknown command %s: gswbench --help lists the commands", name);
}

const struct command *cli_find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(cli_commands[i].name, name) == 0) {
            return &cli_commands[i];
        }
    }
    return NULL;
}

static void print_help(void)
{
    printf("gswbench %s: benchmark of LLM training steps\n\n"
           "usage: gswbench [COMMAND] [FLAG]...\n",
           version_text);
    for (int i = 0; i < COMMANDS; i++) {
        const char *heading = cli_commands[i].heading;
        if (heading != NULL) {
            printf("\n%s:\n", heading);
        }
        printf("  %-10s  %s\n", cli_commands[i].name, cli_commands[i].help);
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

// Appends to an error message where each option that it names was set: file and line, or flag. Errors that are found
// while the configuration is read already have this text; later errors, such as those of a device, lack it.
static status name_places(status error, const struct command *command, const struct arguments *arguments)
{
    struct text_buffer places = {.text = NULL};
    size_t             length = strlen(error.text);
    if (flags_find(command, "--config", strlen("--config")) != NULL && arguments->config.name != NULL) {
        job_print_places(&places, &arguments->config, error.text);
    }
    if (places.length > 0 && length + places.length + sizeof(" ()") <= sizeof(error.text)) {
        snprintf(error.text + length, sizeof(error.text) - length, " (%s)", places.text);
    }
    text_free(&places);
    return error;
}

static status run_command(const struct command *command, int count, char *const words[], struct text_buffer *errors)
{
    struct arena      arena     = {0};
    struct arguments *arguments = memory_allocate(sizeof(*arguments));
    arguments->config.errors    = errors;
    status result               = flags_parse(command, count, words, arguments, &arena);
    if (!failed(&result)) {
        result = command->run(arguments);
        result = failed(&result) ? name_places(result, command, arguments) : result;
    }
    free(arguments);
    arena_free(&arena);
    return failed(&result) && command->meets ? launch_fail(result, errors) : result;
}

static status explain(const char *name)
{
    const struct command *command = cli_find_command(name);
    if (command == NULL) {
        return unknown_command(name);
    }
    flags_print_help(command);
    return OK;
}

status cli_run(int argc, char *const argv[], struct text_buffer *errors)
{
    bool named        = argc > 1 && argv[1][0] != '-';
    bool is_help      = named && strcmp(argv[1], "help") == 0;
    bool is_of_itself = is_help && (argc < 3 || argv[2][0] == '-' || strcmp(argv[2], "help") == 0);
    if (argc < 2 || is_of_itself || (!named && asks_for_help(1, argv + 1))) {
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
    if (is_help) {
        return explain(argv[2]);
    }
    if (strcmp(argv[1], "complete") == 0) {    // called by shell completion
        completion_print_words(argc - 2, argv + 2);
        return OK;
    }
    const char           *name    = named ? argv[1] : "run";
    const struct command *command = cli_find_command(name);
    int                   skipped = named ? 2 : 1;
    if (command == NULL && job_names_config(name)) {    // a configuration without a command: "run"
        command = cli_find_command("run");
        skipped = 1;
    }
    if (command == NULL) {
        return unknown_command(name);
    }
    if (asks_for_help(argc - skipped, argv + skipped)) {
        flags_print_help(command);
        return OK;
    }
    return run_command(command, argc - skipped, argv + skipped, errors);
}

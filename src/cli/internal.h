// SPDX-License-Identifier: MIT
// Internal interface of the commands. A command is a file with a struct of arguments, a table of flags that fills it,
// and a function; cli.c lists it.
#ifndef GSWBENCH_CLI_INTERNAL_H
#define GSWBENCH_CLI_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/arena.h"
#include "gswbench/job.h"
#include "gswbench/json.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

#include <jansson.h>

enum flag_type {
    FLAG_SWITCH,      // bool
    FLAG_TEXT,        // const char *; NULL: not given
    FLAG_INTEGER,     // int64_t, within minimum and maximum
    FLAG_LIST,        // struct text_list; the flag may be repeated
    FLAG_OVERRIDE,    // struct text_list; short for --set TARGET=VALUE, or TARGET=yes if the flag takes no value
    FLAG_OPERANDS,    // struct text_list; words without a flag, named by the flag's name in the usage line
    FLAG_HEADING,     // no flag: a heading of the help
};

// A flag that was not given leaves its argument zero.
struct flag {
    const char    *name;     // "--config"
    const char    *value;    // placeholder in the help: "NAME|FILE"
    enum flag_type type;
    size_t         offset;    // of the field in the struct of arguments
    const char    *help;
    int64_t        minimum, maximum;
    const char    *target;    // FLAG_OVERRIDE: section.key
};

// clang-format off
#define SWITCH_FLAG(owner, field, name, help) \
    { name, NULL, FLAG_SWITCH, offsetof(struct owner, field), help, 0, 0, NULL }
#define TEXT_FLAG(owner, field, name, value, help) \
    { name, value, FLAG_TEXT, offsetof(struct owner, field), help, 0, 0, NULL }
#define INTEGER_FLAG(owner, field, name, value, minimum, maximum, help) \
    { name, value, FLAG_INTEGER, offsetof(struct owner, field), help, minimum, maximum, NULL }
#define LIST_FLAG(owner, field, name, value, help) \
    { name, value, FLAG_LIST, offsetof(struct owner, field), help, 0, 0, NULL }
#define OVERRIDE_FLAG(owner, field, name, value, target, help) \
    { name, value, FLAG_OVERRIDE, offsetof(struct owner, field), help, 0, 0, target }
#define OPERANDS(owner, field, name, help) \
    { name, NULL, FLAG_OPERANDS, offsetof(struct owner, field), help, 0, 0, NULL }
#define HEADING(title) { title, NULL, FLAG_HEADING, 0, "", 0, 0, NULL }
#define END_FLAGS { NULL, NULL, FLAG_SWITCH, 0, NULL, 0, 0, NULL }

#define BACKEND_FLAGS(owner, field, backends) \
    OVERRIDE_FLAG(owner, field.overrides, "--backend", "NAME", "run.backend", "compute backend: " backends), \
    OVERRIDE_FLAG(owner, field.overrides, "--comm", "NAME", "run.communicator", "communication backend: auto, nccl, mpi, or local for ranks that are threads of this process")

#define CONFIG_FLAGS(owner, field) \
    HEADING      ("Config"), \
    TEXT_FLAG    (owner, field.name, "--config", "NAME|FILE", "installed config, file, or - for standard input; NAME may also be given without --config"), \
    LIST_FLAG    (owner, field.overrides, "--set", "SECTION.KEY=VALUE", "override an option of the config; repeatable"), \
    INTEGER_FLAG (owner, field.ranks, "--ranks", "N", 1, 1048576, "number of ranks; selects the rows of the config"), \
    OVERRIDE_FLAG(owner, field.overrides, "--precision", "TYPE", "precision.compute", "bf16, fp8 or fp32"), \
    OVERRIDE_FLAG(owner, field.overrides, "--gpu", "NAME", "hardware.profile", "GPU of predictions and published rows, e.g. h100-sxm, h200, b200, gb200, a100-80gb, or a profile path with a /"), \
    OVERRIDE_FLAG(owner, field.overrides, "--variant", "NAME", "published.variant", "variant of the config, e.g. compiled"), \
    OVERRIDE_FLAG(owner, field.overrides, "--layers", "N", "run.layers", "use only N layers; the result is marked as a proxy")
// clang-format on

struct command {
    const char        *name;
    const char        *help;       // one line
    const char        *example;    // arguments of the command
    const struct flag *flags;      // ends with END_FLAGS
    size_t             bytes;      // size of the struct of arguments
    status (*run)(const void *arguments, struct text_buffer *errors);
    bool meets;    // processes of one launch form one job
};

extern const struct command command_accept, command_atlas, command_calibrate, command_check, command_checkpoint,
    command_compare, command_configs, command_data, command_doctor, command_init, command_options, command_plan, command_predict,
    command_preflight, command_report, command_run, command_schema, command_table, command_verify, command_weights;

// cli.c: all commands in the order of the help; ends with NULL. cli_find_command returns NULL for an unknown name.
extern const struct command *const cli_commands[];
const struct command              *cli_find_command(const char *name);

// manual.c: prints the manual page gswbench(1).
void manual_print(FILE *file);

// completion.c: prints candidates for the last word of a command line, one per line; and a shell's completion script
// (false: unknown shell).
void completion_print_words(int count, char *const words[], FILE *file);
bool completion_print(const char *shell, FILE *file);

// flags.c: fills the command's zeroed arguments from words. Errors are EXIT_USAGE. arena holds composed strings.
status flags_parse(const struct command *command, int count, char *const words[], void *arguments, struct arena *arena);
void   flags_print_help(const struct command *command, FILE *file);
// Returns the flag with this name and length, or NULL.
const struct flag *flags_find(const struct command *command, const char *name, size_t length);

// stdin.c: copies standard input to a file that can be read more than once.
status cli_read_stdin(const char **path, struct arena *arena);

// folder.c: visits every installed configuration until a visitor fails: alphabetically, the atlas last. cli_count_rows
// counts the rows of a selection; without a name, all rows.
typedef status config_visitor(void *state, const char *name, const char *path, struct text_buffer *errors);
status         cli_visit_configs(config_visitor *visit, void *state, struct text_buffer *errors);
status         cli_count_rows(int64_t *count, const struct job_selection *selection, struct text_buffer *errors);

// Field table of the JSON that atlas prints.
extern const struct json_field cli_atlas_fields[];

#endif

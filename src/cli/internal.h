// SPDX-License-Identifier: MIT
// Commands and their flags. A command is one file with a struct of arguments, a table of flags that fills it, and a
// function; and one row of the list in cli.c.
#ifndef GSWBENCH_CLI_INTERNAL_H
#define GSWBENCH_CLI_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/arena.h"
#include "gswbench/job.h"
#include "gswbench/json.h"
#include "gswbench/measured.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/predict.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

#include <jansson.h>

enum flag_type {
    FLAG_SWITCH,      // bool
    FLAG_TEXT,        // const char *; NULL: not given
    FLAG_INTEGER,     // int64_t, within minimum and maximum
    FLAG_LIST,        // struct text_list; the flag may be repeated
    FLAG_OVERRIDE,    // struct text_list; short for --set TARGET=VALUE, or TARGET=yes where it takes none
    FLAG_OPERANDS,    // struct text_list; the words that belong to no flag, called by the flag's name in the usage line
};

// A zeroed argument is one that was not given.
struct flag {
    const char    *name;     // "--config"
    const char    *value;    // what stands for the value in the help: "NAME|FILE"
    enum flag_type type;
    size_t         offset;    // of the field in the command's arguments
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
#define END_FLAGS { NULL, NULL, FLAG_SWITCH, 0, NULL, 0, 0, NULL }

#define CONFIG_FLAGS(owner, field) \
    TEXT_FLAG    (owner, field.name, "--config", "NAME|FILE", "configuration: a file, the name of an installed one, or - for standard input; the word --config may be left out"), \
    LIST_FLAG    (owner, field.overrides, "--set", "SECTION.KEY=VALUE", "overrides an option of the configuration; repeatable"), \
    OVERRIDE_FLAG(owner, field.overrides, "--precision", "TYPE", "precision.compute", "bf16, fp8 or fp32"), \
    OVERRIDE_FLAG(owner, field.overrides, "--gpu", "NAME", "hardware.profile", "hardware that a prediction is made for, such as h100-sxm, h200, b200, gb200 or a100-80gb, or a file whose name has a /"), \
    OVERRIDE_FLAG(owner, field.overrides, "--variant", "NAME", "published.variant", "which of several settings of the configuration, such as compiled"), \
    OVERRIDE_FLAG(owner, field.overrides, "--layers", "N", "run.layers", "only that many layers of the model; figures are labelled as of a proxy"), \
    INTEGER_FLAG (owner, field.ranks, "--ranks", "N", 1, 1048576, "number of ranks, which selects the rows of the configuration")
// clang-format on

struct command {
    const char        *name;
    const char        *help;     // one line
    const struct flag *flags;    // ends with END_FLAGS
    size_t             bytes;    // of the struct of arguments
    status (*run)(const void *arguments, struct text_buffer *errors);
    bool meets;    // processes of one launch are ranks of one job
};

extern const struct command command_accept, command_atlas, command_calibrate, command_check, command_checkpoint,
    command_compare, command_configs, command_data, command_init, command_options, command_plan, command_predict,
    command_preflight, command_report, command_run, command_schema, command_table, command_verify, command_weights;

// cli.c: all of them, in the order of the help; the list ends with NULL. NULL: no command has the name.
extern const struct command *const cli_commands[];
const struct command              *cli_find_command(const char *name);

// manual.c: the manual page gswbench(1).
void manual_print(FILE *file);

// completion.c: what may stand in the place of the last word of a command line, one a line; the script by which a shell
// asks for it, false for a shell that has none.
void completion_print_words(int count, char *const words[], FILE *file);
bool completion_print(const char *shell, FILE *file);

// flags.c: fills the command's zeroed arguments from words. Errors are EXIT_USAGE. arena holds composed texts.
status flags_parse(const struct command *command, int count, char *const words[], void *arguments, struct arena *arena);
void   flags_print_help(const struct command *command, FILE *file);
// The flag of that name and length; NULL: the command has none.
const struct flag *flags_find(const struct command *command, const char *name, size_t length);

// stdin.c: what standard input has, as a file that can be read more than once.
status cli_read_stdin(const char **path, struct arena *arena);

// Whether a configuration of that name or path is there.
bool cli_is_config(const char *word);

// folder.c: every installed configuration by its name, in alphabetic order, those of the atlas last, until one fails;
// and how many rows a selection has, which without a name is all of them.
typedef status config_visitor(void *state, const char *name, const char *path, struct text_buffer *errors);
status         cli_visit_configs(config_visitor *visit, void *state, struct text_buffer *errors);
status         cli_count_rows(int64_t *count, const struct job_selection *selection, struct text_buffer *errors);

// plan_ops.c, plan_json.c: the whole plan, streamed to stdout.
void        plan_print_ops(const struct plan *plan);
void        plan_print_json(const struct job *job, const struct plan *plan);
const char *plan_access_name(int access);

// Reads a result.json, or that of a run's folder.
struct result;
status cli_read_result(struct result *result, const char *path);
bool   cli_result_file(const char *path, char *file, size_t bytes);    // its path; whether a folder was named

// result_folders.c: the folder of a run, its result.json, or every folder of a run below that folder, in alphabetic
// order, until one fails. There is one.
typedef status result_visitor(void *state, const char *path);
status         cli_visit_results(const char *path, result_visitor *visit, void *state);

// check_connections.c: an estimate of the memory that this rank's connections take of its device, and, in excess, what
// there is to be said where transfers may hold all of the device; "": nothing.
enum { CLI_EXCESS_BYTES = 192 };
status cli_check_connections(const struct job *job, int64_t largest_rank, int64_t *bytes, char *excess);

// init.c: a job that suits the machine; the selection learns its ranks.
struct place_machine;
status init_choose(struct config *config, struct job_selection *selection, const struct place_machine *machine,
                   struct text_buffer *errors);

// "5.2 %" by the format, or "-" for NaN.
const char *cli_print_percent(double percent, const char *format, char *text, size_t bytes);

// Ends a line on exported weights: who reads the model's architecture.
void cli_print_readers(const struct model_config *model);
// Where a command has written: the path between these words, a line, of which a terminal obeys nothing.
void cli_print_path(const char *before, const char *path, const char *behind);

// Prints a JSON value, reals with 15 digits, and frees it.
void cli_print_json(json_t *value);

// What commands print as JSON.
extern const struct json_field cli_check_fields[], cli_predict_fields[], cli_sweep_fields[], cli_plan_fields[];
extern const struct json_field cli_configs_fields[], cli_atlas_fields[];

#endif

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
    command_compare, command_configs, command_data, command_init, command_options, command_plan, command_predict,
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

// Whether a configuration with this name or path exists.
bool cli_is_config(const char *word);

// folder.c: visits every installed configuration until a visitor fails: alphabetically, the atlas last. cli_count_rows
// counts the rows of a selection; without a name, all rows.
typedef status config_visitor(void *state, const char *name, const char *path, struct text_buffer *errors);
status         cli_visit_configs(config_visitor *visit, void *state, struct text_buffer *errors);
status         cli_count_rows(int64_t *count, const struct job_selection *selection, struct text_buffer *errors);

// plan_ops.c, plan_json.c: stream a whole plan to stdout.
void        plan_print_ops(const struct plan *plan);
void        plan_print_json(const struct job *job, const struct plan *plan);
const char *plan_access_name(int access);

// Read a result.json, or the one in a run's folder. cli_result_file returns its path and whether path is a folder.
struct result;
status cli_read_result(struct result *result, const char *path);
bool   cli_result_file(const char *path, char *file, size_t bytes);

// result_folders.c: visits a result.json, the folder of a run, or all runs below a folder in alphabetical order, until
// a visitor fails. An error if there is no run.
typedef status result_visitor(void *state, const char *path);
status         cli_visit_results(const char *path, result_visitor *visit, void *state);

// check_connections.c: estimates the device memory of NCCL communicators on this rank. excess receives a warning if
// transfers may occupy all SMs, else "".
enum { CLI_EXCESS_BYTES = 192 };
status cli_check_connections(const struct job *job, int64_t largest_rank, int64_t *bytes, char *excess);

// init.c: chooses a job for the machine, and sets the selection's ranks.
struct environment_machine;
status init_choose(struct config *config, struct job_selection *selection, const struct environment_machine *machine,
                   struct text_buffer *errors);

// Formats "5.2 %", or "-" for NaN.
const char *cli_print_percent(double percent, const char *format, char *text, size_t bytes);

// Ends a line about exported weights: programs that read the model's architecture.
void cli_print_readers(const struct model_config *model);
// Prints a line with an escaped path between two texts.
void cli_print_path(const char *before, const char *path, const char *behind);

// Prints a JSON value with 15 digits for reals, and frees it.
void cli_print_json(json_t *value);

// Field tables of the JSON that commands print.
extern const struct json_field cli_check_fields[], cli_predict_fields[], cli_sweep_fields[], cli_plan_fields[];
extern const struct json_field cli_configs_fields[], cli_atlas_fields[];

#endif

// SPDX-License-Identifier: MIT
// The files of the command line share these types. A command is a table of flags and a function; cli.c has the list.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/arena.h"
#include "gswbench/job.h"
#include "gswbench/json.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

// Filter for the rows of published results. NULL: no restriction.
struct row_filter {
    const char *gpu, *model, *precision, *software;
};

// Arguments of every command; the flags of a command fill some of them. A flag that was not given leaves its argument
// zero.
struct arguments {
    struct job_selection config;
    struct row_filter    filter;
    struct text_list     words;    // operands, which are words without a flag
    const char          *output, *format, *page, *trace, *from;
    const char          *fail_on, *stages, *weights_out, *sign_key, *signers, *manual, *completion, *profile, *baseline;
    int64_t              rank, steps, seconds, emulate, repeat;
    bool                 all, json, force, quiet, verbose, markdown, is_short, is_history;
    bool                 ops, schedule, sweep, values, no_range, ranges, recovers, dry_run, mlperf, is_trace;
};

enum flag_type {
    FLAG_SWITCH,      // type of the argument: bool
    FLAG_TEXT,        // const char *; NULL: not given
    FLAG_INTEGER,     // int64_t, within minimum and maximum
    FLAG_LIST,        // struct text_list; the flag may be repeated
    FLAG_OVERRIDE,    // struct text_list; short for --set TARGET=VALUE, or TARGET=yes if the flag takes no value
    FLAG_OPERANDS,    // struct text_list of the arguments that are no flags; the usage line shows `name` for them
    FLAG_HEADING,     // no flag: a heading of the help
};

struct flag {
    const char    *name;     // "--config"
    const char    *value;    // placeholder in the help: "NAME|FILE"
    enum flag_type type;
    size_t         offset;    // offset of the field in struct arguments
    const char    *help;
    int64_t        minimum, maximum;
    const char    *target;    // FLAG_OVERRIDE: section.key
};

// clang-format off
#define SWITCH_FLAG(field, name, help) \
    { name, NULL, FLAG_SWITCH, offsetof(struct arguments, field), help, 0, 0, NULL }
#define TEXT_FLAG(field, name, value, help) \
    { name, value, FLAG_TEXT, offsetof(struct arguments, field), help, 0, 0, NULL }
#define INTEGER_FLAG(field, name, value, minimum, maximum, help) \
    { name, value, FLAG_INTEGER, offsetof(struct arguments, field), help, minimum, maximum, NULL }
#define LIST_FLAG(field, name, value, help) \
    { name, value, FLAG_LIST, offsetof(struct arguments, field), help, 0, 0, NULL }
#define OVERRIDE_FLAG(field, name, value, target, help) \
    { name, value, FLAG_OVERRIDE, offsetof(struct arguments, field), help, 0, 0, target }
#define OPERANDS(field, name, help) \
    { name, NULL, FLAG_OPERANDS, offsetof(struct arguments, field), help, 0, 0, NULL }
#define HEADING(title) { title, NULL, FLAG_HEADING, 0, "", 0, 0, NULL }
#define END_FLAGS { NULL, NULL, FLAG_SWITCH, 0, NULL, 0, 0, NULL }

#define DOLLARS_FLAG \
    OVERRIDE_FLAG(config.overrides, "--price", "DOLLARS", "hardware.gpu_hour_dollars",                                 \
                  "dollars for an hour of a device, e.g. 2.1: shows dollars per million tokens")
#define BACKEND_FLAGS(field, backends) \
    OVERRIDE_FLAG(field.overrides, "--backend", "NAME", "run.backend", "compute backend: " backends), \
    OVERRIDE_FLAG(field.overrides, "--comm", "NAME", "run.communicator", "communication backend: auto, nccl, mpi, or local for ranks that are threads of this process")

#define CONFIG_FLAGS(field) \
    HEADING      ("Config"), \
    TEXT_FLAG    (field.name, "--config", "NAME|FILE", "installed config, file, or - for standard input; NAME may also be given without --config"), \
    LIST_FLAG    (field.overrides, "--set", "SECTION.KEY=VALUE", "override an option of the config; repeatable"), \
    INTEGER_FLAG (field.ranks, "--ranks", "N", 1, 1048576, "number of ranks; selects the rows of the config"), \
    OVERRIDE_FLAG(field.overrides, "--precision", "TYPE", "precision.compute", "bf16, fp8, fp4 or fp32"), \
    OVERRIDE_FLAG(field.overrides, "--gpu", "NAME", "hardware.profile", "GPU of predictions and published rows, e.g. h100-sxm, h200, b200, gb200, a100-80gb, or a profile path with a /"), \
    OVERRIDE_FLAG(field.overrides, "--variant", "NAME", "published.variant", "variant of the config, e.g. compiled"), \
    OVERRIDE_FLAG(field.overrides, "--layers", "N", "run.layers", "use only N layers; the result is marked as a proxy")
#define FILTER_FLAGS(field) \
    TEXT_FLAG    (field.gpu, "--gpu", "NAME", "only rows for GPUs whose name starts with NAME, e.g. b200"), \
    TEXT_FLAG    (field.model, "--model", "NAME", "only rows of models whose name contains NAME, e.g. llama3"), \
    TEXT_FLAG    (field.precision, "--precision", "TYPE", "only rows in bf16, fp8, fp4 or fp32"), \
    TEXT_FLAG    (field.software, "--software", "NAME", "only rows of software whose name contains NAME, e.g. nemo")
// clang-format on

struct command {
    const char *name;
    const char *heading;    // printed above the command in the help; NULL: none
    status (*run)(const struct arguments *arguments);
    bool               meets;      // true: the processes of one launch form one job (MPI)
    const struct flag *flags;      // ends with END_FLAGS
    const char        *help;       // one-line description
    const char        *example;    // a command line
};

typedef status   command_function(const struct arguments *arguments);
command_function command_accept, command_atlas, command_calibrate, command_check, command_checkpoint, command_compare,
    command_configs, command_data, command_doctor, command_init, command_options, command_plan, command_predict,
    command_preflight, command_report, command_run, command_schema, command_suite, command_table, command_verify,
    command_weights;
extern const struct flag accept_flags[], atlas_flags[], calibrate_flags[], check_flags[], checkpoint_flags[],
    compare_flags[], configs_flags[], data_flags[], doctor_flags[], init_flags[], options_flags[], plan_flags[],
    predict_flags[], preflight_flags[], report_flags[], run_flags[], schema_flags[], suite_flags[], table_flags[],
    verify_flags[], weights_flags[];

// All commands, in the order of the help; ends with a NULL name (cli.c). cli_find_command returns NULL for an unknown
// name.
extern const struct command cli_commands[];
const struct command       *cli_find_command(const char *name);

// completion_print_words prints candidates for the last word of a command line, one per line. completion_print prints a
// shell's completion script, and returns false for an unknown shell (completion.c).
void completion_print_words(int count, char *const words[]);
bool completion_print(const char *shell);

// Fills the zeroed arguments of a command from words of the command line (flags.c). Errors are EXIT_USAGE. arena
// receives the strings that flags_parse composes.
status flags_parse(const struct command *command, int count, char *const words[], struct arguments *arguments,
                   struct arena *arena);
void   flags_print_help(const struct command *command);
// Returns the flag with this name and length, or NULL.
const struct flag *flags_find(const struct command *command, const char *name, size_t length);

// Copies standard input to a file that can be read more than once (inputs.c).
status cli_read_stdin(const char **path, struct arena *arena);

// Visits the installed configurations, those of the folder atlas last, until a visitor fails. cli_visit_rows visits the
// rows (jobs) of the selected configuration, and cli_count_rows counts them. If the selection names no configuration,
// both take all rows of all installed ones, and ignore its ranks and overrides.
typedef status config_visitor(void *state, const char *name, const char *path);
status         cli_visit_configs(config_visitor *visit, void *state);
typedef status row_visitor(void *state, const struct job_selection *selection, const struct config_row *row);
status         cli_visit_rows(const struct job_selection *selection, row_visitor *visit, void *state);
status         cli_count_rows(int64_t *count, const struct job_selection *selection);

// Returns whether a row passes the filter.
bool cli_wants_row(const struct row_filter *filter, const struct config *config);

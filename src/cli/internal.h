// SPDX-License-Identifier: MIT
// Commands and their flags. A command is one file with a struct of arguments, a table of flags that fills it, and a
// function; and one row of the list in cli.c.
#ifndef GSWBENCH_CLI_INTERNAL_H
#define GSWBENCH_CLI_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/arena.h"
#include "gswbench/config.h"
#include "gswbench/measured.h"
#include "gswbench/plan.h"
#include "gswbench/predict.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

#include <jansson.h>

enum { LIST_ITEMS_MAX = 256 };

// Texts in the order of the command line.
struct text_list {
    const char *items[LIST_ITEMS_MAX];
    int         count;
};

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

// What selects a configuration, the same for every command that reads one.
struct config_arguments {
    const char      *name;
    struct text_list overrides;
    int64_t          ranks;
    bool             skips_fits;    // of hardware and software profiles
};
#define CONFIG_FLAGS(owner, field) \
    TEXT_FLAG    (owner, field.name, "--config", "NAME|FILE", "configuration: a file, or the name of an installed one"), \
    LIST_FLAG    (owner, field.overrides, "--set", "SECTION.KEY=VALUE", "overrides an option of the configuration; repeatable"), \
    OVERRIDE_FLAG(owner, field.overrides, "--layers", "N", "run.layers", "a proxy of that many layers, labelled as one"), \
    INTEGER_FLAG (owner, field.ranks, "--ranks", "N", 1, 1048576, "number of ranks, which selects the rows of the configuration")
// clang-format on

struct command {
    const char        *name;
    const char        *help;     // one line
    const struct flag *flags;    // ends with END_FLAGS
    size_t             bytes;    // of the struct of arguments
    status (*run)(const void *arguments, struct text_buffer *errors);
};

extern const struct command command_calibrate, command_check, command_compare, command_configs, command_data,
    command_options, command_plan, command_predict, command_report, command_run, command_weights;

// flags.c: fills the command's zeroed arguments from words. Errors are EXIT_USAGE. arena holds composed texts.
status flags_parse(const struct command *command, int count, char *const words[], void *arguments, struct arena *arena);
void   flags_print_help(const struct command *command, FILE *file);

// folder.c: every installed configuration by its name, in alphabetic order, until one fails.
typedef status config_visitor(void *state, const char *name, const char *path, struct text_buffer *errors);
status         cli_visit_configs(config_visitor *visit, void *state, struct text_buffer *errors);

// Reads and checks the configuration that the arguments select; --config is required. Every error is a line of errors.
status cli_read_config(struct config *config, const struct config_arguments *arguments, struct text_buffer *errors);

// A configuration with everything derived from it that needs no plan.
struct job {
    struct config       config;    // the axes and the batch are resolved: nothing is auto
    struct mesh         mesh;
    struct plan_request request;    // of rank 0; points into config
    status              support;    // plan_supports
    bool                is_open;    // ranks were not given and an axis is auto: stands for every number that fits
};
status job_read(struct job *job, const struct config_arguments *arguments, struct text_buffer *errors);

// The same for one row of a configuration.
status job_read_row(struct job *job, const struct config_arguments *arguments, const struct config_row *row,
                    struct text_buffer *errors);

// The rows of the configuration: those of the file, or one for the ranks of the arguments.
status job_rows(const struct config_arguments *arguments, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                struct text_buffer *errors);

// What the profile of [hardware] says of single ops; the caller frees it, after an error too.
status job_read_measured(const struct job *job, struct measured_ops *measured);

// "fsdp 128 dp 4", "one rank"
const char *job_layout(const struct job *job, char *text, size_t bytes);

// What the layout costs on the machine of [hardware] though it runs: tp over the links between nodes. NULL: nothing.
const char *job_warning(const struct job *job, char *text, size_t bytes);

// What the published step time of the job means, by the published convention; NaN when there is none, and for
// a proxy.
double job_published_tokens_per_second(const struct job *job);
double job_published_mfu_percent(const struct job *job);

// What a rank's share of the model's FLOPs takes at the peak: by the published convention and peak where there is a
// table, else by the full one and the device's; NaN without a peak. Attention's share of it; MFU and rate of a step.
double job_ideal_seconds(const struct job *job);
double job_attention_share(const struct job *job);
double job_mfu_percent(const struct job *job, double seconds);
double job_tokens_per_second(const struct job *job, double seconds);

// Predicts the job's step and where it goes; the explanation's timeline is the caller's.
status job_explain(struct predict_explanation *explanation, struct prediction *prediction, const struct job *job,
                   const struct machine *machine);

// plan_ops.c: the whole plan, streamed to stdout.
void plan_print_ops(const struct plan *plan);
void plan_print_json(const struct job *job, const struct plan *plan);

// plan_schedule.c: the job's pipeline, drawn.
status plan_print_schedule(const struct job *job);

// Reads a result.json, or that of a run's folder.
struct result;
status cli_read_result(struct result *result, const char *path);

// predict_warnings.c: a line for each thing that makes the prediction doubtful or the job slow.
void predict_warn(const struct job *job, const struct prediction *prediction, const struct measured_ops *measured,
                  struct text_buffer *warnings);

// null for NaN.
json_t *cli_json_real(double value);

// The seconds of each part, by its name.
json_t *cli_json_waterfall(const struct waterfall *waterfall);

// Prints a JSON value, reals with 15 digits, and frees it.
void cli_print_json(json_t *value);

#endif

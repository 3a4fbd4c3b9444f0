// SPDX-License-Identifier: MIT
// Reads the configuration: all sections, from INI files and the command line.
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/hardware.h"
#include "gswbench/mesh.h"
#include "gswbench/model.h"
#include "gswbench/option.h"
#include "gswbench/software.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

enum data_kind { DATA_UNIFORM, DATA_MARKOV };

// The program whose log format the step lines use.
enum log_style { LOG_GSWBENCH, LOG_MAXTEXT, LOG_NEMO, LOG_TORCHTITAN, LOG_MEGATRON };

enum graphs { GRAPHS_AUTO, GRAPHS_ON, GRAPHS_OFF };
enum run_check { CHECK_NONE, CHECK_OPS };
enum run_conditions { CONDITIONS_NOTE, CONDITIONS_ERROR };
enum run_registered { REGISTERED_AUTO, REGISTERED_NO, REGISTERED_YES };
enum run_verify { VERIFY_QUICK, VERIFY_FULL, VERIFY_LIGHT, VERIFY_OFF };

// [run]. src/config/run.c explains the options of [run], [fault], [trace], [profile] and [checkpoint]. "auto" of an
// integer is stored as its minimum - 1, here -1.
struct run_config {
    int64_t steps, warmup, seed;
    double  until;               // in percent; 0: off
    char    backend[16];         // auto, or a name of backend.h
    char    communicator[16];    // auto, or a name of comm.h
    int64_t attention;           // enum attention_choice of backend.h
    // Values of the enums above.
    int64_t data, graphs, check, verify, conditions, log_style, registered_buffers;
    int64_t threads, layers, ranks_per_device, threads_per_core, sm_margin, ranks_per_id, connect_seconds, time_limit;
    int64_t deterministic, compute_times, zero_cta, communication_algorithms;
    int64_t hang_seconds;    // 0: no watchdog
    double  observe_seconds;
    char    cache[OPTION_PATH_BYTES], output[OPTION_PATH_BYTES];
    char    fail_above[112], fail_below[112];
};
extern const struct option run_options[];

// Returns the maximum number of steps: run.steps. With run.until, which ends a run once it is precise enough, it is ten
// times run.steps.
int64_t run_steps_max(const struct run_config *run);

// Returns the default number of warm-up steps.
int64_t run_warmup(int64_t steps);

// [fault]: a fault to inject, to test that the program detects it.
enum fault_kind {
    FAULT_NONE,
    FAULT_NAN,      // an output element of the op becomes NaN
    FAULT_FLIP,     // flips a bit of an output element
    FAULT_DELAY,    // the rank sleeps before the op
    FAULT_STOP,     // the process stops before the op (SIGSTOP)
    FAULT_SPIN,     // the rank loops forever before the op
    FAULT_SKIP,     // the op does not run
    FAULT_SLOW,     // every compute op takes amount percent longer
};

struct fault_config {
    int64_t kind;    // enum fault_kind
    int64_t rank, step;
    char    at[160];         // substring of an op's name, or "tensor " and the name of a tensor
    int64_t element, bit;    // FAULT_NAN, FAULT_FLIP: index of the element, and bit to flip
    double  amount;          // FAULT_DELAY: seconds; FAULT_SLOW: percent
    int64_t repeats;         // boolean: inject the fault again when verification repeats the step
};
extern const struct option fault_options[];

// The clock that times ops on devices. auto: CUPTI if available, else CUDA events. The host backend uses the host
// clock.
enum trace_source { TRACE_AUTO, TRACE_CUPTI, TRACE_EVENTS };

// [trace]: options for traced steps, which follow the measured ones, and for timelines.
struct trace_config {
    int64_t steps, source;
    char    timeline[160];          // ranks that write a timeline: "0,8", or "all"; "": none
    char    communications[160];    // ranks that write a file of communication ops: "0,8", "all", "auto"; "": none
};
extern const struct option trace_options[];

// trace_config_check fails if a listed rank does not exist, or if a timeline is wanted without a traced step.
// trace_config_draws returns whether a rank writes a timeline. trace_config_lists returns whether it may write a file
// of its communication ops; with auto, every rank may.
status trace_config_check(const struct trace_config *trace, int64_t world);
bool   trace_config_draws(const struct trace_config *trace, int64_t rank);
bool   trace_config_lists(const struct trace_config *trace, int64_t rank);
bool   trace_config_chooses(const struct trace_config *trace);    // whether communications = auto

// [checkpoint]: the folder to load from, and when to save.
struct checkpoint_config {
    char    load[OPTION_PATH_BYTES], save[OPTION_PATH_BYTES];    // folders; "": none
    int64_t every, at_end, keep;    // every: steps between saves; keep: checkpoints to keep, 0: all
    int64_t asynchronous, verify;
    double  grace;    // seconds from a signal to the end of the current step and its save; 0: 0.4 s
};
extern const struct option checkpoint_options[];

// Checks that the options agree: a folder to save to needs a time to save (every or at_end), and the reverse.
status checkpoint_config_check(const struct checkpoint_config *checkpoint);

// Returns whether a checkpoint is saved after this step (counted from 1).
bool checkpoint_config_saves(const struct checkpoint_config *checkpoint, int64_t step, bool is_last);

// [profile]: the steps and ranks that a profiler collects.
struct profile_config {
    int64_t start_step, stop_step;    // both inclusive; start_step -1: no step; stop_step -1: same as start_step
    char    ranks[160];               // "0,8", or "all"
};
extern const struct option profile_options[];

// Check that the profiled steps are below `steps`, the number of steps, and the profiled ranks below `world`, the
// number of ranks.
status profile_config_check_steps(const struct profile_config *profile, int64_t steps);
status profile_config_check_ranks(const struct profile_config *profile, int64_t world);

bool    profile_config_is_set(const struct profile_config *profile);
bool    profile_config_has_rank(const struct profile_config *profile, int64_t rank);
int64_t profile_config_last_step(const struct profile_config *profile);

struct config {
    struct model_config      model;
    struct parallel_config   parallel;
    struct train_config      train;
    struct precision_config  precision;
    struct run_config        run;
    struct checkpoint_config checkpoint;
    struct trace_config      trace;
    struct profile_config    profile;
    struct fault_config      fault;
    struct hardware_config   hardware;
    struct software_config   software;
    struct published_config  published;
    int64_t                  ranks;          // ranks of the job, from the request; 0: unknown
    int64_t                  full_layers;    // layers of the [model] preset; 0: the config names no preset
    char                     path[1024];     // the file that was read, for messages and the result
    char                     name[128];      // base name of the file without .ini
};

struct config_section {
    const char          *name;
    const struct option *options;
    size_t               offset;    // in struct config
    size_t               bytes;
    const char          *help;
};
extern const struct config_section config_sections[];    // ends with a NULL name
// Finds the option in the first `length` characters of name ("section.key"), and its section; NULL: there is none.
const struct option *config_find_option(const char *name, size_t length, const struct config_section **section);

// Returns whether the model is a proxy: shortened by run.layers, or with fewer layers than its preset.
bool config_is_proxy(const struct config *config);

// A config and its overrides.
struct config_request {
    const char        *name;         // a path, or the name of an installed config with or without .ini
    const char *const *overrides;    // "section.key=value", or "--flag section.key=value", whose errors name the flag
    int                override_count;
    bool               skips_fits;    // ignores [fit] sections of profiles, whose values are fitted to published runs
    int64_t            ranks;         // selects [when ranks=...] sections; 0: unknown, so none of them applies
};

// Reads a config. Later sources win: defaults, presets (model, hardware, software), file, matching [when ...] sections,
// overrides. Then run.layers replaces model.layers, and an unset run.warmup is derived from run.steps. Published
// figures become 0 (not published) if the job differs from the published run in its training step, rank count,
// precision or machine. `errors` receives one line per error; the status only has their number.
status config_read(struct config *config, const struct config_request *request, struct text_buffer *errors);

// Reads a config like config_read, but from memory. The request's name replaces the path in messages.
status config_read_text(struct config *config, const struct config_request *request, const char *text, size_t bytes,
                        struct text_buffer *errors);

// Finds the options that the error message `text` names, and prints where each was set: "tp: a.ini:7; heads:
// models/b.ini:3". Messages write the first option as "[section] key". Further words of the message are keys of that
// section if a value or a factor follows ("key = 2", "key x 2", "key / 2"), or if they are in a list.
void config_print_places(struct text_buffer *places, const struct config_request *request, const char *text);

// A row of the table of published results that a config reproduces. The config's [when ...] sections define the rows.
struct config_row {
    int64_t ranks;           // 0: any
    char    precision[8];    // value of precision.compute
    double  step_seconds;    // 0: not published
    double  mfu_percent;
    char    gpu[1024];      // value of hardware.profile; "": as in the file
    char    variant[40];    // value of published.variant; "": as in the file
};
enum { CONFIG_ROWS_MAX = 64 };
// Lists the rows of a config's table of published results, sorted by ranks. The [when ...] sections of the config
// define them:
//
// If sections name a gpu or a variant, each section with a published step time is a row. Otherwise each section with a
// rank count and a precision is a row. A rank count that occurs only without a precision has a row with the file's
// precision, and one for each section with a precision but no rank count. A file without sections has one row.
status config_rows(const struct config_request *request, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                   struct text_buffer *errors);

// Writes every option of every section as an INI file that config_read accepts.
void config_write(const struct config *config, FILE *file);

// Writes an INI file of the job with comments. Options with their default, or with the hardware profile's value, are
// commented out with ; (is_short: left out). [model] is written in full, [published] not at all.
void config_write_commented(const struct config *config, bool is_short, FILE *file);

// A config with this path prefix is read from standard input or a pipe, and is named "stdin".
#define CONFIG_STDIN "/proc/self/fd/"

// config_folder returns the folder of installed configs. Its subfolder CONFIG_ATLAS has configs of published runs of
// other programs. config_find finds the path of a config by name; false: there is none.
#define CONFIG_ATLAS "atlas"
const char *config_folder(void);
bool        config_find(const char *name, char *path, size_t bytes);
// Writes the name of the installed config that is closest to a word; false if none is close.
enum { CONFIG_NAME_BYTES = 128 };
bool config_suggest(const char *word, char name[CONFIG_NAME_BYTES]);
// Finds the file of [hardware] profile; false if there is none.
bool config_find_profile(const struct config *config, char *path, size_t bytes);
// Finds the installed profile for the driver's device name; false if there is none.
bool   config_find_hardware(struct hardware_config *hardware, const char *device);
int    config_is_file(const struct dirent *entry);    // scandir filter: NAME.ini
size_t config_stem(const char *name);                 // length of a file's name without .ini
// Returns the names of a folder's NAME.ini files, sorted, then NULL. Returns NULL if the folder cannot be read; errno
// says why.
struct arena;
const char **config_names(struct arena *arena, const char *folder);

// Lists the values that an option accepts as words, one per line, including the names of installed presets.
void config_list_words(struct text_buffer *words, const struct option *option);

// Prints all options: for the terminal, as docs/options.md, or as the manual page gswbench(5).
enum options_form { OPTIONS_TEXT, OPTIONS_MARKDOWN, OPTIONS_MANUAL };
void config_print_options(FILE *file, enum options_form form);
// Prints one section as text. Returns false if no section has this name; *closest is then a similar name, or NULL.
bool config_print_section(FILE *file, const char *name, const char **closest);

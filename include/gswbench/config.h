// SPDX-License-Identifier: MIT
// The configuration: all sections, from INI files and the command line.
#pragma once

#include <dirent.h>
#include <stdio.h>

#include "gswbench/checkpoint_config.h"
#include "gswbench/fault_config.h"
#include "gswbench/hardware.h"
#include "gswbench/mesh.h"
#include "gswbench/model.h"
#include "gswbench/precision.h"
#include "gswbench/profile_config.h"
#include "gswbench/run.h"
#include "gswbench/software.h"
#include "gswbench/status.h"
#include "gswbench/text.h"
#include "gswbench/trace_config.h"
#include "gswbench/train.h"

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
    int64_t                  ranks;          // as requested; 0: unknown
    int64_t                  full_layers;    // of the [model] preset; 0: none is named
    char                     path[1024];     // the file that was read, for messages and the result
    char                     name[128];      // its base name without .ini
};

struct config_section {
    const char          *name;
    const struct option *options;
    size_t               offset;    // in struct config
    size_t               bytes;
    const char          *help;
};
extern const struct config_section config_sections[];    // ends with a NULL name

// Whether the model has fewer layers than its preset, or than the config.
bool config_is_proxy(const struct config *config);

// A config and its overrides.
struct config_request {
    const char        *name;         // a path, or the name of an installed config with or without .ini
    const char *const *overrides;    // "section.key=value", or "--flag section.key=value"; applied last
    int                override_count;
    bool               skips_fits;    // ignores the [fit] sections of profiles
    int64_t            ranks;         // selects [when ranks=...]; 0: unknown, such sections never match
};

// Reads a config. Later sources win: defaults, presets (model, hardware, software), file, matching [when ...] sections,
// overrides. Then run.layers replaces model.layers, and an unset warm-up follows from the steps. Published figures of
// another step, rank count, precision or machine become 0 (not published). errors receives one line per error; the
// status only counts them.
status config_read(struct config *config, const struct config_request *request, struct text_buffer *errors);

// The same from memory; the request's name replaces the path in messages.
status config_read_text(struct config *config, const struct config_request *request, const char *text, size_t bytes,
                        struct text_buffer *errors);

// Prints where the options that an error message names were set: "tp: a.ini:7; heads: models/b.ini:3". The message must
// name an option as "[section] key", or after its section as "key = ", "key x ", "key / " or in a list.
void config_print_places(struct text_buffer *places, const struct config_request *request, const char *text);

// A row of the published table, selected by the file's [when ...] sections.
struct config_row {
    int64_t ranks;           // 0: any
    char    precision[8];    // for precision.compute
    double  step_seconds;    // 0: not published
    double  mfu_percent;
    char    gpu[1024];      // for hardware.profile; "": the file's own
    char    variant[40];    // for published.variant; "": the file's own
};
enum { CONFIG_ROWS_MAX = 64 };
// Lists the rows of a config, sorted by ranks.
//
// If sections name a gpu or a variant, each section with a published step time is a row. Otherwise each rank count that
// a section names gives one row per precision that is named with it. A rank count without a precision gives one row for
// the file's precision, and one for each precision that has a section of its own. A file without [when ...] sections
// has one row.
status config_rows(const struct config_request *request, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                   struct text_buffer *errors);

// Writes every option of every section as an INI file that config_read accepts.
void config_write(const struct config *config, FILE *file);

// Writes a commented INI file of the job. Options at their default, or the hardware profile's value, are commented out
// with ;. Models are written in full, published figures not at all.
void config_write_commented(const struct config *config, bool is_short, FILE *file);

// Path prefix of a config read from standard input; its name is "stdin".
#define CONFIG_STDIN "/proc/self/fd/"

// The folder of installed configs, its subfolder of other programs' published runs, and a config's path by name (false:
// none).
#define CONFIG_ATLAS "atlas"
const char *config_folder(void);
bool        config_find(const char *name, char *path, size_t bytes);
// Writes the name of the installed config that is closest to a word; false if none is close.
enum { CONFIG_NAME_BYTES = 128 };
bool config_suggest(const char *word, char name[CONFIG_NAME_BYTES]);
// Finds the file of [hardware] profile; false if there is none.
bool config_find_profile(const struct config *config, char *path, size_t bytes);
// Finds the installed profile for the driver's device name; false if there is none.
bool config_find_hardware(struct hardware_config *hardware, const char *device);
int  config_is_file(const struct dirent *entry);    // scandir filter: NAME.ini

// Lists the words that an option accepts, one per line, including installed presets.
void config_list_words(struct text_buffer *words, const struct option *option);

// Prints all options: for the terminal, as docs/options.md, or as the manual page gswbench(5).
enum options_form { OPTIONS_TEXT, OPTIONS_MARKDOWN, OPTIONS_MANUAL };
void config_print_options(FILE *file, enum options_form form);
// Prints one section as text; false: there is no such section, and closest is a similar one or NULL.
bool config_print_section(FILE *file, const char *name, const char **closest);

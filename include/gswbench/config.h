// SPDX-License-Identifier: MIT
// The whole configuration: every section, read from INI files and the command line in a documented order.
#ifndef GSWBENCH_CONFIG_H
#define GSWBENCH_CONFIG_H

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
    int64_t                  ranks;         // as requested; 0: unknown
    char                     path[1024];    // the file that was read, for messages and the result
    char                     name[128];     // its base name without .ini
};

struct config_section {
    const char          *name;
    const struct option *options;
    size_t               offset;    // in struct config
    size_t               bytes;
    const char          *help;
};
extern const struct config_section config_sections[];    // ends with a NULL name

// Where a config is looked for and what overrides it.
struct config_request {
    const char        *name;         // a path, or the name of an installed config with or without .ini
    const char *const *overrides;    // "section.key=value", or "--flag section.key=value" of a short flag; applied last
    int                override_count;
    bool               skips_fits;    // leaves out the [fit] sections of profiles
    int64_t            ranks;         // selects [when ranks=...]; 0: unknown, such sections then never match
};

// Order, later wins: defaults, presets of model, hardware and software, file, matching [when ...] sections, overrides;
// run.layers then replaces model.layers, and a warm-up that is not set follows from the steps. A published time and MFU
// that do not belong to the step, the ranks, the precision and the machine in force become 0: not published. All errors
// are reported together in errors, one a line, each with its place; the status then holds only their number.
status config_read(struct config *config, const struct config_request *request, struct text_buffer *errors);

// The same from memory; the request's name stands for the path in messages.
status config_read_text(struct config *config, const struct config_request *request, const char *text, size_t bytes,
                        struct text_buffer *errors);

// Where the values were set that an error of a rule across options names, as "[section] key = " or, of the section
// named last, "key = ", "key x " or "key / ": "tp: a.ini:7; heads: models/b.ini:3".
void config_print_places(struct text_buffer *places, const struct config_request *request, const char *text);

// A row of the published table, as the file's [when ...] sections select it.
struct config_row {
    int64_t ranks;           // 0: any
    char    precision[8];    // for precision.compute
    double  step_seconds;    // 0: not published
    double  mfu_percent;
    char    gpu[112];       // for hardware.profile; "": the file's own
    char    variant[40];    // for published.variant; "": the file's own
};
enum { CONFIG_ROWS_MAX = 64 };
// The rows, sorted by ranks: each number of ranks that a section names, with each precision that is named together with
// it; where none is, with the file's own precision and with every precision that has a section of its own. A file
// without [when ...] sections has one row. In a file with sections that name a gpu or a variant, each section that has
// a published step time is a row.
status config_rows(const struct config_request *request, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                   struct text_buffer *errors);

// Writes every option of every section as an INI file that config_read accepts.
void config_write(const struct config *config, FILE *file);

// The same for people, of what makes a job: each option with its meaning, behind ; where it has its default, or what
// the profile of the machine says. Models are written out; of published figures there are none.
void config_write_commented(const struct config *config, FILE *file);

// What a configuration is read from that came from standard input; its name is "stdin".
#define CONFIG_STDIN "/proc/self/fd/"

// The folder that holds installed configs, the one below it with published runs of other programs, and the path of a
// config by name. False when there is none.
#define CONFIG_ATLAS "atlas"
const char *config_folder(void);
bool        config_find(const char *name, char *path, size_t bytes);
// The file of the machine that [hardware] profile names. False when it names none.
bool config_find_profile(const struct config *config, char *path, size_t bytes);
// The installed profile of the machine whose device has that name for its driver. False when there is none.
bool config_find_hardware(struct hardware_config *hardware, const char *device);
int  config_is_file(const struct dirent *entry);    // for scandir: NAME.ini

// The words that an option takes, one a line; of one that names a file, the installed ones.
void config_list_words(struct text_buffer *words, const struct option *option);

// Every option: for the terminal, as docs/options.md, and as the manual page gswbench(5).
enum options_form { OPTIONS_TEXT, OPTIONS_MARKDOWN, OPTIONS_MANUAL };
void config_print_options(FILE *file, enum options_form form);

#endif

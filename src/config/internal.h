// SPDX-License-Identifier: MIT
// The files of this folder share these types. A parsed config is a document: a list of assignments.
#pragma once

#include "gswbench/arena.h"
#include "gswbench/config.h"

// Where an assignment is from: a section such as [train], the section [fit] of a profile (fitted values), a [when ...]
// section, or an override (--set). If several origins set the same option, the last origin of this list applies.
enum origin { ORIGIN_FILE, ORIGIN_FIT, ORIGIN_WHEN, ORIGIN_OVERRIDE, ORIGIN_COUNT };

// The condition of a [when ...] section, which applies only to jobs with these values.
struct condition {
    int64_t     ranks;      // 0: any
    int64_t     compute;    // enum compute_precision; -1: any
    const char *gpu;        // [hardware] profile; NULL: any
    const char *variant;    // [published] variant; NULL: any
};

// One validated "key = value".
struct assignment {
    const struct config_section *section;
    const struct option         *option;
    const char                  *value;
    const char                  *place;    // start of error messages: "a.ini:14: [parallel] fsdp = "
    int                          line;
    enum origin                  origin;
    int                          condition;    // index in document.conditions, for ORIGIN_WHEN
};

enum { CONDITIONS_MAX = 256, DOCUMENT_ERRORS_SHOWN = 100 };

// The assignments of one file and of the overrides. Errors are counted, and their text is appended up to a limit.
struct document {
    struct arena        arena;
    struct assignment  *assignments;
    size_t              count;
    struct condition    conditions[CONDITIONS_MAX];
    int                 condition_count;
    struct text_buffer *errors;
    int64_t             error_count;

    // Parser state.
    const char                  *file;       // file that is being parsed; NULL: none yet
    const char                  *path;       // the file's path, printable
    const char                  *only;       // the only section allowed here; NULL: all
    const char                  *ignored;    // a section that other code reads; NULL: none
    int                          line;
    char                         header[64];    // current section, printable
    enum origin                  origin;        // origin of the assignments in this section
    const struct config_section *section;       // section of the current lines, if lines is LINES_SECTION
    enum { LINES_SKIPPED, LINES_SECTION, LINES_WHEN, LINES_BEFORE_SECTIONS } lines;
};

void document_error(struct document *document, const char *format, ...) __attribute__((format(printf, 2, 3)));
void document_free(struct document *document);

// Returns " (did you mean "x"?)", or "" without a suggestion. The document's arena holds the text.
const char *document_hint(struct document *document, const char *before, const char *suggestion, const char *after);

// Parse text into assignments (document.c).
void document_parse(struct document *document, const char *path, const char *text, size_t bytes);
void document_override(struct document *document, const char *text);

enum { FILE_BYTES_MAX = 1 << 20 };    // of a config, preset or table

// Returns the name of the .ini file in the folder that is closest to a misspelt name, or NULL. The arena holds it.
const char *file_suggest(struct arena *arena, const char *folder, const char *name);
const char *file_list(struct arena *arena, const char *folder);    // lists the first 12 names: "a, b"

// Returns whether folder/name.ini exists, and its path. Names with '/' never match.
bool file_find(const char *folder, const char *name, char *path, size_t bytes);

// Reads the measured times of collectives for [hardware] collectives (hardware.c). Reports an unknown GPU, and a file
// that it cannot read.
void collectives_read(struct hardware_config *hardware, struct document *document);

// Values that select [when ...] sections; ranks or compute of -1 matches no section that names one. skips_overrides,
// skips_fits: ignore overrides (ORIGIN_OVERRIDE), and fitted values of profiles (ORIGIN_FIT).
struct selection {
    int64_t ranks, compute;
    char    gpu[sizeof(((struct hardware_config *)0)->profile)];
    char    variant[sizeof(((struct published_config *)0)->variant)];
    bool    skips_overrides, skips_fits;
};

// Read a request into a document, and convert a document to a config (config.c).
void document_read(struct document *document, const struct config_request *request, char *path, size_t bytes);
// Returns the values that select [when ...] sections: as set by the file and the overrides; without a request, by the
// file alone.
struct selection document_select(const struct document *document, const struct config_request *request);
void             config_set_defaults(struct config *config);
void             document_apply(struct config *config, const struct document *document, struct selection selection);
// Returns the assignment that sets the option; NULL: none.
const struct assignment *document_find(const struct document *document, const struct option *option,
                                       struct selection selection);
bool                     document_is_overridden(const struct document *document, const struct option *option);
status                   document_finish(struct document *document);    // frees it; the status has the error count

// Computes the config for a selection, before run.layers replaces model.layers. Reports errors in presets.
void config_evaluate(struct config *config, struct document *document, struct selection selection);

// Applies the preset files of a selection and reports their errors (preset.c).
void preset_apply_all(struct config *config, struct document *document, struct selection selection);
// Returns "FILE:LINE" where a preset sets the option; NULL: nowhere. The document's arena holds it.
const char *preset_find_place(struct document *document, struct selection selection, const struct option *option);
bool        condition_matches(const struct condition *condition, const struct selection *selection);
// Reports an error if an override sets a variant that no [when variant=...] section has.
void condition_check_variant(struct document *document, const char *variant);
// Returns whether a [when gpu=...] section names this gpu. Such a gpu selects a row of published results and the
// hardware profile.
bool document_names_gpu(const struct document *document, const char *gpu);

void document_parse_file(struct document *document, const char *path);

// Sets published figures that do not belong to the configured step to 0, not published (rows.c).
void config_keep_published(struct config *config, struct document *document, struct selection selection);

bool option_names_file(const struct option *option);

const struct config_section *section_find(const char *name);
// Finds an option by the first `length` characters of `key`; NULL: the section has no such option.
const struct option *section_find_option(const struct config_section *section, const char *key, size_t length);
const char          *section_suggest(const char *name);

// SPDX-License-Identifier: MIT
// What the files of this folder share: a config as a list of assignments, before it is applied.
#ifndef GSWBENCH_CONFIG_INTERNAL_H
#define GSWBENCH_CONFIG_INTERNAL_H

#include "gswbench/arena.h"
#include "gswbench/config.h"

// Later origins win over earlier ones.
enum origin { ORIGIN_FILE, ORIGIN_FIT, ORIGIN_WHEN, ORIGIN_OVERRIDE, ORIGIN_COUNT };

// A [when ...] section.
struct condition {
    int64_t     ranks;      // 0: any
    int64_t     compute;    // enum compute_precision; -1: any
    const char *gpu;        // [hardware] profile; NULL: any
    const char *variant;    // [published] variant; NULL: any
};

// One checked "key = value".
struct assignment {
    const struct config_section *section;
    const struct option         *option;
    const char                  *value;
    const char                  *place;    // "a.ini:14: [parallel] fsdp = "
    int                          line;
    enum origin                  origin;
    int                          condition;    // index, for ORIGIN_WHEN
};

enum { CONDITIONS_MAX = 256, DOCUMENT_ERRORS_SHOWN = 100 };

// What one file and the overrides say. Errors are appended to errors up to a limit, and counted.
struct document {
    struct arena        arena;
    struct assignment  *assignments;
    size_t              count, capacity;
    struct condition    conditions[CONDITIONS_MAX];
    int                 condition_count;
    struct text_buffer *errors;
    int64_t             error_count;

    // Where parsing stands.
    const char                  *file;       // that is parsed; NULL: none yet
    const char                  *path;       // the same, printable
    const char                  *only;       // the one section that is allowed here; NULL: all
    const char                  *ignored;    // a section that somebody else reads; NULL: none
    int                          line;
    char                         header[64];    // of the present section, printable
    enum origin                  origin;        // of a section's lines
    const struct config_section *section;       // NULL inside [when ...] and where lines are skipped
    enum { LINES_SKIPPED, LINES_SECTION, LINES_WHEN, LINES_BEFORE_SECTIONS } lines;
};

void document_error(struct document *document, const char *format, ...) __attribute__((format(printf, 2, 3)));
void document_free(struct document *document);

// Foreign text, printable; and " (did you mean "x"?)", or nothing without a suggestion. In the document's arena.
const char *document_show(struct document *document, const char *text);
const char *document_hint(struct document *document, const char *before, const char *suggestion, const char *after);

// document.c: text into assignments; everything wrong with it becomes an error.
void document_parse(struct document *document, const char *path, const char *text, size_t bytes);
void document_override(struct document *document, const char *text);

// file.c: a whole regular file in memory, or an error. The caller frees text.
status file_read(const char *path, char **text, size_t *bytes);

// The name of a file "NAME.ini" in the folder that is nearest to a misspelt one, or NULL; in the arena.
const char  *file_suggest(struct arena *arena, const char *folder, const char *name);
const char **file_names(struct arena *arena, const char *folder);    // all of them; NULL: no such folder
const char  *file_list(struct arena *arena, const char *folder);     // "a, b"; the first dozen

// Whether folder/name.ini is there; path receives it. A name with '/' is none.
bool file_find(const char *folder, const char *name, char *path, size_t bytes);

// rank_list.c: "0,8" or "all". The option's name stands in the error.
status rank_list_check(const char *option, const char *list, int64_t world);
bool   rank_list_has(const char *list, int64_t rank);

// What decides which [when ...] sections match.
struct selection {
    int64_t ranks, compute;
    char    gpu[sizeof(((struct hardware_config *)0)->profile)];
    char    variant[sizeof(((struct published_config *)0)->variant)];
    bool    skips_overrides, skips_fits;
};

// config.c: from a request to a document, and from a document to a config.
void document_read(struct document *document, const struct config_request *request, char *path, size_t bytes);
// The terms in force; without a request those of the file itself.
struct selection document_select(const struct document *document, const struct config_request *request);
void             config_set_defaults(struct config *config);
void             document_apply(struct config *config, const struct document *document, struct selection selection);
// What set the value in force; NULL: nothing did.
const struct assignment *document_find(const struct document *document, const struct option *option,
                                       struct selection selection);
status document_finish(struct document *document);    // frees it; the status holds the count of errors

// The config of a selection, before run.layers replaces its layers. What is wrong with its presets becomes an error.
void config_evaluate(struct config *config, struct document *document, struct selection selection);

// preset.c: the values of the files that the options of a selection name. What is wrong with them becomes an error.
void preset_apply_all(struct config *config, struct document *document, struct selection selection);
// Where such a file sets the option: "FILE:LINE", in the document's arena. NULL: nowhere.
const char *preset_find_place(struct document *document, struct selection selection, const struct option *option);
// condition.c: the terms of a section, which are cut up; false where one is none or twice.
bool condition_parse(struct document *document, char *terms, struct condition *condition);
bool condition_matches(const struct condition *condition, const struct selection *selection);
// A variant that no section names, and the file does not have by itself, is an error.
void condition_check_variant(struct document *document, const char *variant);
// Whether a section names that gpu: it then belongs to the row, as its ranks do.
bool document_names_gpu(const struct document *document, const char *gpu);

// Parses a file that has to be there.
void document_parse_file(struct document *document, const char *path);

// published.c: the published time and MFU become 0, not published, where they are not of the step in force.
void config_keep_published(struct config *config, struct document *document, struct selection selection);

// Whether the option names a file of presets, by its name or, with '/', by its path.
bool option_names_file(const struct option *option);

const struct config_section *section_find(const char *name);
const char                  *section_suggest(const char *name);

#endif

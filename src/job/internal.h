// SPDX-License-Identifier: MIT
// Declares the reader of other programs' files, and the table that translates the names and values of their options.
#pragma once

#include <stdbool.h>

#include "gswbench/arena.h"
#include "gswbench/job.h"

enum { IMPORT_VALUES_MAX = 512 };

struct import_value {
    const char *name, *value;    // the name has underscores for dashes; in TOML it is "section.name"
    bool        is_used;
};

// The values of a file. A name occurs once, with its last value.
struct import_values {
    struct arena       *arena;
    const char         *path;
    struct import_value list[IMPORT_VALUES_MAX];
    int                 count;
};

// Copies a name without leading dashes, with underscores for dashes.
char *import_normalise(struct arena *arena, const char *name);

// Adds a value, or replaces the value that the name already has. Sets `added` to its place.
status import_add_value(struct import_values *values, const char *name, const char *value, struct import_value **added);

// Reads Megatron's arguments, in a shell script or alone: --name value, --name=value, --name. Replaces variables that
// the script assigns by their values. Changes the text.
status import_read_arguments(struct import_values *values, char *text);

// Reads the text, which it changes, and finds its format.
status import_read_values(struct import_values *values, enum import_format *format, char *text);

// One row per option: its names in other programs, and translations of its values as "theirs=ours", both separated by
// spaces. Without translations (NULL) the value is taken unchanged; "*" takes any other value unchanged. "theirs="
// accepts a value but sets nothing. A row without an option (NULL) sets nothing; derive functions may read its names.
struct import_name {
    const char *names, *option, *values;
};

// Returns the row of a name, or NULL.
const struct import_name *import_find_name(const char *name);

// Returns whether an argument of Megatron takes no value.
bool import_is_flag(const char *name);

// A file and its translation.
struct reader {
    struct import       *import;
    struct import_values values;
    bool                 is_known;    // import_names has at least one name of the file
};

// The following functions return the value of a name; NULL or `absent`: the file does not have it. All but reader_find
// mark the name as used: reader_has only if it has this value, reader_number only if the value is an integer.
struct import_value *reader_find(struct reader *reader, const char *name);
const char          *reader_value(struct reader *reader, const char *name);
bool                 reader_has(struct reader *reader, const char *name, const char *value);
int64_t              reader_number(struct reader *reader, const char *name, int64_t absent);

// Removes values that have no effect in the other program. names: separated by spaces.
void reader_drop(struct reader *reader, const char *names);

// Returns the value that the translation has set for an option so far, or NULL.
const char *reader_setting(const struct reader *reader, const char *option);

// Set an option, or several as in "model.qk_norm=no model.mlp_bias=yes".
void reader_set(struct reader *reader, const char *option, const char *value);
void reader_set_all(struct reader *reader, const char *settings);
void reader_set_number(struct reader *reader, const char *option, int64_t value);

// Sets a pattern in which `windows` layers with window attention precede each layer with full attention (0: all layers
// have window attention). kind: mlp or experts.
void reader_set_windows(struct reader *reader, int64_t windows, const char *kind);

// Sets `ours` to the translated value. Returns false if the list does not have the value; "*" in a list accepts any
// other value.
bool reader_translate(struct reader *reader, const char *list, const char *value, const char **ours);

// Returns the error for a value that is not in the list, with the values that are: "silu, gelu".
status import_unsupported(struct reader *reader, const char *name, const char *value, const char *list);

// Sets options whose default differs in the other program, before the names of the file are translated.
void   import_set_megatron_defaults(struct reader *reader);
status import_set_torchtitan_defaults(struct reader *reader);

// Adds settings that depend on several values of the file, after its names are translated.
status import_derive_megatron(struct reader *reader);
status import_derive_torchtitan(struct reader *reader);
status import_derive_precision(struct reader *reader);

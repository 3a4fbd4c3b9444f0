// SPDX-License-Identifier: MIT
// Declares the reader of other programs' files and the names of their options, for their translation.
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

// Reads the text, which it changes, and finds its format.
status import_read_values(struct import_values *values, enum import_format *format, char *text);

// One row per option: its names in other programs, and translations of its values as "theirs=ours", both separated by
// spaces. Without translations (NULL) the value is taken unchanged; "*" takes any other value unchanged. "theirs=" sets
// nothing, and neither does a row without an option (NULL), whose names have no effect here.
struct import_name {
    const char *names, *option, *values;
};

// Returns the row of a name, or NULL.
const struct import_name *import_find_name(const char *name);

// Returns whether an argument of Megatron takes no value.
bool import_is_flag(const char *name);

// SPDX-License-Identifier: MIT
// Declares option tables. One row is used to parse, validate, document and print an option. Modules define their rows;
// config gathers them.
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "gswbench/quantity.h"
#include "gswbench/status.h"

enum option_type {
    OPTION_INTEGER,     // int64_t; accepts 8192, 8_192, 8k, 8Ki, 128Mi; for a key in seconds also 90s, 5m, 2h, 1d
    OPTION_REAL,        // double; accepts 1e-5, 3.35e12
    OPTION_PERCENT,     // double, in percent; accepts 0.5%
    OPTION_QUANTITY,    // struct quantity; accepts 0.72, 989e12 spec, 989T, 80GB, 400Gb/s, 0.72 prior 5%
    OPTION_BOOLEAN,     // int64_t 0 or 1; yes, no, true, false, on, off, 1, 0
    OPTION_CHOICE,      // int64_t index into names
    OPTION_SET,         // int64_t bit mask over names; "a, b", or "none"
    OPTION_TEXT,        // char[]; if names is set, one of them
};

// Size of a field for a path: PATH_MAX of Linux.
enum { OPTION_PATH_BYTES = 4096 };

// With names = option_auto, an integer also accepts "auto", stored as minimum - 1.
extern const char *const option_auto[];

struct option {
    const char        *key;
    enum option_type   type;
    size_t             offset;      // of the field in the section's struct
    size_t             size;        // of the field in bytes
    const char        *fallback;    // the default as text, parsed like user input
    double             minimum, maximum;
    const char *const *names;    // NULL-terminated
    const char        *help;     // meaning and unit, as one sentence without a full stop
};

// Rows of an option table, ended by END_OPTIONS. The key is the field's name.
// clang-format off
#define OPTION_FIELD(owner, field) offsetof(struct owner, field), sizeof(((struct owner *)0)->field)
#define INTEGER_OPTION(owner, field, fallback, minimum, maximum, help) \
    { #field, OPTION_INTEGER, OPTION_FIELD(owner, field), fallback, minimum, maximum, NULL, help }
#define AUTO_OPTION(owner, field, fallback, minimum, maximum, help) \
    { #field, OPTION_INTEGER, OPTION_FIELD(owner, field), fallback, minimum, maximum, option_auto, help }
#define REAL_OPTION(owner, field, fallback, minimum, maximum, help) \
    { #field, OPTION_REAL, OPTION_FIELD(owner, field), fallback, minimum, maximum, NULL, help }
#define PERCENT_OPTION(owner, field, fallback, minimum, maximum, help) \
    { #field, OPTION_PERCENT, OPTION_FIELD(owner, field), fallback, minimum, maximum, NULL, help }
#define QUANTITY_OPTION(owner, field, fallback, minimum, maximum, help) \
    { #field, OPTION_QUANTITY, OPTION_FIELD(owner, field), fallback, minimum, maximum, NULL, help }
#define BOOLEAN_OPTION(owner, field, fallback, help) \
    { #field, OPTION_BOOLEAN, OPTION_FIELD(owner, field), fallback, 0, 1, NULL, help }
#define CHOICE_OPTION(owner, field, fallback, names, help) \
    { #field, OPTION_CHOICE, OPTION_FIELD(owner, field), fallback, 0, 0, names, help }
#define SET_OPTION(owner, field, fallback, names, help) \
    { #field, OPTION_SET, OPTION_FIELD(owner, field), fallback, 0, 0, names, help }
#define TEXT_OPTION(owner, field, fallback, help) \
    { #field, OPTION_TEXT, OPTION_FIELD(owner, field), fallback, 0, 0, NULL, help }
#define NAME_OPTION(owner, field, fallback, names, help) \
    { #field, OPTION_TEXT, OPTION_FIELD(owner, field), fallback, 0, 0, names, help }
#define END_OPTIONS { NULL, OPTION_INTEGER, 0, 0, NULL, 0, 0, NULL, NULL }
// clang-format on

// Returns the row with this key, or NULL.
const struct option *option_find(const struct option *options, const char *key);

// Returns the struct field of an OPTION_QUANTITY row.
struct quantity *option_quantity(const struct option *option, void *section);

// Returns the key closest to a misspelt one, or NULL if none is close.
const char *option_suggest(const struct option *options, const char *key);

// Returns the words that the option accepts, NULL-terminated.
const char *const *option_words(const struct option *option);

// Describes the accepted values: "an integer in 1..65536, or auto", "fp32, bf16 or fp8".
void option_allowed(const struct option *option, char *text, size_t bytes);

// Parses text into the option's field. Errors name only the value and the accepted values; the caller adds section,
// key, file and line.
status option_set(const struct option *option, void *section, const char *text);

// Sets every field to its default. A test checks all defaults.
void option_set_defaults(const struct option *options, void *section);

// Prints the value in a form that option_set reads back unchanged.
void option_print(const struct option *option, const void *section, char *text, size_t bytes);

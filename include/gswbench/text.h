// SPDX-License-Identifier: MIT
// Text: bounded copies, closest names, growing buffers, and what makes foreign text safe to print.
#ifndef GSWBENCH_TEXT_H
#define GSWBENCH_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Copies and always terminates; false when the text was cut.
bool text_copy(char *to, size_t bytes, const char *from);

// Levenshtein distance without regard to case, of the first 64 characters.
int text_distance(const char *a, const char *b);

// The entry of a NULL-terminated list nearest to word, or NULL when none is near enough to be a misspelling.
const char *text_closest(const char *word, const char *const *names);

enum { TEXT_LIST_MAX = 256 };

// Texts that belong to somebody else.
struct text_list {
    const char *items[TEXT_LIST_MAX];
    int         count;
};

// A growing string; a zeroed struct is an empty one. text is NULL until the first append.
struct text_buffer {
    char  *text;
    size_t length, capacity;
};
void text_append(struct text_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text_buffer *buffer);

// A stream into memory. When it is closed, data has what was written, which the caller frees.
struct text_stream {
    FILE  *file;
    char  *data;
    size_t bytes;
};
void text_stream_open(struct text_stream *stream);
void text_stream_close(struct text_stream *stream);

// Prints so many bytes for a manual page: nothing of them is an instruction.
void text_print_roff(FILE *file, const char *text, size_t bytes);

// Copies with control characters, those that end lines or turn the direction of writing, and bytes that are not UTF-8
// replaced by '?': safe on a terminal and in JSON.
void text_printable(char *to, size_t bytes, const char *from);
void text_print(const char *text, FILE *file);    // such a copy, of any length

#endif

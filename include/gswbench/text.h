// SPDX-License-Identifier: MIT
// Declares bounded copies, closest match, growing buffers, and escaping of untrusted text.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Copies text and terminates it with 0. Returns false if it was truncated.
bool text_copy(char *to, size_t bytes, const char *from);

// Returns the case-insensitive Levenshtein distance of the first 64 characters.
int text_distance(const char *a, const char *b);

// Returns the closest name of a NULL-terminated list, or NULL if none is likely meant.
const char *text_closest(const char *word, const char *const *names);

// Returns the index of a word in a NULL-terminated list, or -1.
int64_t text_index(const char *word, const char *const *names);

// Returns whether a list of words, separated by spaces, has this word.
bool text_has_word(const char *words, const char *word);

// Splits "NAME = VALUE ; COMMENT" in place and trims name and value. ':' may replace '='. Returns false if the name or
// the separator is missing; the value may be empty.
bool text_split_assignment(char *line, char **name, char **value);

enum { TEXT_LIST_MAX = 256 };

// A list of borrowed strings.
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

// A memory stream. After close, data holds the output; the caller frees it.
struct text_stream {
    FILE  *file;
    char  *data;
    size_t bytes;
};
void text_stream_open(struct text_stream *stream);
void text_stream_close(struct text_stream *stream);

// Prints words in lines of at most `columns` columns, and returns the number of lines. The first line starts at column
// `at`, further lines with the margin. Several spaces between two words, which align columns, are kept.
int text_print_wrapped(FILE *file, const char *text, int at, int columns, const char *margin);

// Closes the stream, prints its lines, each wrapped at 80 columns, and frees them. Further lines of a comment begin
// with "#", too.
void text_print_lines(FILE *file, struct text_stream *text);

// Prints text to a manual page, with roff control characters escaped.
void text_print_roff(FILE *file, const char *text, size_t bytes);

// Copies text with '?' for control characters, line separators, bidirectional controls and invalid UTF-8. Safe on a
// terminal and in JSON.
void text_printable(char *to, size_t bytes, const char *from);
void text_print(const char *text, FILE *file);    // prints text_printable of a text of any length

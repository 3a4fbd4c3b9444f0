// SPDX-License-Identifier: MIT
// Implements bounded copies, edit distance, growing buffers and printable text.
#include "gswbench/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/status.h"

enum { DISTANCE_MAX_LENGTH = 64 };

bool text_copy(char *to, size_t bytes, const char *from)
{
    size_t length = strlen(from);
    size_t copied = length < bytes ? length : bytes - 1;
    memcpy(to, from, copied);
    to[copied] = '\0';
    return copied == length;
}

static bool is_blank(char character)
{
    return isspace((unsigned char)character) != 0;
}

// Removes blanks at both ends of [start, end).
static char *trim(char *start, char *end)
{
    while (start < end && is_blank(*start)) {
        start++;
    }
    while (start < end && is_blank(end[-1])) {
        end--;
    }
    *end = '\0';
    return start;
}

bool text_split_assignment(char *line, char **name, char **value)
{
    for (char *comment = line; (comment = strchr(comment, ';')) != NULL; comment++) {
        if (comment == line || is_blank(comment[-1])) {
            *comment = '\0';
            break;
        }
    }
    char *separator = line + strcspn(line, "=:");
    if (*separator == '\0') {
        return false;
    }
    *value = trim(separator + 1, separator + 1 + strlen(separator + 1));
    *name  = trim(line, separator);
    return **name != '\0';
}

// Computes the distance row by row: row[j] is the distance of the first i characters of a from the first j of b.
int text_distance(const char *a, const char *b)
{
    size_t a_length = strnlen(a, DISTANCE_MAX_LENGTH);
    size_t b_length = strnlen(b, DISTANCE_MAX_LENGTH);
    int    row[DISTANCE_MAX_LENGTH + 1];
    for (size_t j = 0; j <= b_length; j++) {
        row[j] = (int)j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        int diagonal = row[0];
        row[0]       = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            int best = diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            diagonal = row[j];
            best     = row[j] + 1 < best ? row[j] + 1 : best;
            best     = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j]   = best;
        }
    }
    return row[b_length];
}

// Returns the shortest name that starts with the word, else the name with the fewest edits; NULL if none is close. A
// name is close if at most a third of the word's characters, rounded up, needs an edit, and not all of them.
const char *text_closest(const char *word, const char *const *names)
{
    int         length  = (int)strnlen(word, DISTANCE_MAX_LENGTH);
    int         nearest = (length + 2) / 3 + 1;
    const char *closest = NULL;
    const char *longer  = NULL;    // the shortest name that starts with the word
    for (; *names != NULL; names++) {
        if (length > 2 && strncasecmp(word, *names, (size_t)length) == 0 &&
            (longer == NULL || strlen(*names) < strlen(longer))) {
            longer = *names;
        }
        int distance = text_distance(word, *names);
        if (distance < nearest && distance < length) {
            nearest = distance;
            closest = *names;
        }
    }
    return longer != NULL ? longer : closest;
}

int64_t text_index(const char *word, const char *const *names)
{
    int64_t index = 0;
    while (names[index] != NULL && strcmp(names[index], word) != 0) {
        index++;
    }
    return names[index] != NULL ? index : -1;
}

bool text_has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) {
            return true;
        }
    }
    return false;
}

void text_append(struct text_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t added = (size_t)vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);

    size_t needed = buffer->length + added + 1;
    if (needed > buffer->capacity) {
        buffer->capacity = needed > 2 * buffer->capacity ? needed : 2 * buffer->capacity;
        buffer->text     = memory_resize(buffer->text, buffer->capacity);
    }
    va_start(arguments, format);
    vsnprintf(buffer->text + buffer->length, added + 1, format, arguments);
    va_end(arguments);
    buffer->length += added;
}

void text_free(struct text_buffer *buffer)
{
    free(buffer->text);
    *buffer = (struct text_buffer){0};
}

void text_stream_open(struct text_stream *stream)
{
    *stream      = (struct text_stream){.file = NULL};
    stream->file = open_memstream(&stream->data, &stream->bytes);
    if (stream->file == NULL) {
        FATAL(EXIT_MEMORY, "out of host memory");
    }
}

void text_stream_close(struct text_stream *stream)
{
    if (fclose(stream->file) != 0) {
        FATAL(EXIT_MEMORY, "out of host memory");
    }
    stream->file = NULL;
}

// Returns the bytes of the UTF-8 character at `text`; 0 if it is invalid (overlong, surrogate, beyond U+10FFFF).
static size_t character_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high, bytes;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (text[0] < forms[i].first_low || text[0] > forms[i].first_high) {
            continue;
        }
        for (size_t k = 1; k < forms[i].bytes; k++) {
            unsigned char low  = k == 1 ? forms[i].second_low : 0x80;
            unsigned char high = k == 1 ? forms[i].second_high : 0xbf;
            if (text[k] < low || text[k] > high) {
                return 0;
            }
        }
        return forms[i].bytes;
    }
    return 0;
}

// Returns whether a character is one that terminals or editors obey instead of showing it. These include C1 controls
// U+0080..U+009F; bidirectional controls U+061C, U+200E, U+200F, U+202A..U+202E and U+2066..U+2069; and line separators
// U+2028 and U+2029.
static bool is_control(const unsigned char *text)
{
    if (text[0] == 0xe2 && text[1] == 0x80) {
        return text[2] == 0x8e || text[2] == 0x8f || (text[2] >= 0xa8 && text[2] <= 0xae);
    }
    if (text[0] == 0xe2 && text[1] == 0x81) {
        return text[2] >= 0xa6 && text[2] <= 0xa9;
    }
    return text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0) ||
           (text[0] == 0xd8 && text[1] == 0x9c);
}

void text_printable(char *to, size_t bytes, const char *from)
{
    const unsigned char *source = (const unsigned char *)from;
    size_t               used   = 0;
    while (*source != '\0') {
        size_t length = character_bytes(source);
        bool   keep   = length > 0 && !is_control(source);
        size_t output = keep ? length : 1;
        if (used + output >= bytes) {
            break;
        }
        memcpy(to + used, keep ? (const char *)source : "?", output);
        used += output;
        source += length > 0 ? length : 1;
    }
    to[used] = '\0';
}

void text_print(const char *text, FILE *file)
{
    size_t bytes     = strlen(text) + 1;
    char  *printable = memory_allocate(bytes);
    text_printable(printable, bytes, text);
    fputs(printable, file);
    free(printable);
}

int text_print_wrapped(FILE *file, const char *text, int at, int columns, const char *margin)
{
    int lines = 1;
    for (bool is_first = true; *text != '\0'; is_first = false) {
        int gap = (int)strspn(text, " "), length = (int)strcspn(text + gap, " ");
        int percent = gap + length;
        length += strncmp(text + percent, " %", 2) == 0 ? 2 + (int)strcspn(text + percent + 2, " ") : 0;
        if (!is_first && at + gap + length > columns) {
            at = fprintf(file, "\n%s", margin) - 1;
            text += gap;
            gap = 0;
            lines++;
        }
        at += fprintf(file, "%.*s", gap + length, text);
        text += gap + length;
    }
    fputc('\n', file);
    return lines;
}

void text_print_lines(FILE *file, struct text_stream *text)
{
    text_stream_close(text);
    for (char *line = text->data, *end; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        if (*end == '\n') {
            *end++ = '\0';
        }
        text_print_wrapped(file, line, 0, 80, *line == '#' ? "#   " : "    ");
    }
    free(text->data);
}

void text_print_roff(FILE *file, const char *text, size_t bytes)
{
    static const char *const escapes[UCHAR_MAX + 1] = {
        ['\\'] = "\\e", ['-'] = "\\-", ['\''] = "\\(aq", ['`'] = "\\(ga"};
    for (size_t i = 0; i < bytes; i++) {
        bool        begins_line = i == 0 || text[i - 1] == '\n';
        const char *escape      = escapes[(unsigned char)text[i]];
        fputs(begins_line && (text[i] == '.' || text[i] == '\'') ? "\\&" : "", file);
        if (escape != NULL) {
            fputs(escape, file);
        } else {
            fputc(text[i], file);
        }
    }
}

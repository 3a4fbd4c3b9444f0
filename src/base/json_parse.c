// SPDX-License-Identifier: MIT
// Parses untrusted JSON. Three bytes of text can become 300 bytes of values, so their cost is estimated first.
#include <string.h>

#include "gswbench/json.h"

// Upper bounds of heap bytes per value. An element is a pointer in an array that doubles, with the old array still
// allocated.
enum { OBJECT_BYTES = 240, LIST_BYTES = 136, TEXT_BYTES = 112, NUMBER_BYTES = 32, ELEMENT_BYTES = 24 };

// Memory limit of a document: TIMES_MAX times its text plus MORE_BYTES.
enum { TIMES_MAX = 10, MORE_BYTES = 128 << 20 };

// Index of the closing quote of the string whose opening quote is at `at`.
static size_t skip_text(const char *text, size_t bytes, size_t at)
{
    for (at++; at < bytes && text[at] != '"'; at++) {
        at += text[at] == '\\';
    }
    return at;
}

static size_t count_bytes(const char *text, size_t bytes)
{
    size_t count     = 0;
    bool   is_number = false;
    for (size_t at = 0; at < bytes; at++) {
        char c          = text[at];
        bool was_number = is_number;
        is_number       = c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E' || (c >= '0' && c <= '9');
        if (c == '"') {
            size_t end = skip_text(text, bytes, at);
            count += TEXT_BYTES + end - at;
            at = end;
        } else if (c == '{' || c == '[') {
            count += c == '{' ? OBJECT_BYTES : LIST_BYTES;
        } else if (c == ',') {
            count += ELEMENT_BYTES;
        } else if (is_number && !was_number) {
            count += NUMBER_BYTES;
        }
    }
    return count;
}

json_t *json_parse(const char *text, size_t bytes, json_error_t *error)
{
    if (count_bytes(text, bytes) > TIMES_MAX * bytes + MORE_BYTES) {
        *error = (json_error_t){.line = 1, .column = 0, .position = (int)bytes};
        strcpy(error->text, "it has more values than a file of its size should");
        return NULL;
    }
    return json_loadb(text, bytes, JSON_REJECT_DUPLICATES, error);
}

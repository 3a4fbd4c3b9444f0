// SPDX-License-Identifier: MIT
// Parses and prints numbers with suffixes and units. Integers are exact: no double is involved.
#include "gswbench/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads digits, which may have single underscores between them, and appends them to *value. Returns false if there are
// no digits or the value overflows.
static bool read_digits(const char **text, int64_t *value, int *count)
{
    const char *at = *text;
    for (*count = 0; isdigit((unsigned char)*at); (*count)++) {
        int digit = *at - '0';
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, digit, value)) {
            return false;
        }
        at += at[1] == '_' && isdigit((unsigned char)at[2]) ? 2 : 1;
    }
    *text = at;
    return *count > 0;
}

// Reads a suffix: "k" or "K" is 1,024 as in "a context of 8k", "M" to "T" are powers of 1,000, "Ki" to "Ti" powers of
// 1,024. No suffix is a factor of 1.
static bool read_suffix(const char **text, int64_t *factor)
{
    bool        is_binary = **text != '\0' && (*text)[1] == 'i';
    const char *letters   = is_binary ? "KMGT" : "kMGT";
    *factor               = 1;
    if (**text == '\0') {
        return true;
    }
    if (!is_binary && (**text == 'k' || **text == 'K')) {
        *factor = 1024;
        ++*text;
        return true;
    }
    const char *letter = strchr(letters, **text);
    if (letter == NULL) {
        return false;
    }
    for (const char *at = letters; at <= letter; at++) {
        *factor *= is_binary ? 1024 : 1000;
    }
    *text += is_binary ? 2 : 1;
    return true;
}

bool number_parse_integer(const char *text, int64_t *value)
{
    bool is_negative = *text == '-';
    text += is_negative;

    int64_t number = 0, exponent = 0, factor = 1;
    int     digits, decimals = 0;
    if (!read_digits(&text, &number, &digits)) {
        return false;
    }
    if (*text == '.') {
        text++;
        if (!read_digits(&text, &number, &decimals)) {
            return false;
        }
    }
    if (*text == 'e' || *text == 'E') {
        text += text[1] == '+' ? 2 : 1;
        if (!read_digits(&text, &exponent, &digits) || exponent > 18) {
            return false;
        }
    } else if (!read_suffix(&text, &factor)) {
        return false;
    }
    if (*text != '\0' || __builtin_mul_overflow(number, factor, &number)) {
        return false;
    }
    for (; exponent > decimals; exponent--) {
        if (__builtin_mul_overflow(number, 10, &number)) {
            return false;
        }
    }
    for (; decimals > exponent; decimals--) {
        if (number % 10 != 0) {
            return false;
        }
        number /= 10;
    }
    *value = is_negative ? -number : number;
    return true;
}

// Checks the grammar before it calls strtod, which also accepts hexadecimal, "inf", "nan" and leading space.
bool number_parse_real(const char *text, double *value)
{
    const char *at = text;
    at += *at == '-' || *at == '+';
    size_t digits = strspn(at, "0123456789");
    at += digits;
    if (*at == '.') {
        size_t decimals = strspn(at + 1, "0123456789");
        digits += decimals;
        at += 1 + decimals;
    }
    if (digits > 0 && (*at == 'e' || *at == 'E')) {
        at += at[1] == '-' || at[1] == '+' ? 2 : 1;
        digits = strspn(at, "0123456789");
        at += digits;
    }
    if (digits == 0 || *at != '\0') {
        return false;
    }
    double number = strtod(text, NULL);
    if (!isfinite(number)) {
        return false;
    }
    *value = number;
    return true;
}

bool number_parse_percent(const char *text, double *value)
{
    char   number[128];
    size_t length = strlen(text);
    return length > 0 && text[length - 1] == '%' &&
           snprintf(number, sizeof(number), "%.*s", (int)length - 1, text) < (int)sizeof(number) &&
           number_parse_real(number, value);
}

const char *number_bytes(char *text, size_t size, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t                   unit    = 0;
    // A value that would print as 1024.00 is printed in the next unit.
    while (fabs(bytes) >= (unit == 0 ? 1024 : 1023.995) && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, unit == 0 ? "%.0f %s" : "%.2f %s", bytes, units[unit]);
    return text;
}

const char *number_count(char *text, size_t size, double count)
{
    static const char suffixes[] = " KMBT";
    // Rounds before it selects the unit, so that 999.96 thousand prints as a million.
    char scientific[32];
    snprintf(scientific, sizeof(scientific), "%.3e", count);
    double rounded = strtod(scientific, NULL);

    size_t suffix = 0;
    for (; fabs(rounded) >= 1000 && suffixes[suffix] != '\0'; suffix++) {
        rounded /= 1000;
    }
    if (suffix == 0) {
        snprintf(text, size, "%.4g", rounded);
    } else if (suffixes[suffix] == '\0') {
        snprintf(text, size, "%s", scientific);
    } else {
        int decimals = fabs(rounded) < 9.9995 ? 3 : fabs(rounded) < 99.995 ? 2 : 1;
        snprintf(text, size, "%.*f %c", decimals, rounded, suffixes[suffix]);
    }
    return text;
}

void number_print_real(double value, char *text, size_t bytes)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, bytes, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            return;
        }
    }
}

int number_compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

// SPDX-License-Identifier: MIT
// Parses numbers with suffixes, prints numbers with units, and does small integer arithmetic.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Parses "8192", "8_192", "8k" and "8Ki" (both 8192), "8M" (8e6) or "1e6". Returns false if not integral or on
// overflow.
bool number_parse_integer(const char *text, int64_t *value);

// Parse a text that is a finite decimal number; number_parse_percent requires a percent sign after the number.
bool number_parse_real(const char *text, double *value);
bool number_parse_percent(const char *text, double *value);

// Prints the fewest digits that read back to the same double.
void number_print_real(double value, char *text, size_t bytes);

// Prints bytes with a binary prefix: "1.50 GiB", "512 B".
const char *number_bytes(char *text, size_t size, double bytes);

// Prints up to four significant digits, with K, M, B or T for 10^3 to 10^12, or an exponent from 10^15 on: "70.55 B",
// "1.821e+16".
const char *number_count(char *text, size_t size, double count);

static inline int64_t number_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t number_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Returns the smallest multiple of `multiple` that is not below the number.
static inline int64_t number_round_up(int64_t number, int64_t multiple)
{
    return (number + multiple - 1) / multiple * multiple;
}

// Returns the number of groups of at most `size` elements that `count` elements need.
static inline int64_t number_groups(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

// Compares two int64_t for qsort, ascending.
int number_compare(const void *a, const void *b);

// SPDX-License-Identifier: MIT
// Numbers as people write them: with suffixes when read, with units when printed.
#ifndef GSWBENCH_NUMBER_H
#define GSWBENCH_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// "8192", "8_192", "8k" (8000), "8Ki" (8192), "1e6" (if whole). False when it is no integer or overflows.
bool number_parse_integer(const char *text, int64_t *value);

// A finite decimal number, the whole text.
bool number_parse_real(const char *text, double *value);

// The fewest digits that read back to the same double.
void number_print_real(double value, char *text, size_t bytes);

// "1.50 GiB", "512 B"
const char *number_bytes(char *text, size_t size, double bytes);

// With three or more significant digits and SI prefix: "70.55 B" (count), "1.821e+16" (FLOP).
const char *number_count(char *text, size_t size, double count);

#endif

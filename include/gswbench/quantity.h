// SPDX-License-Identifier: MIT
// A quantity is a number with its origin and its uncertainty.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quantity_origin {
    QUANTITY_GIVEN,       // set by the user, exact
    QUANTITY_SPEC,        // data sheet
    QUANTITY_PRIOR,       // estimate from published measurements of similar systems
    QUANTITY_FIT,         // fitted to published step times
    QUANTITY_MEASURED,    // measured on this machine
    QUANTITY_ORIGINS
};
extern const char *const quantity_origin_names[];

struct quantity {
    double  value;
    double  spread_percent;    // one standard deviation, in percent of the value
    int64_t origin;            // enum quantity_origin
};

// Parses a number with an optional origin and spread: "0.72 prior 5%", "989e12 spec", "0.72". The defaults are "given"
// and 0%.
bool quantity_parse(const char *text, struct quantity *quantity);

// Prints a quantity that quantity_parse reads back to the same bits.
void quantity_print(const struct quantity *quantity, char *text, size_t bytes);

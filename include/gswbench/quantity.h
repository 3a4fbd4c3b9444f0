// SPDX-License-Identifier: MIT
// A number with its origin and its uncertainty.
#ifndef GSWBENCH_QUANTITY_H
#define GSWBENCH_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quantity_origin {
    QUANTITY_GIVEN,       // as somebody wrote it: exact
    QUANTITY_SPEC,        // a data sheet's
    QUANTITY_PRIOR,       // what published measurements of similar systems suggest
    QUANTITY_FIT,         // chosen so that predictions meet published step times
    QUANTITY_MEASURED,    // on this machine
    QUANTITY_ORIGINS
};
extern const char *const quantity_origin_names[];

struct quantity {
    double  value;
    double  spread_percent;    // of the value: one standard deviation
    int64_t origin;            // enum quantity_origin
};

// "0.72 prior 5%", "989e12 spec", "0.72": a number, its origin, its spread. Without an origin it is given; without a
// spread it is exact.
bool quantity_parse(const char *text, struct quantity *quantity);

// As quantity_parse reads it back to the same bits.
void quantity_print(const struct quantity *quantity, char *text, size_t bytes);

#endif

// SPDX-License-Identifier: MIT
// The widest rows that a backend computes, known in every build and without a device.
#ifndef GSWBENCH_BACKEND_WIDTHS_H
#define GSWBENCH_BACKEND_WIDTHS_H

#include <stdbool.h>
#include <stdint.h>

struct backend_widths {
    int64_t head;           // elements of a head in attention; INT64_MAX: any
    int64_t norm;           // elements of a row that is normalised; INT64_MAX: any
    bool    pairs_alike;    // heads of keys and of values are both multiples of 8 wide, or neither
};

// Of the backend of that name; of "auto", and of one that takes everything, no limit.
struct backend_widths backend_widths(const char *name);

#endif

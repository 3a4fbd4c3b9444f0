// SPDX-License-Identifier: MIT
// Row width limits of each backend, available in every build and without a device.
#ifndef GSWBENCH_BACKEND_WIDTHS_H
#define GSWBENCH_BACKEND_WIDTHS_H

#include <stdbool.h>
#include <stdint.h>

struct backend_widths {
    int64_t head;           // maximum head dimension of attention; INT64_MAX: unlimited
    int64_t norm;           // maximum row width of a norm; INT64_MAX: unlimited
    bool    pairs_alike;    // key and value head dimensions must both be multiples of 8, or neither
};

// Limits of the backend with this name. "auto" and backends without limits return INT64_MAX.
struct backend_widths backend_widths(const char *name);

#endif

// SPDX-License-Identifier: MIT
// What a result says of how devices were connected: by which of the library's younger functions, on rank 0.
#ifndef GSWBENCH_RESULT_CONNECTIONS_H
#define GSWBENCH_RESULT_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct result_connections {
    bool    allocates;              // memory that transfers use is the library's
    int64_t windows, registered;    // storages that connections know: alike on all members; each member's own
    int64_t refused;                // storages that the library would not register
    int64_t copying;                // connections whose gathers and all-to-alls copy engines may make
    int64_t putting;                // ... and whose steps round a ring were one-sided puts
    bool    exchanges;              // an all-to-all is one call
    int64_t scalable;               // connections whose members found each other by several ids
    double  library_bytes;          // of the device, by the library's own count; NaN: it does not tell
};

#endif

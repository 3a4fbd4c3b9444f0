// SPDX-License-Identifier: MIT
// Which NCCL features connected the devices, on rank 0.
#ifndef GSWBENCH_RESULT_CONNECTIONS_H
#define GSWBENCH_RESULT_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct result_connections {
    bool    allocates;              // transfer buffers are allocated by NCCL (ncclMemAlloc)
    int64_t windows, registered;    // registered storages: symmetric windows; per-rank buffers
    int64_t refused;                // storages that NCCL would not register
    int64_t copying;                // communicators whose gathers and all-to-alls may use copy engines
    int64_t putting;                // communicators whose ring steps are one-sided puts
    bool    exchanges;              // an all-to-all is one ncclAlltoAll call
    int64_t scalable;               // communicators initialized with several unique ids
    double  library_bytes;          // device memory by NCCL's own count; NaN: not reported
};

#endif

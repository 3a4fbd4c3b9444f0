// SPDX-License-Identifier: MIT
// Loads NCCL and reports its errors.
#include "nccl_library.h"

#include <stdbool.h>

#include "gswbench/fatal.h"
#include "gswbench/library.h"
#include "../nccl_log.h"

status nccl_library_open(struct nccl_library *nccl)
{
    TRY(nccl_log_choose_file());
#define NCCL_SYMBOL(function)         {#function, &nccl->function, false},
#define NCCL_YOUNGER(function, takes) {#function, &nccl->function, true},
    const struct library_symbol symbols[] = {NCCL_FUNCTIONS(NCCL_SYMBOL) NCCL_OPTIONAL(NCCL_YOUNGER)};
#undef NCCL_SYMBOL
#undef NCCL_YOUNGER
    return library_open("libnccl.so.2", symbols, sizeof(symbols) / sizeof(symbols[0]));
}

void nccl_check(const struct nccl_library *nccl, ncclResult_t error, const char *call, const char *file, int line)
{
    if (error != ncclSuccess) {
        fatal_at(file, line, EXIT_LOST, "%s: %s: %s (NCCL_DEBUG=WARN says more)", call, nccl->ncclGetErrorString(error),
                 nccl->ncclGetLastError(NULL));
    }
}

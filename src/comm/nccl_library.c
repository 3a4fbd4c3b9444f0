// SPDX-License-Identifier: MIT
// Opens NCCL, and says what went wrong in its own words.
#include "nccl_library.h"

#include "gswbench/fatal.h"
#include "gswbench/library.h"

status nccl_library_open(struct nccl_library *nccl)
{
#define NCCL_SYMBOL(function) {#function, &nccl->function, false},
    const struct library_symbol symbols[] = {NCCL_FUNCTIONS(NCCL_SYMBOL)};
#undef NCCL_SYMBOL
    return library_open("libnccl.so.2", symbols, sizeof(symbols) / sizeof(symbols[0]));
}

void nccl_check(const struct nccl_library *nccl, ncclResult_t error, const char *call, const char *file, int line)
{
    if (error != ncclSuccess) {
        fatal_at(file, line, EXIT_LOST, "%s: %s: %s (NCCL_DEBUG=WARN says more)", call, nccl->ncclGetErrorString(error),
                 nccl->ncclGetLastError(NULL));
    }
}

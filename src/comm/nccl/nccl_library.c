// SPDX-License-Identifier: MIT
// Loads NCCL and reports its errors.
#include "nccl_library.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gswbench/fatal.h"
#include "gswbench/library.h"

// By default NCCL logs to stdout, which would mix with the program's output. NCCL truncates a log file, so stderr is
// used only if it is a pipe or terminal; otherwise each process gets its own file.
static void move_log(void)
{
    struct stat about;
    bool        is_stream = fstat(STDERR_FILENO, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)) &&
                     access("/dev/stderr", W_OK) == 0;
    if (getenv("NCCL_DEBUG") != NULL) {
        setenv("NCCL_DEBUG_FILE", is_stream ? "/dev/stderr" : "nccl.%h.%p.log", 0);
    }
}

status nccl_library_open(struct nccl_library *nccl)
{
    move_log();
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

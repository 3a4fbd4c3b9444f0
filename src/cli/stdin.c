// SPDX-License-Identifier: MIT
// Copies a configuration from standard input to an unnamed file, since it is read more than once.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gswbench/benchmark.h"
#include "gswbench/output.h"
#include "internal.h"

status cli_read_stdin(const char **path, struct arena *arena)
{
    enum { BYTES_MOST = 1 << 20 };
    char buffer[1 << 14];
    if (comm_launched_ranks() > 1) {
        return fail_as(EXIT_USAGE, "--config -: launched processes do not share standard input: name a file");
    }
    int     file = memfd_create("gswbench-config", MFD_CLOEXEC);
    ssize_t bytes, all = 0;
    while (file >= 0 && all <= BYTES_MOST && (bytes = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) {
        all += bytes;
        if (!output_put(file, buffer, (size_t)bytes)) {
            break;
        }
    }
    if (file < 0 || all > BYTES_MOST || bytes != 0) {
        return fail_as(EXIT_USAGE, "--config -: %s",
                       all > BYTES_MOST ? "standard input is larger than 1 MiB, the limit for a config"
                                        : strerror(errno));
    }
    *path = arena_format(arena, "%s%d", CONFIG_STDIN, file);
    return OK;
}

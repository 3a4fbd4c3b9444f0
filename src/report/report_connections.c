// SPDX-License-Identifier: MIT
// The line that names the NCCL features in use.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/number.h"
#include "internal.h"

static void write_part(FILE *file, const char **separator, const char *text)
{
    fprintf(file, "%s%s", *separator, text);
    *separator = ", ";
}

static void write_count(FILE *file, const char **separator, int64_t count, const char *what)
{
    if (count > 0) {
        fprintf(file, "%s%" PRId64 " %s", *separator, count, what);
        *separator = ", ";
    }
}

// "connections with: memory of NCCL's, 12 symmetric windows, 3 storages registered"
void report_write_connections(const struct result *result, FILE *file)
{
    const struct result_connections *connections = &result->connections;
    const char                      *separator   = "connections with: ";
    if (strcmp(result->communicator, "nccl") != 0) {
        return;
    }
    if (connections->allocates) {
        write_part(file, &separator, "memory of NCCL's");
    }
    write_count(file, &separator, connections->windows, "symmetric windows");
    write_count(file, &separator, connections->registered, "storages registered");
    write_count(file, &separator, connections->refused, "storages that NCCL did not register");
    write_count(file, &separator, connections->copying, "connections with zero CTAs");
    write_count(file, &separator, connections->putting, "of them with rings of one-sided puts");
    if (connections->exchanges) {
        write_part(file, &separator, "ncclAlltoAll");
    }
    write_count(file, &separator, connections->scalable, "connections opened by several ids");
    if (isfinite(connections->library_bytes)) {
        char text[32];
        fprintf(file, "%s%s of the device by NCCL's own count", separator,
                number_bytes(text, sizeof(text), connections->library_bytes));
        separator = ", ";
    }
    fprintf(file, "%s\n", separator[0] == ',' ? "" : "connections with: plain calls alone");
}

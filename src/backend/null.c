// SPDX-License-Identifier: MIT
// The null backend computes nothing. It measures the overhead of the program per op, and tests use it to check the
// order of ops. The host backend also uses the memory functions of this file, which allocate host memory on huge pages.
#define _GNU_SOURCE    // madvise
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gswbench/backend.h"
#include "gswbench/fatal.h"

enum { HUGE_PAGE_BYTES = 2 << 20, SMALL_ALIGNMENT = 256 };

// Allocates host memory. Large allocations start on a huge page, which avoids most TLB misses.
void *backend_memory_allocate(struct backend *backend, int64_t bytes)
{
    (void)backend;
    size_t alignment = bytes < HUGE_PAGE_BYTES ? SMALL_ALIGNMENT : HUGE_PAGE_BYTES;
    size_t rounded   = ((size_t)bytes + alignment - 1) / alignment * alignment;
    void  *data      = aligned_alloc(alignment, rounded > 0 ? rounded : alignment);
    if (data == NULL) {
        FATAL(EXIT_MEMORY, "out of host memory: %" PRId64 " bytes", bytes);
    }
    if (alignment == HUGE_PAGE_BYTES) {
        madvise(data, rounded, MADV_HUGEPAGE);
    }
    memset(data, 0, rounded);
    return data;
}

void backend_memory_release(struct backend *backend, void *data)
{
    (void)backend;
    free(data);
}

int64_t backend_memory_available(struct backend *backend)
{
    (void)backend;
    int64_t kibibytes = INT64_MAX / 1024;
    FILE   *file      = fopen("/proc/meminfo", "re");
    if (file == NULL) {
        return INT64_MAX;
    }
    char line[128];
    while (fgets(line, sizeof(line), file) != NULL && sscanf(line, "MemAvailable: %" SCNd64, &kibibytes) != 1) {
    }
    fclose(file);
    return kibibytes * 1024;
}

void backend_memory_copy(struct backend *backend, void *to, const void *from, int64_t bytes)
{
    (void)backend;
    memcpy(to, from, (size_t)bytes);
}

void backend_memory_digest(struct backend *backend, const struct buffer *buffer, struct digest *digest)
{
    (void)backend;
    digest_take(digest, buffer->format, buffer->data, buffer->elements);
}

static status null_open(struct backend *backend, const struct backend_setup *setup)
{
    (void)backend, (void)setup;
    return OK;
}

static void null_close(struct backend *backend)
{
    (void)backend;
}

static void null_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend, (void)op, (void)buffers;
}

static int64_t null_scratch_bytes(struct backend *backend, const struct op *op)
{
    (void)backend, (void)op;
    return 0;
}

static void null_reserve_scratch(struct backend *backend, int64_t bytes)
{
    (void)backend, (void)bytes;
}

static void null_describe(struct backend *backend, char *text, size_t bytes)
{
    (void)backend;
    snprintf(text, bytes, "null: computes nothing");
}

#define ROW(kind, name) [kind] = null_run,
static op_run *const run[OP_COUNT] = {OP_COMPUTE_KINDS(ROW)};

const struct backend_ops backend_null = {
    .name            = "null",
    .open            = null_open,
    .close           = null_close,
    .run             = run,
    .allocate        = backend_memory_allocate,
    .release         = backend_memory_release,
    .available_bytes = backend_memory_available,
    .upload          = backend_memory_copy,
    .download        = backend_memory_copy,
    .digest          = backend_memory_digest,
    .scratch_bytes   = null_scratch_bytes,
    .reserve_scratch = null_reserve_scratch,
    .describe        = null_describe,
};

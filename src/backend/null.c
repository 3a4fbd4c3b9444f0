// SPDX-License-Identifier: MIT
// null backend: computes nothing. It measures the overhead of the program per op, and tests use it to check op order.
#include <stdio.h>

#include "gswbench/backend_memory.h"

static status null_open(struct backend *backend, const struct backend_setup *setup)
{
    (void)backend;
    (void)setup;
    return OK;
}

static void null_close(struct backend *backend)
{
    (void)backend;
}

static void null_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    (void)op;
    (void)buffers;
}

static int64_t null_scratch_bytes(struct backend *backend, const struct op *op)
{
    (void)backend;
    (void)op;
    return 0;
}

static void null_reserve_scratch(struct backend *backend, int64_t bytes)
{
    (void)backend;
    (void)bytes;
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

// SPDX-License-Identifier: MIT
// The host backend computes on CPU cores and is the numerical reference for other backends. This file opens and
// describes it, and has its table of ops.
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/backend.h"
#include "internal.h"
#include "processor.h"

#define ROW(kind, name) [kind] = &host_##name,
const struct host_op *const host_ops[OP_COUNT] = {OP_COMPUTE_KINDS(ROW)};
#undef ROW

// The instruction sets that the compiler may use in this folder. This is constant data, because it is read before any
// code of this folder runs. The compiler defines macros such as __AVX2__ as 1 for these instruction sets. So TEXT_OF
// returns "1" for such a macro, and the longer name of a macro that is not defined.
#define TEXT(macro)        #macro
#define TEXT_OF(macro)     TEXT(macro)
#define FEATURE(name, ...) | (uint64_t)(sizeof(TEXT_OF(__##name##__)) == sizeof("1")) << PROCESSOR_##name

const struct processor_needs processor_needs = {.mark     = "gswbench processor:",
                                                .features = 0 PROCESSOR_FEATURES(FEATURE)};

static status host_open(struct backend *backend, const struct backend_setup *setup)
{
    struct host *host = memory_allocate(sizeof(*host));
    host->pool        = pool_open(setup->threads);
    host->pairs       = host_pairs_find();
    backend->state    = host;
    // OpenBLAS uses one thread, because the pool already divides every GEMM. Else ranks that are threads of one process
    // would compete for OpenBLAS threads.
    openblas_set_num_threads(1);
    return OK;
}

static void host_close(struct backend *backend)
{
    struct host *host = backend->state;
    pool_close(host->pool);
    host_blas_release(host->blas_bytes);
    backend_memory_release(backend, host->scratch);
    free(host);
}

static void host_reserve_scratch(struct backend *backend, int64_t bytes)
{
    struct host *host = backend->state;
    backend_memory_release(backend, host->scratch);
    host->scratch = backend_memory_allocate(backend, bytes);
    if (host->blas_bytes == 0) {    // first call: the plan's memory is allocated, and so counts against the limit
        host->blas_bytes = host_blas_reserve(pool_threads(host->pool));
    }
}

#define ROW(kind, name) [kind] = host_run,
static op_run *const run[OP_COUNT] = {OP_COMPUTE_KINDS(ROW)};

static void read_processor_name(char *name, size_t bytes)
{
    snprintf(name, bytes, "unknown processor");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL) {
        return;
    }
    char line[256];
    while (fgets(line, sizeof(line), file) != NULL) {
        const char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (value != NULL) {
            snprintf(name, bytes, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
            break;
        }
    }
    fclose(file);
}

static void read_blas_version(char *text, size_t bytes)
{
    char version[32] = "";
    sscanf(openblas_get_config(), "OpenBLAS %31s", version);
    snprintf(text, bytes, "%s", version);
}

static int host_libraries(struct backend *backend, struct backend_library list[BACKEND_LIBRARIES])
{
    (void)backend;
    read_processor_name(list[0].version, sizeof(list[0].version));
    snprintf(list[0].name, sizeof(list[0].name), "processor");
    snprintf(list[1].name, sizeof(list[1].name), "OpenBLAS");
    read_blas_version(list[1].version, sizeof(list[1].version));
    return 2;
}

static void host_describe(struct backend *backend, char *text, size_t bytes)
{
    const struct host *host    = backend->state;
    int                threads = pool_threads(host->pool);
    char               processor[128], blas[32];
    read_processor_name(processor, sizeof(processor));
    read_blas_version(blas, sizeof(blas));
    snprintf(text, bytes, "%s, %d thread%s, OpenBLAS %s%s%s", processor, threads, threads == 1 ? "" : "s", blas,
             host->pairs != NULL ? ", bf16 by " : "", host->pairs != NULL ? host_pairs_name(host->pairs) : "");
}

const struct backend_ops backend_host = {
    .name            = "host",
    .computes        = true,
    .open            = host_open,
    .close           = host_close,
    .run             = run,
    .allocate        = backend_memory_allocate,
    .release         = backend_memory_release,
    .available_bytes = backend_memory_available,
    .upload          = backend_memory_copy,
    .download        = backend_memory_copy,
    .digest          = backend_memory_digest,
    .scratch_bytes   = host_scratch_bytes,
    .reserve_scratch = host_reserve_scratch,
    .libraries       = host_libraries,
    .describe        = host_describe,
};

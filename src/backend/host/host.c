// SPDX-License-Identifier: MIT
// Host backend, the numerical reference on CPU cores: its table of ops, scratch and thread pool.
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/backend_memory.h"
#include "internal.h"

enum { FLOATS_PER_LINE = 16 };

#define ROW(kind, name) [kind] = host_##name,
static op_run *const run[OP_COUNT] = {OP_COMPUTE_KINDS(ROW)};

// clang-format off
static host_floats *const floats[OP_COUNT] = {    // scratch floats per thread; NULL: none
    [OP_EMBEDDING_FORWARD]   = host_embedding_forward_floats,
    [OP_EMBEDDING_BACKWARD]  = host_embedding_backward_floats,
    [OP_NORM_FORWARD]        = host_norm_floats,
    [OP_NORM_BACKWARD]       = host_norm_backward_floats,
    [OP_GEMM]                = host_gemm_floats,
    [OP_ROPE_FORWARD]        = host_rope_floats,
    [OP_ROPE_BACKWARD]       = host_rope_backward_floats,
    [OP_ATTENTION_FORWARD]   = host_attention_floats,
    [OP_ATTENTION_BACKWARD]  = host_attention_backward_floats,
    [OP_LATENT_ROPE_FORWARD]  = host_latent_rope_floats,
    [OP_LATENT_ROPE_BACKWARD] = host_latent_rope_floats,
    [OP_ACTIVATION_FORWARD]  = host_activation_floats,
    [OP_ACTIVATION_BACKWARD] = host_activation_floats,
    [OP_ROUTE_FORWARD]       = host_route_floats,
    [OP_ROUTE_BACKWARD]      = host_route_backward_floats,
    [OP_DISPATCH]            = host_dispatch_floats,
    [OP_COMBINE]             = host_dispatch_floats,
    [OP_COMBINE_BACKWARD]    = host_dispatch_floats,
    [OP_LOGIT_STATISTICS]    = host_cross_entropy_floats,
    [OP_CROSS_ENTROPY]       = host_cross_entropy_floats,
    [OP_SINK_FORWARD]        = host_sink_floats,
    [OP_SINK_BACKWARD]       = host_sink_floats,
    [OP_COLUMN_SUM]          = host_column_sum_floats,
    [OP_CAST]                = host_elements_floats,
    [OP_QUANTIZE]            = host_quantize_floats,
    [OP_MAGNITUDE]           = host_quantize_floats,
    [OP_SQUARE_SUM]          = host_elements_floats,
    [OP_ADAMW]               = host_elements_floats,
};
// clang-format on

static status host_open(struct backend *backend, const struct backend_setup *setup)
{
    struct host *host = memory_allocate(sizeof(*host));
    host->pool        = pool_open(setup->threads);
    host->has_amx     = host_amx_enable();
    backend->state    = host;
    // The pool splits every GEMM, so ranks that are threads of one process do not compete for OpenBLAS threads.
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

static int64_t whole_lines(int64_t count)
{
    return (count + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE * FLOATS_PER_LINE;
}

float *host_scratch(const struct loop *loop, int thread, int64_t floats_per_thread)
{
    return loop->host->scratch + thread * whole_lines(floats_per_thread);
}

static int64_t scratch_floats(const struct host *host, const struct op *op)
{
    int threads = pool_threads(host->pool);
    return floats[op->kind] == NULL ? 0 : whole_lines(floats[op->kind](op, threads)) * threads;
}

// A fused op keeps its output in fp32 after the larger scratch of its two parts.
static int64_t floats_before_output(const struct host *host, const struct op *op)
{
    struct op quantize = op_quantize_of(op);
    int64_t   own = scratch_floats(host, op), others = scratch_floats(host, &quantize);
    return own > others ? own : others;
}

static int64_t host_scratch_bytes(struct backend *backend, const struct op *op)
{
    const struct host *host  = backend->state;
    int64_t            count = op_is_fused(op) ? floats_before_output(host, op) +
                                          op_operand_elements(op, op_fused_output((enum op_kind)op->kind))
                                               : scratch_floats(host, op);
    return count * (int64_t)sizeof(float);
}

static void host_reserve_scratch(struct backend *backend, int64_t bytes)
{
    struct host *host = backend->state;
    backend_memory_release(backend, host->scratch);
    host->scratch = backend_memory_allocate(backend, bytes);
    if (host->blas_bytes == 0) {    // the plan's memory is allocated by now
        host->blas_bytes = host_blas_reserve(pool_threads(host->pool));
    }
}

void host_run_loop(struct backend *backend, const struct op *op, const struct buffer buffers[], pool_body *body,
                   int64_t count)
{
    const struct host *host = backend->state;
    struct loop        loop = {.op = op, .buffers = buffers, .host = host};
    pool_run(host->pool, body, &loop, count);
}

void host_run_fused(struct backend *backend, const struct op *op, const struct buffer buffers[], pool_body *body)
{
    const struct host *host = backend->state;
    if (!op_is_fused(op)) {
        host_run_loop(backend, op, buffers, body, op->shape.rows.rows);
        return;
    }
    struct buffer  bound[OP_OPERANDS], copies[OP_OPERANDS] = {{.data = NULL}};
    struct op      quantize = op_quantize_of(op);
    int            slot     = op_fused_output((enum op_kind)op->kind);
    struct buffer *output   = &bound[slot];
    memcpy(bound, buffers, sizeof(bound));
    if (output->data == NULL) {    // in the format of the first operand
        void *space = host->scratch + floats_before_output(host, op);
        *output     = (struct buffer){space, op_operand_elements(op, slot), buffers[0].format};
    }
    host_run_loop(backend, op, bound, body, op->shape.rows.rows);
    memcpy(copies, bound + OP_FUSED, sizeof(*bound) * (OP_OPERANDS - OP_FUSED));
    copies[QUANTIZE_IN] = *output;
    host_quantize(backend, &quantize, copies);
}

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
    snprintf(text, bytes, "%s, %d thread%s, OpenBLAS %s%s", processor, threads, threads == 1 ? "" : "s", blas,
             host->has_amx ? ", bf16 by AMX" : "");
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

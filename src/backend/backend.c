// SPDX-License-Identifier: MIT
// Opens a backend by name, counts its allocations, and checks whether a backend supports an op. The check needs neither
// a device nor a build with the backend, so a job can be checked on any machine.
#include "gswbench/backend.h"

#include <stdio.h>
#include <string.h>

#include "gswbench/gemm.h"
#include "gswbench/text.h"
#include "kernels/attention.h"
#include "kernels/mamba.h"
#include "kernels/norm.h"

#ifdef GSWBENCH_CUDA
#define IS_CUDA_BUILT 1
#else
#define IS_CUDA_BUILT 0
#endif
#define BACKENDS(ROW) ROW(cuda, IS_CUDA_BUILT) ROW(host, 1) ROW(null, 1)

#define NAME(name, is_built)      #name,
#define LISTED(name, is_built)    LISTED_IF(name, is_built)
#define LISTED_IF(name, is_built) LISTED_##is_built(name)
#define LISTED_0(name)
#define LISTED_1(name) &backend_##name,

const struct backend_ops *const backend_list[]  = {BACKENDS(LISTED) NULL};
const char *const               backend_names[] = {"auto", BACKENDS(NAME) NULL};

// Returns the error for an unknown backend name, which lists the backends of this build. If the name is a backend that
// this build lacks, the text refers to the build documentation.
static status unknown_name(const char *name)
{
    enum { NAMES_MAX = 8 };
    const char        *names[NAMES_MAX] = {"auto"};
    struct text_buffer list             = {0};
    text_append(&list, "auto");
    for (int i = 0; backend_list[i] != NULL; i++) {
        names[i + 1] = backend_list[i]->name;
        text_append(&list, ", %s", backend_list[i]->name);
    }
    char printable[64];
    text_printable(printable, sizeof(printable), name);
    bool        is_left_out = text_index(name, backend_names) >= 0;
    const char *closest     = is_left_out ? NULL : text_closest(name, names);
    status      error =
        fail("[run] backend = %s: no such backend in this build (%s)%s%s%s%s", printable, list.text,
             closest != NULL ? "; did you mean " : "", closest != NULL ? closest : "", closest != NULL ? "?" : "",
             is_left_out ? "; docs/building.md says what a build with it needs" : "");
    text_free(&list);
    return error;
}

// Fails with the reason if the backend cannot be used on this machine for this job.
static status check_use(const struct backend_ops *ops, const struct backend_setup *setup)
{
    if (backend_lacks_fp32(ops->name) && setup->is_fp32) {
        return fail("it does not support fp32 attention");
    }
    return ops->detect != NULL ? ops->detect() : OK;
}

static status open_one(struct backend *backend, const struct backend_ops *ops, const struct backend_setup *setup)
{
    status opened = check_use(ops, setup);
    if (failed(&opened)) {
        return fail_as(EXIT_LAUNCH, "[run] backend = %s: %.900s; backend = host needs no device", ops->name,
                       opened.text);
    }
    backend->ops = ops;
    opened       = ops->open(backend, setup);
    if (failed(&opened)) {
        *backend = (struct backend){.ops = NULL};
        return opened;
    }
    backend->sm_margin = setup->sm_margin;
    return OK;
}

// Opens the first usable backend of the list ("auto"). If a device is present but fails to open, that is an error, and
// the next backend is not tried.
static status open_best(struct backend *backend, const struct backend_setup *setup)
{
    int best = 0;
    for (; backend_list[best]->detect != NULL; best++) {
        status usable = check_use(backend_list[best], setup);
        if (!failed(&usable)) {
            break;
        }
        snprintf(backend->choice, sizeof(backend->choice), "not %s: %.180s", backend_list[best]->name, usable.text);
    }
    return open_one(backend, backend_list[best], setup);
}

status backend_open(struct backend *backend, const char *name, const struct backend_setup *setup)
{
    *backend = (struct backend){.ops = NULL};
    if (strcmp(name, "auto") == 0) {
        return open_best(backend, setup);
    }
    for (int i = 0; backend_list[i] != NULL; i++) {
        if (strcmp(name, backend_list[i]->name) == 0) {
            return open_one(backend, backend_list[i], setup);
        }
    }
    return unknown_name(name);
}

void backend_locate(const char *name, const struct backend_setup *setup, char *text, size_t bytes)
{
    bool is_auto = strcmp(name, "auto") == 0;
    snprintf(text, bytes, "%s", "");
    for (int i = 0; backend_list[i] != NULL; i++) {
        const struct backend_ops *ops = backend_list[i];
        if (!is_auto && strcmp(name, ops->name) != 0) {
            continue;
        }
        status usable = check_use(ops, setup);
        if (!failed(&usable) && ops->locate != NULL) {
            ops->locate(setup, text, bytes);
        }
        if (!failed(&usable) || !is_auto) {
            return;
        }
    }
}

void backend_close(struct backend *backend)
{
    backend->ops->close(backend);
    *backend = (struct backend){0};
}

void *backend_allocate(struct backend *backend, int64_t bytes)
{
    backend->allocations++;
    backend->allocated_bytes += bytes;
    return backend->ops->allocate(backend, bytes);
}

void backend_release(struct backend *backend, void *data, int64_t bytes)
{
    backend->allocated_bytes -= bytes;
    backend->ops->release(backend, data);
}

void backend_adopt(struct backend *backend, void *data, int64_t bytes)
{
    backend->allocations++;
    backend->allocated_bytes += bytes;
    backend->ops->clear(backend, data, bytes);
}

void backend_disown(struct backend *backend, int64_t bytes)
{
    backend->allocated_bytes -= bytes;
}

void backend_reserve_scratch(struct backend *backend, int64_t bytes)
{
    if (bytes <= backend->scratch_bytes) {
        return;
    }
    backend->allocations++;
    backend->allocated_bytes += bytes - backend->scratch_bytes;
    backend->scratch_bytes = bytes;
    backend->ops->reserve_scratch(backend, bytes);
}

status backend_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                       const struct prepared **prepared)
{
    *prepared = NULL;
    return backend->ops->prepare != NULL ? backend->ops->prepare(backend, op, buffers, prepared) : OK;
}

static status check_gemm(const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct gemm_key key    = {.shape     = op->shape.gemm,
                              .a         = buffers[GEMM_A].format,
                              .b         = buffers[GEMM_B].format,
                              .c         = buffers[GEMM_C].format,
                              .sums_fast = op->sums_fast};
    status          result = gemm_check(&key);
    return failed(&result) ? fail("[run] backend = cuda: %.300s: %.600s", op->tag.role, result.text) : OK;
}

static bool is_cuda(const char *name)
{
    return strcmp(name, "cuda") == 0;
}

bool backend_lacks_fp32(const char *name)
{
    return is_cuda(name);
}

// cuDNN has the same maximum head dimension, ATTENTION_HEAD_MAX (https://docs.nvidia.com/cudnn/operations/Attention).
// Its frontend refuses head dimensions that are not multiples of 8 (https://github.com/NVIDIA/cudnn-frontend).
struct backend_widths backend_widths(const char *name)
{
    return is_cuda(name)
               ? (struct backend_widths){ATTENTION_HEAD_MAX, NORM_COLUMNS_MAX, SCAN_HEAD_MAX, SCAN_STATE_MAX, true}
               : (struct backend_widths){INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, false};
}

status backend_check_op(const char *name, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    bool is_attention = op->kind == OP_ATTENTION_FORWARD || op->kind == OP_ATTENTION_BACKWARD;
    if (is_cuda(name) && is_attention && buffers[ATTENTION_QUERY].format != FORMAT_BF16) {
        return fail("[run] backend = cuda supports attention in bf16 only, not in %s",
                    format_name(buffers[ATTENTION_QUERY].format));
    }
    return is_cuda(name) && op->kind == OP_GEMM ? check_gemm(op, buffers) : OK;
}

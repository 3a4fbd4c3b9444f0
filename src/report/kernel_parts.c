// SPDX-License-Identifier: MIT
// Assigns kernels of a trace to parts by their name, and ops of a plan by their kind, and sums both by part.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/kernel_trace.h"
#include "gswbench/waterfall.h"

const char *const kernel_part_names[] = {
    [KERNEL_ATTENTION]  = "attention",
    [KERNEL_GEMM]       = "gemm",
    [KERNEL_MEMORY]     = "memory",
    [KERNEL_CAST]       = "cast",
    [KERNEL_OPTIMIZER]  = "optimizer",
    [KERNEL_OTHER]      = "other",
    [KERNEL_EXCHANGE]   = "exchange",
    [KERNEL_COLLECTIVE] = "collective",
    [KERNEL_PARTS]      = NULL,
};

enum { PATTERNS_MAX = 30 };

// The first pattern that the name contains decides, in small letters. A fused kernel, such as a norm with a cast,
// counts for the work that the cast was fused into.
static const struct {
    enum kernel_part  part;
    const char *const patterns[PATTERNS_MAX];    // ends with NULL
} rows[] = {
    // DeepEP, HybridEP, and all-to-alls of NCCL
    {KERNEL_EXCHANGE, {"::ep::", "deep_ep", "hybrid_ep", "alltoall", "all_to_all"}},
    {KERNEL_COLLECTIVE, {"nccl", "rccl", "nvshmem", "allreduce", "all_reduce", "reduce_scatter", "all_gather"}},
    {KERNEL_ATTENTION, {"flash", "fmha", "sdpa", "attention", "attn"}},
    {KERNEL_OPTIMIZER, {"adam", "multi_tensor", "multitensor", "foreach"}},
    {KERNEL_CAST, {"::transpose<"}},
    {KERNEL_GEMM, {"gemm", "nvjet", "cutlass", "matmul", "cublas", "cijk"}},
    {KERNEL_MEMORY, {"swiglu", "norm"}},
    {KERNEL_CAST, {"cast", "quantize", "to_fp8", "amax", "hadamard", "transpose"}},
    {KERNEL_MEMORY, {"elementwise", "reduce",        "memcpy",  "memset",    "copy",    "rotary", "rope",
                     "softmax",     "cross_entropy", "topk",    "scatter",   "gather",  "index",  "permute",
                     "expand",      "embedding",     "dropout", "sort",      "scan",    "fill",   "distribution",
                     "mapping",     "count",         "indices", "gammabeta", "moments", "triton"}},
};

enum kernel_part kernel_part_of_name(const char *name)
{
    char   small[512];
    size_t length = 0;
    for (; name[length] != '\0' && length + 1 < sizeof(small); length++) {
        small[length] = (char)tolower((unsigned char)name[length]);
    }
    small[length] = '\0';
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int j = 0; rows[i].patterns[j] != NULL; j++) {
            if (strstr(small, rows[i].patterns[j]) != NULL) {
                return rows[i].part;
            }
        }
    }
    return KERNEL_OTHER;
}

// A trace does not tell a repeated forward pass from the first.
enum kernel_part kernel_part_of_op(const struct plan *plan, const struct op *op)
{
    static const enum kernel_part parts[WATERFALL_PARTS] = {
        [WATERFALL_GEMM] = KERNEL_GEMM, [WATERFALL_ATTENTION] = KERNEL_ATTENTION, [WATERFALL_MEMORY] = KERNEL_MEMORY,
        [WATERFALL_CAST] = KERNEL_CAST, [WATERFALL_OPTIMIZER] = KERNEL_OPTIMIZER,
    };
    struct op once = *op;
    if (op->tag.phase == PHASE_RECOMPUTE) {
        once.tag.phase = PHASE_FORWARD;
    }
    enum waterfall_part part = waterfall_part_of(plan, &once);
    if (op_is_communication((enum op_kind)op->kind)) {
        return op->stream == STREAM_EXPERT ? KERNEL_EXCHANGE : KERNEL_COLLECTIVE;
    }
    return part == WATERFALL_UNEXPLAINED ? KERNEL_OTHER : parts[part];
}

void kernel_trace_add(struct kernel_trace *trace, const struct kernel *kernel)
{
    if (trace->count == trace->capacity) {
        trace->capacity = trace->capacity == 0 ? 1024 : 2 * trace->capacity;
        trace->kernels  = memory_resize(trace->kernels, (size_t)trace->capacity * sizeof(*trace->kernels));
    }
    trace->kernels[trace->count++] = *kernel;
}

void kernel_trace_free(struct kernel_trace *trace)
{
    free(trace->kernels);
}

// A kernel starts or ends.
struct change {
    double  time;
    int32_t part, by;    // by: 1 or -1
};

static int compare(const void *a, const void *b)
{
    double first = ((const struct change *)a)->time, second = ((const struct change *)b)->time;
    return (first > second) - (first < second);
}

// Adds a stretch in which these kernels run.
static void share(struct kernel_sums *sums, const int64_t running[KERNEL_PARTS], double seconds)
{
    int64_t compute = 0, communication = 0;
    for (int part = 0; part < KERNEL_PARTS; part++) {
        *(part < KERNEL_EXCHANGE ? &compute : &communication) += running[part];
    }
    int     first = compute > 0 ? 0 : KERNEL_EXCHANGE, end = compute > 0 ? KERNEL_EXCHANGE : KERNEL_PARTS;
    int64_t all = compute > 0 ? compute : communication;
    for (int part = first; part < end && all > 0; part++) {
        sums->shown[part] += seconds * (double)running[part] / (double)all;
    }
    sums->idle += all == 0 ? seconds : 0.0;
}

static void sum_line(struct kernel_sums *sums, const struct kernel_trace *trace)
{
    int64_t        count = 2 * trace->count, running[KERNEL_PARTS] = {0};
    struct change *changes = memory_allocate((size_t)count * sizeof(*changes));
    for (int64_t i = 0; i < trace->count; i++) {
        const struct kernel *kernel = &trace->kernels[i];
        changes[2 * i]              = (struct change){kernel->begin, (int32_t)kernel->part, 1};
        changes[2 * i + 1]          = (struct change){kernel->end, (int32_t)kernel->part, -1};
    }
    qsort(changes, (size_t)count, sizeof(*changes), compare);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) {
            share(sums, running, (changes[i].time - changes[i - 1].time) / 1e6);
        }
        running[changes[i].part] += changes[i].by;
    }
    sums->span = count > 0 ? (changes[count - 1].time - changes[0].time) / 1e6 : 0.0;
    free(changes);
}

void kernel_trace_sum(struct kernel_sums *sums, const struct kernel_trace *trace)
{
    *sums = (struct kernel_sums){.idle = 0.0};
    for (int64_t i = 0; i < trace->count; i++) {
        const struct kernel *kernel = &trace->kernels[i];
        sums->count[kernel->part]++;
        sums->busy[kernel->part] += (kernel->end - kernel->begin) / 1e6;
    }
    if (trace->has_begin) {
        sum_line(sums, trace);
        return;
    }
    sums->idle = sums->span = NAN;
    for (int part = 0; part < KERNEL_PARTS; part++) {
        sums->shown[part] = NAN;
    }
}

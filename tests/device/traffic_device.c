// SPDX-License-Identifier: MIT
// Counts the memory traffic of kernels on the emulated GPU and compares it with the minimum, the sizes of their
// operands. Writes the tables of docs/performance.md. They also have registers from kernel_resources.txt, and the times
// that follow from the traffic, at the expected bandwidth and at the peak.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "device.h"
#include "gswbench/format.h"
#include "kernels/attention.h"
#include "op_compare.h"
#include "op_operands.h"

#ifdef GSWBENCH_EMULATED

// An SM has these registers, threads and bytes of shared memory. Each block uses RESERVED bytes more than it asks for.
enum { REGISTERS = 65536, THREADS = 2048, SHARED = 228 << 10, RESERVED = 1 << 10 };
enum { ROWS = 128, TOKENS = 8192, WARP = 32, WEIGHTS = 1 << 20 };

// Bandwidth in bytes/s: 3.8 of the H200's 4.8 TB/s, and the same share of the H100's 3.35 TB/s. Both GPUs have this
// BF16 peak. Their shared memory delivers 128 bytes per cycle on each of 132 SMs, at 1.83 GHz, the clock of that peak.
static const double h200_rate = 3.8e12, h100_rate = 3.35e12 * 3.8 / 4.8;
static const double peak_bf16 = 989e12, shared_rate = 132 * 128 * 1.83e9;

struct row {
    struct op_case test;
    // Name in kernel_resources.txt; if the op has several kernels, the one that writes the result.
    const char *kernel;
    int         threads;         // threads of a block
    int64_t     elements;        // elements that the traffic in bytes per element is relative to
    int64_t     small, large;    // elements of this op in a layer of Llama 3.1 8B and of 70B
};

// clang-format off
#define LARGE_ROWS(columns_, variant_) .shape.rows = {.rows = ROWS, .columns = columns_, .epsilon = 1e-5f, .variant = variant_}
#define HEADS(heads_, kv_heads_) .shape.attention = {.batch = 1, .sequence = ROWS, .heads = heads_, .kv_heads = kv_heads_, \
                                                     .head_dim = 128, .rotary = 128, .scale = 0.1f, .causal = true}
#define MATRIX(columns_) .shape.quantize = {.rows = ROWS, .columns = columns_}
#define LOGITS(rows_, columns_) .shape.rows = {.rows = rows_, .columns = columns_, .valid_columns = columns_, .total = columns_, \
                                               .parts = 1, .scale = 1.0f, .multiplier = 1.0f}
#define ELEMENTS(count) .shape.elements = {.elements = count}
#define TILES "quantize_kernel<unsigned short, "
static const struct row rows[] = {
    {{"norm, residual sum", "bbb-bbf", {.kind = OP_NORM_FORWARD, LARGE_ROWS(4096, NORM_RMS)}},
     "norm forward_kernel<unsigned short, true>", 128, ROWS * 4096, TOKENS * 4096, TOKENS * 8192},
    {{"norm into FP8, delayed", "bbb-b-f-44--ff", {.kind = OP_NORM_FORWARD, LARGE_ROWS(4096, NORM_RMS)}},
     "norm " TILES "normalised_source, (format)3, (scaling)0, true>", 256, ROWS * 4096, TOKENS * 4096, TOKENS * 8192},
    {{"norm into FP8, current", "bbb-b-f-44f", {.kind = OP_NORM_FORWARD, LARGE_ROWS(4096, NORM_RMS)}},
     "norm " TILES "normalised_source, (format)3, (scaling)0, true>", 256, ROWS * 4096, TOKENS * 4096, TOKENS * 8192},
    {{"norm gradient", "bbbfbbf", {.kind = OP_NORM_BACKWARD, LARGE_ROWS(4096, NORM_RMS)}},
     "norm_backward plain_kernel", 128, ROWS * 4096, TOKENS * 4096, TOKENS * 8192},
    {{"rope", "fbbb", {.kind = OP_ROPE_FORWARD, HEADS(32, 8)}},
     "rope rope_kernel<unsigned short, true, false>", 192, ROWS * 6144, TOKENS * 6144, TOKENS * 10240},
    {{"rope gradient", "fbbb", {.kind = OP_ROPE_BACKWARD, HEADS(32, 8)}},
     "rope rope_kernel<unsigned short, true, true>", 192, ROWS * 6144, TOKENS * 6144, TOKENS * 10240},
    {{"swiglu", "bb", {.kind = OP_ACTIVATION_FORWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation forward_kernel<unsigned short, true, (activation_function)0>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu into FP8, delayed", "b-------44--ff", {.kind = OP_ACTIVATION_FORWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation " TILES "activated_source<(activation_function)0>, (format)3, (scaling)0, true>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu into FP8, current", "b-------44f", {.kind = OP_ACTIVATION_FORWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation " TILES "activated_source<(activation_function)0>, (format)3, (scaling)0, true>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu gradient", "bbb", {.kind = OP_ACTIVATION_BACKWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation backward_kernel<unsigned short, true, (activation_function)0>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu gradient into FP8, delayed", "bb------55--ff", {.kind = OP_ACTIVATION_BACKWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation " TILES "paired_source<(activation_function)0>, (format)4, (scaling)0, true>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu gradient into FP8, current", "bb------55f", {.kind = OP_ACTIVATION_BACKWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation " TILES "paired_source<(activation_function)0>, (format)4, (scaling)0, true>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"quantize, delayed", "b44f-ff", {.kind = OP_QUANTIZE, MATRIX(4096)}},
     "quantize " TILES "stored_source<unsigned short>, (format)3, (scaling)0, true>", 256, ROWS * 4096, TOKENS * 4096, TOKENS * 8192},
    {{"quantize, current", "b44f", {.kind = OP_QUANTIZE, MATRIX(4096)}},
     "quantize " TILES "stored_source<unsigned short>, (format)3, (scaling)0, true>", 256, ROWS * 4096, TOKENS * 4096, TOKENS * 8192},
    {{"transpose in FP8", "44", {.kind = OP_TRANSPOSE, LARGE_ROWS(4096, 0)}},
     "transpose transpose_kernel<true>", 256, ROWS * 4096, TOKENS * 4096, TOKENS * 8192},
    {{"cross entropy", "bif", {.kind = OP_CROSS_ENTROPY, LOGITS(12, 128256)}},
     "cross_entropy entropy_kernel<unsigned short, true>", 1024, 12 * 128256, TOKENS * INT64_C(128256), TOKENS * INT64_C(128256)},
    {{"cast to bf16", "fb", {.kind = OP_CAST, ELEMENTS(WEIGHTS)}},
     "elements cast_kernel<float, unsigned short, true>", 256, WEIGHTS, INT64_C(218103808), INT64_C(855638016)},
    {{"square sum", "ff", {.kind = OP_SQUARE_SUM, ELEMENTS(WEIGHTS)}},
     "elements square_kernel<float, true>", 256, WEIGHTS, INT64_C(218103808), INT64_C(855638016)},
    {{"adamw", "ffffffb", {.kind = OP_ADAMW, ELEMENTS(WEIGHTS)}},
     "adamw adamw_kernel<float, float, unsigned short, true>", 256, WEIGHTS, INT64_C(218103808), INT64_C(855638016)},
};
// clang-format on

// Attention runs with one KV head and its query heads at two sequence lengths. All counts have a term linear in the
// length and a quadratic term, so the two counts give the count at any length.
enum { SHORT = 128, LONG = 256 };
struct attention_row {
    struct op_case test;
    const char    *kernel;    // if the op has several kernels, the one that does most of its arithmetic
    int            threads;
    int64_t        groups;    // KV heads of a layer
};

// clang-format off
#define FORWARD(name, heads) {name, "bbbf", {.kind = OP_ATTENTION_FORWARD, HEADS(heads, 1)}}, "attention forward_kernel<128, false, false>", 128
#define BACKWARD(name, heads) {name, "bbbbfbb", {.kind = OP_ATTENTION_BACKWARD, HEADS(heads, 1)}}, "attention_backward key_kernel<128, false, false>", 256
static const struct attention_row attention_rows[] = {
    {FORWARD("8B attention", 4), 8},
    {BACKWARD("8B attention gradient", 4), 8},
    {FORWARD("70B attention", 8), 8},
    {BACKWARD("70B attention gradient", 8), 8},
};
// clang-format on

// Returns the bytes that an op must move at least: each operand once, or twice if it is read and written.
static int64_t demanded_bytes(const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    int64_t bytes = 0;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            bytes += (op->access[slot] == ACCESS_UPDATE ? 2 : 1) *
                     format_bytes(buffers[slot].format, buffers[slot].elements);
        }
    }
    return bytes;
}

struct counts {
    double demanded, moved, fed, operations;
};
enum { COUNTS = sizeof(struct counts) / sizeof(double) };

static struct counts count(struct backend *device, struct backend *host, const struct op_case *test)
{
    struct op     op = complete_op(test);
    struct buffer buffers[OP_OPERANDS];
    make_operands(host, test, &op, 1, buffers);
    emulator_count();
    run_on_device(device, &op, 0, buffers);
    struct emulator_traffic traffic  = emulator_count();
    double                  demanded = (double)demanded_bytes(&op, buffers);
    free_buffers(buffers);
    return (struct counts){demanded, (double)(traffic.read_bytes + traffic.written_bytes), (double)traffic.fed_bytes,
                           (double)traffic.operations};
}

// Extrapolates the counts of two lengths to TOKENS. A count is a x length + b x length^2.
static struct counts extend(const struct counts *at_short, const struct counts *at_long)
{
    struct counts at_all;
    for (int i = 0; i < COUNTS; i++) {
        double of_short = ((const double *)at_short)[i] / SHORT, of_long = ((const double *)at_long)[i] / LONG;
        double slope           = (of_long - of_short) / (LONG - SHORT);
        ((double *)&at_all)[i] = TOKENS * (of_short + slope * (TOKENS - SHORT));
    }
    return at_all;
}

// Returns the registers per thread of a kernel in kernel_resources.txt, or ends the program if it is missing.
static int registers_of(const char *kernel)
{
    char  line[512], last[128];
    FILE *file = fopen(GSWBENCH_SOURCE_DIR "/tests/device/kernel_resources.txt", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *rest = strstr(line, " | "), *found = NULL;
        if (rest != NULL && strncmp(kernel, line, (size_t)(rest - line)) == 0) {
            const char *argument = kernel + (rest - line);
            argument += *argument == ' ';
            int length = (int)strlen(argument);
            snprintf(last, sizeof(last), "| %.*s%s", length > 0 ? length - 1 : 0, argument, length > 0 ? " " : "");
            found = strstr(rest, last);
        }
        if (found != NULL) {
            fclose(file);
            return atoi(found + strlen(last));
        }
    }
    printf("FAIL kernel_resources.txt has no %s\n", kernel);
    exit(1);
}

// Returns how many threads fit on an SM. Registers limit them, which are allocated in units of 256 per warp, and the
// shared memory of a block does.
static int resident_threads(int registers, int threads, int shared_bytes)
{
    int of_warp = (registers * WARP + 255) / 256 * 256, warps = REGISTERS / of_warp;
    int blocks = warps * WARP / threads, maximum = THREADS / threads, held = SHARED / (shared_bytes + RESERVED);
    maximum = held < maximum ? held : maximum;
    return (blocks < maximum ? blocks : maximum) * threads;
}

static void describe(FILE *file, struct backend *device, struct backend *host, const struct row *row)
{
    int           registers = registers_of(row->kernel);
    struct counts counts    = count(device, host, &row->test);
    double        moved     = counts.moved / (double)row->elements;
    fprintf(file, "| %s | %.1f | %.1f | %d | %d | %.3f | %.3f | %.3f | %.3f |\n", row->test.name,
            counts.demanded / (double)row->elements, moved, registers, resident_threads(registers, row->threads, 0),
            1e3 * moved * (double)row->small / h200_rate, 1e3 * moved * (double)row->small / h100_rate,
            1e3 * moved * (double)row->large / h200_rate, 1e3 * moved * (double)row->large / h100_rate);
}

static void list_memory_bound(FILE *file, struct backend *device, struct backend *host)
{
    fprintf(file, "| op (delayed, current: FP8 scaling) | minimum memory traffic, bytes/element | traffic counted "
                  "on an emulated GPU, bytes/element | registers/thread | threads per SM | time for a layer of Llama "
                  "3.1 8B on H200, ms | 8B on H100, ms | 70B on H200, ms | 70B on H100, ms |\n"
                  "|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        describe(file, device, host, &rows[i]);
    }
}

static void describe_attention(FILE *file, struct backend *device, struct backend *host,
                               const struct attention_row *row)
{
    struct op_case at_short = row->test, at_long = row->test, whole = row->test;
    at_short.op.shape.attention.sequence = SHORT;
    at_long.op.shape.attention.sequence  = LONG;
    whole.op.shape.attention.sequence    = TOKENS;
    struct counts one = count(device, host, &at_short), other = count(device, host, &at_long);
    struct counts all       = extend(&one, &other);
    double        groups    = (double)row->groups;
    int           registers = registers_of(row->kernel);
    int           shared    = kernel_attention_shared_bytes(128, 128, row->test.op.kind == OP_ATTENTION_BACKWARD);
    fprintf(file, "| %s | %.2f | %.2f | %.0f | %.0f | %d | %d | %.2f | %.2f | %.2f | %.2f |\n", row->test.name,
            1e-12 * groups * op_flops(&whole.op), 1e-12 * groups * all.operations, 1e-6 * groups * all.demanded,
            1e-6 * groups * all.moved, registers, resident_threads(registers, row->threads, shared),
            1e3 * groups * all.operations / peak_bf16, 1e3 * groups * all.fed / shared_rate,
            1e3 * groups * all.demanded / h200_rate, 1e3 * groups * all.demanded / h100_rate);
}

static void list_attention(FILE *file, struct backend *device, struct backend *host)
{
    fprintf(file, "| op of a layer of Llama 3.1 8B or 70B | minimum, TFLOP | executed, TFLOP | minimum, MB | "
                  "requested from L2, MB | registers/thread | threads per SM | executed FLOPs at the peak, ms | "
                  "time for operands from shared memory, ms | time for the minimum bytes on H200, ms | on H100, ms |\n"
                  "|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(attention_rows) / sizeof(attention_rows[0]); i++) {
        describe_attention(file, device, host, &attention_rows[i]);
    }
}

// Returns whether the page contains the table as it is generated now.
static bool compare(const char     *page, void (*list)(FILE *file, struct backend *device, struct backend *host),
                    struct backend *device, struct backend *host)
{
    static char expected[1 << 14];
    FILE       *table = fmemopen(expected, sizeof(expected), "w");
    list(table, device, host);
    fclose(table);
    bool is_there = strstr(page, expected) != NULL;
    printf("%s%s\n", expected, is_there ? "" : "FAIL docs/performance.md has another table\n");
    return is_there;
}

// Prints the tables and compares them with docs/performance.md. To update the page, paste this output.
int main(void)
{
    static char    page[1 << 16];
    struct backend host, device;
    device_require();
    device_check(backend_open(&host, "host", &device_setup));
    device_check(backend_open(&device, "cuda", &device_setup));
    FILE *file = fopen(GSWBENCH_SOURCE_DIR "/docs/performance.md", "r");
    if (file == NULL) {
        printf("FAIL docs/performance.md cannot be read\n");
        return 1;
    }
    page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
    fclose(file);
    device_order(0);
    bool is_current = compare(page, list_memory_bound, &device, &host);
    is_current      = compare(page, list_attention, &device, &host) && is_current;
    backend_close(&device);
    backend_close(&host);
    return is_current ? 0 : 1;
}

#else

int main(void)
{
    printf("skipped: a real device counts nothing\n");
    return DEVICE_SKIPPED;
}

#endif

// SPDX-License-Identifier: MIT
// What kernels move through memory, counted on the emulated device, beside what their operands demand: the table in
// docs/performance.md, with registers from kernel_resources.txt and the time that follows at the bandwidth aimed at.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "device.h"
#include "gswbench/format.h"
#include "gswbench/model.h"
#include "op_on_device.h"
#include "op_operands.h"

#ifdef GSWBENCH_EMULATED

struct emulator_traffic {
    int64_t read_bytes, written_bytes;
};
struct emulator_traffic emulator_count(void);

enum { ROWS = 128, TOKENS = 8192, WARP = 32, REGISTERS = 65536, THREADS = 2048 };

// Bytes a second: 3.8 of the H200's 4.8 TB/s, and the same share of the H100's 3.35.
static const double h200_rate = 3.8e12, h100_rate = 3.35e12 * 3.8 / 4.8;

#define LARGE_ROWS(columns_, variant_)                                                                                 \
    .shape.rows = {.rows = ROWS, .columns = columns_, .epsilon = 1e-5f, .variant = variant_}
#define HEADS(heads_, kv_heads_)                                                                                       \
    .shape.attention = {                                                                                               \
        .batch = 1, .sequence = ROWS, .heads = heads_, .kv_heads = kv_heads_, .head_dim = 128, .rotary = 128}
#define MATRIX(columns_) .shape.quantize = {.rows = ROWS, .columns = columns_}
#define LOGITS(rows_, columns_)                                                                                        \
    .shape.rows = {                                                                                                    \
        .rows = rows_, .columns = columns_, .valid_columns = columns_, .total = columns_, .parts = 1, .scale = 1.0f}
#define ELEMENTS(count) .shape.elements = {.elements = count}
enum { WEIGHTS = 1 << 20 };

struct row {
    struct op_case test;
    const char    *kernel;          // in kernel_resources.txt; of several, the one that writes the result
    int            threads;         // of a block
    int64_t        elements;        // of the case, that bytes are counted by
    int64_t        small, large;    // elements of the op in a layer of Llama 3.1 8B and 70B
};

// clang-format off
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
     "activation " TILES "activated_source, (format)3, (scaling)0, true>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu into FP8, current", "b-------44f", {.kind = OP_ACTIVATION_FORWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation " TILES "activated_source, (format)3, (scaling)0, true>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu gradient", "bbb", {.kind = OP_ACTIVATION_BACKWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation backward_kernel<unsigned short, true, (activation_function)0>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu gradient into FP8, delayed", "bb------55--ff", {.kind = OP_ACTIVATION_BACKWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation " TILES "paired_source, (format)4, (scaling)0, true>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
    {{"swiglu gradient into FP8, current", "bb------55f", {.kind = OP_ACTIVATION_BACKWARD, LARGE_ROWS(14336, ACTIVATION_SWIGLU)}},
     "activation " TILES "paired_source, (format)4, (scaling)0, true>", 256, ROWS * 14336, TOKENS * INT64_C(14336), TOKENS * INT64_C(28672)},
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

// Each operand once, or twice where it is read and written.
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

static double count_bytes(struct backend *device, struct backend *host, const struct row *row, double *demanded)
{
    struct op     op = complete_op(&row->test);
    struct buffer buffers[OP_OPERANDS];
    make_operands(host, &row->test, &op, 1, buffers);
    emulator_count();
    run_on_device(device, &op, buffers);
    struct emulator_traffic traffic = emulator_count();
    *demanded                       = (double)demanded_bytes(&op, buffers) / (double)row->elements;
    free_buffers(buffers);
    return (double)(traffic.read_bytes + traffic.written_bytes) / (double)row->elements;
}

// Registers of a thread and bytes of static shared memory, or an end.
static int registers_of(const char *kernel, int *shared_bytes)
{
    char  line[256];
    int   registers = 0, spilled;
    FILE *file      = fopen(GSWBENCH_SOURCE_DIR "/tests/device/kernel_resources.txt", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        int at                    = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%d %d %d %n", &registers, &spilled, shared_bytes, &at) == 3 &&
            strcmp(line + at, kernel) == 0) {
            fclose(file);
            return registers;
        }
    }
    printf("FAIL kernel_resources.txt has no %s\n", kernel);
    exit(1);
}

// Threads that a multiprocessor holds, by registers, which warps are given in units of 256.
static int resident_threads(int registers, int threads)
{
    int of_warp = (registers * WARP + 255) / 256 * 256, warps = REGISTERS / of_warp;
    int blocks = warps * WARP / threads, most = THREADS / threads;
    return (blocks < most ? blocks : most) * threads;
}

static void describe(FILE *file, struct backend *device, struct backend *host, const struct row *row)
{
    int    shared, registers = registers_of(row->kernel, &shared);
    double demanded, moved   = count_bytes(device, host, row, &demanded);
    fprintf(file, "| %s | %.1f | %.1f | %d | %d | %.3f | %.3f | %.3f | %.3f |\n", row->test.name, demanded, moved,
            registers, resident_threads(registers, row->threads), 1e3 * moved * (double)row->small / h200_rate,
            1e3 * moved * (double)row->small / h100_rate, 1e3 * moved * (double)row->large / h200_rate,
            1e3 * moved * (double)row->large / h100_rate);
}

// To renew the table, take what this prints.
int main(void)
{
    static char    expected[1 << 14], page[1 << 16];
    struct backend host, device;
    device_require();
    status opened = backend_open(&host, "host", &device_setup);
    opened        = failed(&opened) ? opened : backend_open(&device, "cuda", &device_setup);
    FILE *table   = fmemopen(expected, sizeof(expected), "w");
    FILE *file    = fopen(GSWBENCH_SOURCE_DIR "/docs/performance.md", "r");
    if (failed(&opened) || table == NULL || file == NULL) {
        printf("FAIL %s\n", failed(&opened) ? opened.text : "docs/performance.md");
        return 1;
    }
    device_order(0);
    fprintf(table,
            "| op | must, bytes | moves, bytes | registers | threads | 8B, H200, ms | H100, ms | 70B, H200, ms | "
            "H100, ms |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        describe(table, &device, &host, &rows[i]);
    }
    fclose(table);
    page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
    fclose(file);
    bool is_there = strstr(page, expected) != NULL;
    printf("%s%s", expected, is_there ? "" : "FAIL docs/performance.md has another table\n");
    backend_close(&device);
    backend_close(&host);
    return is_there ? 0 : 1;
}

#else

int main(void)
{
    printf("skipped: a real device counts nothing\n");
    return DEVICE_SKIPPED;
}

#endif

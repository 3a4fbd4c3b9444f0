// SPDX-License-Identifier: MIT
// Tests GEMM autotuning. The first run times the algorithms and writes the cache file. The second run reads it and must
// give the same bits. Both must agree with the algorithm that is chosen without timing. If token counts change the size
// of a GEMM, each size must be prepared once, and only a limited number of sizes is kept.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/gemm.h"
#include "buffers.h"
#include "device.h"
#include "op_compare.h"
#include "op_operands.h"

// The test also runs on an emulated GPU, which needs minutes for work that a real GPU does in a second. There the GEMMs
// are small.
#ifdef GSWBENCH_EMULATED
enum { GEMMS = 5, SHRUNK = 16 };
#else
enum { GEMMS = 5, SHRUNK = 1 };
#endif

#define GEMM(m_, n_, k_, ...) .kind = OP_GEMM, .shape.gemm = {.m = m_, .n = n_, .k = k_, __VA_ARGS__}
static const struct op_case cases[GEMMS] = {
    {"nn", "bbf", {GEMM(512 / SHRUNK, 1024 / SHRUNK, 768 / SHRUNK, .transpose_b = false)}},
    {"nt", "bbf", {GEMM(512 / SHRUNK, 1024 / SHRUNK, 768 / SHRUNK, .transpose_b = true)}},
    {"tn, added", "bbf", {.accumulates = true, GEMM(1024 / SHRUNK, 768 / SHRUNK, 512 / SHRUNK, .transpose_a = true)}},
    {"nt, odd", "bbf", {GEMM(129, 71, 203, .transpose_b = true)}},
    {"in fp8", "45fff", {.sums_fast = true, GEMM(512 / SHRUNK, 1024 / SHRUNK, 768 / SHRUNK, .transpose_b = true)}},
};

static struct buffer multiply(struct backend *device, const struct op_case *test)
{
    struct op     op = complete_op(test);
    struct buffer operands[OP_OPERANDS];
    make_operands(NULL, test, &op, 1, operands);    // no host backend is needed to make operands of a GEMM
    run_on_device(device, &op, 0, operands);
    struct buffer made = operands[GEMM_C];
    operands[GEMM_C]   = (struct buffer){.data = NULL};
    free_buffers(operands);
    return made;
}

static void run_all(const struct backend_setup *setup, struct buffer gemms[GEMMS], const char *described)
{
    struct backend device;
    char           text[256];
    device_check(backend_open(&device, "cuda", setup));
    for (int i = 0; i < GEMMS; i++) {
        gemms[i] = multiply(&device, &cases[i]);
    }
    device.ops->describe(&device, text, sizeof(text));
    printf("     %s\n", text);
    report(strstr(text, described) != NULL, described);
    backend_close(&device);
}

static double largest_difference(const struct buffer *one, const struct buffer *other)
{
    double largest = 1e-30, difference = 0;
    for (int64_t i = 0; i < one->elements; i++) {
        largest    = fmax(largest, fabs(get(other, i)));
        difference = fmax(difference, fabs(get(one, i) - get(other, i)));
    }
    return difference / largest;
}

#ifdef GSWBENCH_EMULATED
enum { WIDTH = 8, MOST_ROWS = 6000, KEPT = 4096 };
void emulator_descriptions(int *made, int *kept);

// Runs a GEMM with only the first `rows` rows of A. All elements are 1. Returns the sum of the result.
static double multiply_rows(struct backend *device, const struct prepared *prepared, struct op *op,
                            struct buffer buffers[], int64_t rows)
{
    double sum         = 0;
    op->shape.gemm.m   = rows;
    struct buffer gemm = make_buffer(FORMAT_F32, rows * WIDTH);
    backend_run(device, prepared, op, buffers);
    device->ops->streams->synchronize(device, STREAM_COMPUTE);
    device->ops->download(device, gemm.data, buffers[GEMM_C].data, gemm.elements * 4);
    for (int64_t i = 0; i < gemm.elements; i++) {
        sum += get(&gemm, i);
    }
    free(gemm.data);
    return sum;
}

static void count_descriptions(void)
{
    struct backend         device;
    const struct prepared *prepared;
    int                    made, kept, before;
    bool                   is_right = true;
    struct op              op       = {.kind       = OP_GEMM,
                                       .tag.role   = "test",
                                       .shape.gemm = {.m = MOST_ROWS, .n = WIDTH, .k = WIDTH, .transpose_b = true}};
    device_check(backend_open(&device, "cuda", &device_setup));
    struct buffer ones = make_buffer(FORMAT_F32, MOST_ROWS * WIDTH), buffers[OP_OPERANDS] = {{NULL}};
    for (int64_t i = 0; i < ones.elements; i++) {
        ((float *)ones.data)[i] = 1;
    }
    for (int slot = GEMM_A; slot <= GEMM_C; slot++) {
        buffers[slot] = (struct buffer){backend_allocate(&device, ones.elements * 4), ones.elements, FORMAT_F32};
        device.ops->upload(&device, buffers[slot].data, ones.data, ones.elements * 4);
    }
    device_check(backend_prepare(&device, &op, buffers, &prepared));
    emulator_descriptions(&before, &kept);
    for (int i = 0; i < 50; i++) {
        int64_t rows = 1 + i % 5;
        is_right = is_right && multiply_rows(&device, prepared, &op, buffers, rows) == (double)(rows * WIDTH * WIDTH);
    }
    emulator_descriptions(&made, &kept);
    report(made == before + 5, "50 GEMMs of 5 sizes are described 5 times");
    for (int64_t rows = 1; rows < MOST_ROWS; rows++) {
        is_right = is_right && multiply_rows(&device, prepared, &op, buffers, rows) == (double)(rows * WIDTH * WIDTH);
    }
    emulator_descriptions(&made, &kept);
    report(kept > KEPT / 2 && kept <= KEPT + 1, "of 5999 sizes at most 4096 are kept, and the planned one");
    report(is_right, "each has its own result");
    free(ones.data);
    backend_close(&device);
    emulator_descriptions(&made, &kept);
    report(kept == 0, "none is left");
}

// Prepares a GEMM twice. The first time cuBLASLt has no algorithm for it. The second time an algorithm must be
// selected.
static void prepare_again(void)
{
    struct backend         device;
    const struct prepared *prepared;
    const struct op_case  *test = &cases[GEMMS - 1];
    struct op              op   = complete_op(test);
    struct buffer          operands[OP_OPERANDS];
    make_operands(NULL, test, &op, 1, operands);
    device_check(backend_open(&device, "cuda", &device_setup));
    setenv("FAKE_CUBLASLT", "refuse", 1);
    status refused = backend_prepare(&device, &op, operands, &prepared);
    unsetenv("FAKE_CUBLASLT");
    report(failed(&refused) && prepared == NULL, "a GEMM without an algorithm is refused");
    device_check(backend_prepare(&device, &op, operands, &prepared));
    report(((const struct gemm *)prepared)->algorithm.data[0] == 1, "another attempt selects an algorithm");
    free_buffers(operands);
    backend_close(&device);
}
#endif

int main(void)
{
    device_require();
    char                 folder[] = "/tmp/gemm_device_XXXXXX", path[64];
    struct buffer        by_rule[GEMMS], timed[GEMMS], remembered[GEMMS];
    struct backend_setup setup = {.threads = 1, .cache = mkdtemp(folder)};
    if (setup.cache == NULL) {
        printf("FAIL no folder in /tmp\n");
        return 1;
    }

    run_all(&device_setup, by_rule, "0 GEMMs timed, 0 remembered");
    run_all(&setup, timed, "5 GEMMs timed, 0 remembered");
    run_all(&setup, remembered, "0 GEMMs timed, 5 remembered");

    for (int i = 0; i < GEMMS; i++) {
        printf("gemm %s\n", cases[i].name);
        double tolerance = i == GEMMS - 1 ? 1e-3 : 2e-5;
        report(largest_difference(&timed[i], &by_rule[i]) < tolerance, "timed and taken by rule agree");
        report(memcmp(timed[i].data, remembered[i].data, (size_t)timed[i].elements * 4) == 0,
               "timed and remembered have the same bits");
        free(by_rule[i].data);
        free(timed[i].data);
        free(remembered[i].data);
    }
#ifdef GSWBENCH_EMULATED
    count_descriptions();
    prepare_again();
#endif
    snprintf(path, sizeof(path), "%s/gemm.txt", folder);
    unlink(path);
    rmdir(folder);
    return device_failures > 0;
}

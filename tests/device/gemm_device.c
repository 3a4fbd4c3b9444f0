// SPDX-License-Identifier: MIT
// GEMM autotuning: the first run times algorithms and writes the cache, the second reads it and has the same bits, and
// both agree with the algorithm chosen by rule. For GEMMs with token counts, each size is prepared once, and the number
// of prepared sizes is limited.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffers.h"
#include "device.h"

// The emulator takes minutes for work that a GPU does in a second.
#ifdef GSWBENCH_EMULATED
enum { GEMMS = 5, SHRUNK = 16 };
#else
enum { GEMMS = 5, SHRUNK = 1 };
#endif

static const struct gemm_shape shapes[GEMMS] = {
    {.m = 512 / SHRUNK, .n = 1024 / SHRUNK, .k = 768 / SHRUNK},
    {.m = 512 / SHRUNK, .n = 1024 / SHRUNK, .k = 768 / SHRUNK, .transpose_b = true},
    {.m = 1024 / SHRUNK, .n = 768 / SHRUNK, .k = 512 / SHRUNK, .transpose_a = true},
    {.m = 129, .n = 71, .k = 203, .transpose_b = true},
    {.m = 512 / SHRUNK, .n = 1024 / SHRUNK, .k = 768 / SHRUNK, .transpose_b = true},
};

static int failures;

static void report(bool passes, const char *what)
{
    printf("%s %s\n", passes ? "ok  " : "FAIL", what);
    failures += !passes;
}

static struct buffer upload_random(struct backend *device, enum format format, int64_t elements, uint64_t seed)
{
    int64_t       bytes  = format_bytes(format, elements);
    struct buffer random = make_random(format, elements, seed, 1);
    struct buffer buffer = {backend_allocate(device, bytes), elements, format};
    device->ops->upload(device, buffer.data, random.data, bytes);
    free(random.data);
    return buffer;
}

// The third GEMM accumulates onto zeros; the last one is FP8.
static struct buffer multiply(struct backend *device, int number)
{
    const struct gemm_shape *shape  = &shapes[number];
    bool                     is_fp8 = number == GEMMS - 1;
    struct op                op     = {
                           .kind = OP_GEMM, .tag.role = "test", .accumulates = number == 2, .sums_fast = is_fp8, .shape.gemm = *shape};
    struct buffer buffers[OP_OPERANDS] = {
        [GEMM_A] = upload_random(device, is_fp8 ? FORMAT_E4M3 : FORMAT_BF16, shape->m * shape->k, 1),
        [GEMM_B] = upload_random(device, is_fp8 ? FORMAT_E5M2 : FORMAT_BF16, shape->k * shape->n, 2),
        [GEMM_C] = {backend_allocate(device, shape->m * shape->n * 4), shape->m * shape->n, FORMAT_F32}};
    for (int slot = GEMM_FACTOR_A; slot <= GEMM_FACTOR_B && is_fp8; slot++) {
        buffers[slot] = upload_random(device, FORMAT_F32, 1, (uint64_t)slot);
    }
    const struct prepared *prepared;
    device_check(backend_prepare(device, &op, buffers, &prepared));
    backend_run(device, prepared, &op, buffers);
    device->ops->streams->synchronize(device, LANE_COMPUTE);
    struct buffer gemm = make_buffer(FORMAT_F32, shape->m * shape->n);
    device->ops->download(device, gemm.data, buffers[GEMM_C].data, gemm.elements * 4);
    for (int slot = GEMM_A; slot < OP_OPERANDS; slot++) {
        backend_release(device, buffers[slot].data, format_bytes(buffers[slot].format, buffers[slot].elements));
    }
    return gemm;
}

static void run_all(const struct backend_setup *setup, struct buffer gemms[GEMMS], const char *described)
{
    struct backend device;
    char           text[256];
    device_check(backend_open(&device, "cuda", setup));
    for (int i = 0; i < GEMMS; i++) {
        gemms[i] = multiply(&device, i);
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

// Returns the sum over a GEMM of ones with that many rows in use.
static double multiply_rows(struct backend *device, const struct prepared *prepared, struct op *op,
                            struct buffer buffers[], int64_t rows)
{
    double sum         = 0;
    op->shape.gemm.m   = rows;
    struct buffer gemm = make_buffer(FORMAT_F32, rows * WIDTH);
    backend_run(device, prepared, op, buffers);
    device->ops->streams->synchronize(device, LANE_COMPUTE);
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
#else
static void count_descriptions(void)
{
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
        printf("gemm %d\n", i);
        double tolerance = i == GEMMS - 1 ? 1e-3 : 2e-5;
        report(largest_difference(&timed[i], &by_rule[i]) < tolerance, "timed and taken by rule agree");
        report(memcmp(timed[i].data, remembered[i].data, (size_t)timed[i].elements * 4) == 0,
               "timed and remembered have the same bits");
        free(by_rule[i].data);
        free(timed[i].data);
        free(remembered[i].data);
    }
    count_descriptions();
    snprintf(path, sizeof(path), "%s/gemm.txt", folder);
    unlink(path);
    rmdir(folder);
    return failures > 0;
}

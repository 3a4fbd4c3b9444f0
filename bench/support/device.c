// SPDX-License-Identifier: MIT
// Opens the GPU under test, times work on it, and writes records.
#include "device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/config.h"
#include "gswbench/fatal.h"
#include "gswbench/fp8.h"
#include "gswbench/peak.h"
#include "gswbench/random.h"
#include "gswbench/statistics.h"

// Fractions of data sheet rates that optimized code reaches, from published measurements of H100 and H200 with random
// data and sustained clocks: 790 of 989 TFLOP/s in BF16, 3.8 of 4.8 TB/s. FP8 measurements are few and differ: 1350 of
// 1979 TFLOP/s with fast accumulation, 1200 with fp32 accumulation.
static const double copy_share = 3.8 / 4.8, gemm_share = 790. / 989, fp8_fast_share = 1350. / 1979,
                    fp8_share = 1200. / 1979;

void device_require(status result)
{
    if (failed(&result)) {
        fprintf(stderr, "%s\n", result.text);
        exit(result.exit_code);
    }
}

// Sets the rates of optimized code on this device; 0 without a hardware profile.
static void find_bounds(struct device *device)
{
    struct hardware_config sheet;
    char                   name[DEVICE_NAME_BYTES];
    device->backend.ops->device_name(&device->backend, name, sizeof(name));
    device->is_h200 = strcmp(name, "NVIDIA H200") == 0;
    if (!config_find_hardware(&sheet, name)) {
        printf("no bounds: no hardware profile has the device %s\n", name);
        return;
    }
    double bandwidth = sheet.memory_bandwidth.value, gemm = sheet.peak[RATE_BF16].value,
           fp8 = sheet.peak[RATE_FP8].value;
    device->bounds =
        (struct device_rates){copy_share * bandwidth, gemm_share * gemm, fp8_fast_share * fp8, fp8_share * fp8};
    printf("bounds of %s: %.2f of %.2f TB/s, %.0f of %.0f TFLOP/s in BF16, %.0f and %.0f of %.0f in FP8\n", name,
           device->bounds.copy_bytes / 1e12, bandwidth / 1e12, device->bounds.gemm_flops / 1e12, gemm / 1e12,
           device->bounds.fp8_fast_flops / 1e12, device->bounds.fp8_flops / 1e12, fp8 / 1e12);
}

static void device_open(struct device *device)
{
    *device         = (struct device){.records = NULL};
    status detected = backend_cuda.detect();
    if (failed(&detected)) {
        printf("skipped: no device: %s\n", detected.text);
        exit(DEVICE_SKIPPED);
    }
    device_require(backend_open(&device->backend, "cuda", &(struct backend_setup){.threads = 1, .cache = ""}));
    device->streams = device->backend.ops->streams;
    device->backend.ops->describe(&device->backend, device->text, sizeof(device->text));
}

static int list_cases(const void *cases, size_t bytes, int count)
{
    for (int i = 0; i < count; i++) {
        puts(((const struct device_case *)(const void *)((const char *)cases + (size_t)i * bytes))->name);
    }
    return EXIT_VALID;
}

int device_main(int argc, char **argv, const void *cases, size_t bytes, int count)
{
    struct device device;
    setvbuf(stdout, NULL, _IOLBF, 0);    // so that a killed benchmark keeps its output
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        return list_cases(cases, bytes, count);
    }
    if (argc < 2 || argc > 3 || (argv[1][0] == '-' && (argc != 2 || strcmp(argv[1], "--device") != 0))) {
        fprintf(stderr,
                "usage: %s --list | --device | FILE [START OF A CASE]    (FILE: JSON, a line for each record)\n",
                argv[0]);
        return EXIT_USAGE;
    }
    const char *start = argc == 3 ? argv[2] : "";
    int         found = 0;
    device_open(&device);
    puts(device.text);
    if (argv[1][0] == '-') {
        backend_close(&device.backend);
        return EXIT_VALID;
    }
    find_bounds(&device);
    device.records = fopen(argv[1], "a");
    if (device.records == NULL) {
        device_require(fail_as(EXIT_OUTPUT, "%s cannot be written", argv[1]));
    }
    for (int i = 0; i < count; i++) {
        const struct device_case *one = (const void *)((const char *)cases + (size_t)i * bytes);
        if (strncmp(one->name, start, strlen(start)) == 0) {
            one->run(&device, one);
            found++;
        }
    }
    backend_close(&device.backend);
    if (fclose(device.records) != 0) {
        device_require(fail_as(EXIT_OUTPUT, "the records cannot be written"));
    }
    if (found == 0) {
        device_require(fail_as(EXIT_USAGE, "no case begins with %s: --list has their names", start));
    }
    return EXIT_VALID;
}

struct buffer device_operand(struct device *device, enum format format, int64_t elements)
{
    enum { PIECE = 1 << 20 };
    struct backend *backend = &device->backend;
    char           *piece   = memory_allocate((size_t)format_bytes(format, PIECE));
    struct buffer   buffer  = {backend_allocate(backend, format_bytes(format, elements)), elements, format};
    for (uint64_t i = 0; i < PIECE; i++) {
        float value = random_normal(1, i);
        if (format == FORMAT_F32) {
            ((float *)(void *)piece)[i] = value;
        } else if (format_is_low_precision(format)) {    // scaled so that the maximum, 4.9, nearly fills the format
            ((uint8_t *)piece)[i] = fp8_from_float(format, value * fp8_largest(format) / 5);
        } else {
            ((bf16 *)(void *)piece)[i] = bf16_from_float(value);
        }
    }
    for (int64_t first = 0; first < elements; first += PIECE) {
        int64_t count = elements - first < PIECE ? elements - first : PIECE;
        backend->ops->upload(backend, (char *)buffer.data + format_offset(format, first), piece,
                             format_bytes(format, count));
    }
    free(piece);
    return buffer;
}

static double number_at(const void *data, enum format format, int64_t i)
{
    return format == FORMAT_F32    ? (double)((const float *)data)[i]
           : format == FORMAT_BF16 ? (double)bf16_to_float(((const bf16 *)data)[i])
                                   : (double)fp8_to_float(format, ((const uint8_t *)data)[i]);
}

void device_require_numbers(struct device *device, const struct buffer *buffer, const char *name)
{
    enum { LOOKED_AT = 1 << 20 };
    int64_t count = buffer->elements < LOOKED_AT ? buffer->elements : LOOKED_AT;
    int64_t bytes = format_bytes(buffer->format, count);
    void   *data  = memory_allocate((size_t)bytes);
    device->backend.ops->download(&device->backend, data, buffer->data, bytes);
    for (int64_t i = 0; i < count && buffer->format != FORMAT_I32; i++) {
        if (!isfinite(number_at(data, buffer->format, i))) {
            device_require(fail_as(EXIT_INVALID, "%s: element %d of a result is no number", name, (int)i));
        }
    }
    free(data);
}

double device_median_seconds(struct device *device, void (*work)(void *), void *argument, double warm_up)
{
    struct backend *backend = &device->backend;
    void           *begin[DEVICE_RUNS], *end[DEVICE_RUNS];
    double          seconds[DEVICE_RUNS];
    for (double start = clock_seconds(); clock_seconds() - start < warm_up / DEVICE_SHRINKS;) {
        work(argument);
        device->streams->synchronize(backend, STREAM_COMPUTE);
    }
    for (int i = 0; i < DEVICE_RUNS; i++) {
        begin[i] = device->streams->event_open(backend, true);
        end[i]   = device->streams->event_open(backend, true);
        device->streams->record(backend, STREAM_COMPUTE, begin[i]);
        work(argument);
        device->streams->record(backend, STREAM_COMPUTE, end[i]);
    }
    device->streams->synchronize(backend, STREAM_COMPUTE);
    for (int i = 0; i < DEVICE_RUNS; i++) {
        seconds[i] = device->streams->seconds_between(begin[i], end[i]);
        device->streams->event_close(begin[i]);
        device->streams->event_close(end[i]);
    }
    struct statistics statistics;
    statistics_compute(&statistics, seconds, DEVICE_RUNS);
    return statistics.median;
}

// Replaces characters that JSON would have to escape.
static const char *without_quotes(char *text)
{
    for (char *next = text; *next != '\0'; next++) {
        *next = *next == '"' || *next == '\\' || (unsigned char)*next < ' ' ? '\'' : *next;
    }
    return text;
}

void device_report(struct device *device, const struct device_record *record)
{
    char                     text[sizeof(device->text)];    // the attention provider is known only once prepared
    struct backend_attention attention = {.provider = ""};
    device->backend.ops->describe(&device->backend, text, sizeof(text));
    device->backend.ops->attention(&device->backend, &attention);
    printf("%-44s %9.3f ms", record->name, 1e3 * record->seconds);
    if (record->bound_seconds > 0) {
        printf("  bound %9.3f ms, %5.1f %%", 1e3 * record->bound_seconds,
               100 * record->bound_seconds / record->seconds);
    }
    if (record->flops > 0) {
        printf("  %6.1f TFLOP/s", record->flops / record->seconds / 1e12);
    } else if (record->bytes > 0) {
        printf("  %6.1f GB/s", record->bytes / record->seconds / 1e9);
    }
    putchar('\n');
    fprintf(
        device->records,
        "{\"bench\": \"%s\", \"name\": \"%s\", \"seconds\": %.9g, \"bound_seconds\": %.9g, \"flops\": %.9g, "
        "\"bytes\": %.9g, \"device\": \"%s\", \"attention\": {\"provider\": \"%s\", \"library\": \"%s\", \"engines\": "
        "\"%s\", \"refusal\": \"%s\"}}\n",
        record->bench, record->name, record->seconds, record->bound_seconds > 0 ? record->bound_seconds : 0,
        record->flops, record->bytes, text, attention.provider, attention.library, attention.engines,
        without_quotes(attention.refusal));
    fflush(NULL);
}

void device_require_fp8(struct device *device)
{
    const struct op        op     = {.kind = OP_GEMM, .shape.gemm = {.m = 16, .n = 16, .k = 16, .transpose_b = true}};
    struct buffer          none[] = {{(void *)256, 256, FORMAT_E4M3},
                                     {(void *)256, 256, FORMAT_E4M3},
                                     {(void *)256, 256, FORMAT_F32},
                                     [OP_OPERANDS - 1] = {.data = NULL}};
    const struct prepared *prepared;
    status                 outcome = backend_prepare(&device->backend, &op, none, &prepared);
    if (outcome.exit_code == EXIT_CONFIG) {
        printf("skipped: %s\n", outcome.text);
        exit(DEVICE_SKIPPED);
    }
    device_require(outcome);
}

double device_bound(double amount, double rate)
{
    return rate > 0 ? amount / rate : 0;
}

double device_gemm_flops(const struct device_rates *rates, const struct op *op, enum format a)
{
    return !format_is_low_precision(a) ? rates->gemm_flops : op->sums_fast ? rates->fp8_fast_flops : rates->fp8_flops;
}

double device_op_bytes(const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    double bytes = 0;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        int reads    = (op->access[slot] & ACCESS_READ) != 0;
        int writes   = (op->access[slot] & ACCESS_WRITE) != 0;
        int accesses = buffers[slot].data != NULL ? reads + writes : 0;
        bytes += (double)(accesses * format_bytes(buffers[slot].format, buffers[slot].elements));
    }
    return bytes;
}

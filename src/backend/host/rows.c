// SPDX-License-Identifier: MIT
// Functions on rows and matrices that the ops of the host backend share: conversion to and from fp32, reductions, GEMM.
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "gswbench/arithmetic.h"
#include "gswbench/fp4.h"
#include "internal.h"

typedef float  lanes_float __attribute__((vector_size(32)));
typedef double lanes_double __attribute__((vector_size(64)));
enum { LANES = 8 };

// Converts elements in bf16, FP8 or FP4 to fp32.
static void widen(float *to, const struct buffer *from, int64_t at, int64_t count)
{
    if (from->format == FORMAT_BF16) {
        const bf16 *values = (const bf16 *)from->data + at;
        for (int64_t i = 0; i < count; i++) {
            to[i] = bf16_to_float(values[i]);
        }
    } else if (from->format == FORMAT_E2M1) {
        for (int64_t i = 0; i < count; i++) {
            to[i] = fp4_to_float(fp4_code(from->data, at + i));
        }
    } else {
        const uint8_t *codes = (const uint8_t *)from->data + at;
        for (int64_t i = 0; i < count; i++) {
            to[i] = fp8_to_float(from->format, codes[i]);
        }
    }
}

static void to_bf16(bf16 *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = bf16_from_float(from[i]);
    }
}

const float *row_read(const struct buffer *buffer, int64_t at, int64_t count, float *space)
{
    if (buffer->format == FORMAT_F32) {
        return (const float *)buffer->data + at;
    }
    widen(space, buffer, at, count);
    return space;
}

float *row_open(const struct buffer *buffer, int64_t at, float *space)
{
    return buffer->format == FORMAT_F32 ? (float *)buffer->data + at : space;
}

void row_close(const struct buffer *buffer, int64_t at, int64_t count, const float *values)
{
    if (buffer->format == FORMAT_BF16) {
        to_bf16((bf16 *)buffer->data + at, values, count);
    } else if (values != (float *)buffer->data + at) {
        memcpy((float *)buffer->data + at, values, sizeof(*values) * (size_t)count);
    }
}

void row_store(const struct buffer *buffer, int64_t at, int64_t count, const float *values, bool accumulates)
{
    if (!accumulates) {
        row_close(buffer, at, count, values);
    } else if (buffer->format == FORMAT_F32) {
        float *to = (float *)buffer->data + at;
        for (int64_t i = 0; i < count; i++) {
            to[i] += values[i];
        }
    } else {
        bf16 *to = (bf16 *)buffer->data + at;
        for (int64_t i = 0; i < count; i++) {
            to[i] = bf16_from_float(bf16_to_float(to[i]) + values[i]);
        }
    }
}

void row_store_sums(const struct buffer *buffer, int64_t at, int64_t count, const double *sums, float *space,
                    bool accumulates)
{
    for (int64_t i = 0; i < count; i++) {
        space[i] = (float)sums[i];
    }
    row_store(buffer, at, count, space, accumulates);
}

void row_copy(const struct buffer *to, int64_t to_at, const struct buffer *from, int64_t from_at, int64_t count)
{
    if (to->format == from->format) {
        memcpy((char *)to->data + format_offset(to->format, to_at),
               (const char *)from->data + format_offset(from->format, from_at),
               (size_t)format_bytes(to->format, count));
    } else if (to->format == FORMAT_F32) {
        widen((float *)to->data + to_at, from, from_at, count);
    } else {
        to_bf16((bf16 *)to->data + to_at, (const float *)from->data + from_at, count);
    }
}

void row_clear(const struct buffer *buffer, int64_t at, int64_t count)
{
    memset((char *)buffer->data + format_offset(buffer->format, at), 0, (size_t)format_bytes(buffer->format, count));
}

// Loads a vector of fp32 as double. Vectors are passed by address, because the ABI for passing them by value depends on
// the target CPU.
static inline void load(lanes_double *lanes, const float *x)
{
    lanes_float singles;
    memcpy(&singles, x, sizeof(singles));
    *lanes = __builtin_convertvector(singles, lanes_double);
}

static inline double total(const lanes_double *lanes)
{
    lanes_double x = *lanes;
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

double row_sum(const float *x, int64_t count)
{
    lanes_double lanes = {0};
    int64_t      i     = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes_double values;
        load(&values, x + i);
        lanes += values;
    }
    double sum = total(&lanes);
    for (; i < count; i++) {
        sum += (double)x[i];
    }
    return sum;
}

// Returns the sum of (x - mean) * (y - mean).
static inline double sum_products(const float *x, const float *y, double mean, int64_t count)
{
    lanes_double lanes = {0};
    int64_t      i     = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes_double first, second;
        load(&first, x + i);
        load(&second, y + i);
        lanes += (first - mean) * (second - mean);
    }
    double sum = total(&lanes);
    for (; i < count; i++) {
        sum += ((double)x[i] - mean) * ((double)y[i] - mean);
    }
    return sum;
}

double row_dot(const float *x, const float *y, int64_t count)
{
    return sum_products(x, y, 0, count);
}

double row_deviation(const float *x, double mean, int64_t count)
{
    return sum_products(x, x, mean, count);
}

// Returns the largest of `least` and the elements of x, or of |x| (is_magnitude). Ignores NaN.
static inline float find_maximum(const float *x, int64_t count, bool is_magnitude, float least)
{
    enum { WIDTH = 32 };
    float   maxima[WIDTH];
    int64_t whole = count - count % WIDTH;
    for (int lane = 0; lane < WIDTH; lane++) {
        maxima[lane] = least;
    }
    for (int64_t i = 0; i < whole; i += WIDTH) {
        for (int lane = 0; lane < WIDTH; lane++) {
            float value  = is_magnitude ? fabsf(x[i + lane]) : x[i + lane];
            maxima[lane] = value > maxima[lane] ? value : maxima[lane];
        }
    }
    for (int64_t i = whole; i < count; i++) {
        float value = is_magnitude ? fabsf(x[i]) : x[i];
        maxima[0]   = value > maxima[0] ? value : maxima[0];
    }
    for (int lane = 1; lane < WIDTH; lane++) {
        maxima[0] = maxima[lane] > maxima[0] ? maxima[lane] : maxima[0];
    }
    return maxima[0];
}

float row_maximum(const float *x, int64_t count)
{
    return find_maximum(x, count, false, -INFINITY);
}

float row_magnitude(const float *x, int64_t count)
{
    return find_maximum(x, count, true, 0);
}

void row_scale(float *to, const float *x, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = x[i] * factor;
    }
}

double row_exponential(float *x, float shift, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = arithmetic_exp(x[i] - shift);
    }
    return row_sum(x, count);
}

struct panel panel_read(const struct buffer *buffer, const struct view *view, float *space)
{
    if (buffer->format == FORMAT_F32) {
        return (struct panel){(float *)buffer->data + view->at, view->leading, view->rows, view->columns, false};
    }
    for (int64_t row = 0; row < view->rows; row++) {
        widen(space + row * view->columns, buffer, view->at + row * view->leading, view->columns);
    }
    return (struct panel){space, view->columns, view->rows, view->columns, false};
}

void panel_write(const struct buffer *buffer, const struct view *view, const struct panel *panel, bool accumulates)
{
    for (int64_t row = 0; row < view->rows; row++) {
        row_store(buffer, view->at + row * view->leading, view->columns, panel->data + row * panel->leading,
                  accumulates);
    }
}

void panel_multiply(const struct panel *out, const struct panel *a, const struct panel *b, float factor, float keep)
{
    cblas_sgemm(CblasRowMajor, a->transposed ? CblasTrans : CblasNoTrans, b->transposed ? CblasTrans : CblasNoTrans,
                (int)out->rows, (int)out->columns, (int)(a->transposed ? a->rows : a->columns), factor, a->data,
                (int)a->leading, b->data, (int)b->leading, keep, out->data, (int)out->leading);
}

// SPDX-License-Identifier: MIT
// Tests FP8 quantization on the host backend, and GEMMs of quantized tensors, against double.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "gswbench/fp8.h"
// Returns the code of the nearest finite FP8 value. If two are equally near, the even code is returned.
static uint8_t nearest_code(enum format format, double value)
{
    int best = 0;
    for (int code = 0; code < (format == FORMAT_E4M3 ? 0x7f : 0x7c); code++) {
        double distance  = fabs((double)fp8_to_float(format, (uint8_t)code) - fabs(value));
        double best_away = fabs((double)fp8_to_float(format, (uint8_t)best) - fabs(value));
        if (distance < best_away || (distance == best_away && code % 2 == 0)) {
            best = code;
        }
    }
    return (uint8_t)(best + (signbit(value) ? 128 : 0));
}

// Quantizes random values. The last value has the largest magnitude.
static void quantize(struct buffer buffers[OP_OPERANDS], enum format from, enum format format, int64_t elements,
                     int threads)
{
    struct op op                    = {.kind = OP_QUANTIZE, .shape.quantize = {.rows = 1, .columns = elements}};
    buffers[QUANTIZE_IN]            = make_random(from, elements, 5, 0.3);
    buffers[QUANTIZE_OUT]           = make_output(format, elements);
    buffers[QUANTIZE_INVERSE_SCALE] = make_output(FORMAT_F32, 1);
    ((uint8_t *)buffers[QUANTIZE_OUT].data)[elements] = 0xa5;
    // The largest magnitude, in the last chunk that a thread processes.
    set(&buffers[QUANTIZE_IN], elements - 1, -2.75);
    run_op(&op, buffers, threads);
}

Test(host_fp8, quantizes_bit_for_bit_as_the_definition_says)
{
    static const int64_t     counts[]  = {1, 77, 70003};
    static const enum format formats[] = {FORMAT_E4M3, FORMAT_E5M2};
    for (int i = 0; i < 12; i++) {
        int64_t       count  = counts[i % 3];
        enum format   format = formats[i / 3 % 2], from = i < 6 ? FORMAT_BF16 : FORMAT_F32;
        struct buffer buffers[OP_OPERANDS] = {{.data = NULL}};
        quantize(buffers, from, format, count, 1 + i % 2);

        float          scale = (format == FORMAT_E4M3 ? 448.0f : 57344.0f) / 2.75f;
        const uint8_t *codes = buffers[QUANTIZE_OUT].data;
        cr_expect_eq(*(float *)buffers[QUANTIZE_INVERSE_SCALE].data, 1 / scale);
        for (int64_t e = 0; e < count; e++) {
            float scaled = (float)get(&buffers[QUANTIZE_IN], e) * scale;
            cr_assert_eq(codes[e], nearest_code(format, (double)scaled), "element %lld of %lld", (long long)e,
                         (long long)count);
        }
        cr_expect_eq(codes[count], 0xa5);
    }
}

// The sizes are no multiples of the kernel's tile.
Test(host_fp8, transposes_what_it_quantizes)
{
    enum { ROWS = 67, COLUMNS = 259 };
    struct op     op = {.kind = OP_QUANTIZE, .shape.quantize = {.rows = ROWS, .columns = COLUMNS}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "b44f", FORMAT_BF16, buffers);
    run_op(&op, buffers, 2);

    const uint8_t *codes = buffers[QUANTIZE_OUT].data, *transposed = buffers[QUANTIZE_TRANSPOSED].data;
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            cr_assert_eq(transposed[column * ROWS + row], codes[row * COLUMNS + column], "%d, %d", row, column);
        }
    }
    struct buffer alone[OP_OPERANDS] = {buffers[QUANTIZE_IN], [QUANTIZE_TRANSPOSED] = buffers[QUANTIZE_OUT],
                                        [QUANTIZE_INVERSE_SCALE] = buffers[QUANTIZE_INVERSE_SCALE]};
    run_op(&op, alone, 1);
    cr_expect_arr_eq(alone[QUANTIZE_TRANSPOSED].data, transposed, ROWS * COLUMNS);
}

Test(host_fp8, uses_the_scale_that_is_given_and_raises_the_largest_magnitude)
{
    struct op     op = {.kind = OP_QUANTIZE, .shape.quantize = {.rows = 1, .columns = 4}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "f4-f-ff", FORMAT_F32, buffers);
    memcpy(buffers[QUANTIZE_IN].data, (float[]){1, -3, 0.5f, 1000}, 4 * sizeof(float));
    set(&buffers[QUANTIZE_SCALE], 0, 4);
    run_op(&op, buffers, 1);

    // 1, -3, 0.5 and 1000 times the scale 4; 448 is the largest value.
    cr_expect_arr_eq(buffers[QUANTIZE_OUT].data, ((uint8_t[]){0x48, 0xd4, 0x40, 0x7e}), 4);
    cr_expect_eq(get(&buffers[QUANTIZE_INVERSE_SCALE], 0), 0.25);
    cr_expect_eq(get(&buffers[QUANTIZE_AMAX], 0), 1000);

    set(&buffers[QUANTIZE_AMAX], 0, 2000);
    run_op(&op, buffers, 1);
    cr_expect_eq(get(&buffers[QUANTIZE_AMAX], 0), 2000);
}

// Scales of rows are powers of two, rounded down: 448 / 3 = 149.3 gives 128, 448 / 20 = 22.4 gives 16, and 448 / 10 =
// 44.8 gives 32.
Test(host_fp8, scales_each_row_of_both_copies)
{
    struct op     op = {.kind = OP_QUANTIZE, .shape.quantize = {.rows = 2, .columns = 3, .scaling = SCALING_ROWS}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "b44ff", FORMAT_BF16, buffers);
    static const double values[] = {1, -3, 0, 10, 20, 0};
    for (int i = 0; i < 6; i++) {
        set(&buffers[QUANTIZE_IN], i, values[i]);
    }
    run_op(&op, buffers, 2);

    const float *factors = buffers[QUANTIZE_INVERSE_SCALE].data,
                *others  = buffers[QUANTIZE_TRANSPOSED_INVERSE_SCALE].data;
    cr_expect_arr_eq(factors, ((float[]){1.0f / 128, 1.0f / 16}), 2 * sizeof(float));
    cr_expect_arr_eq(others, ((float[]){1.0f / 32, 1.0f / 16, 1.0f}), 3 * sizeof(float));
    for (int i = 0; i < 6; i++) {
        int row = i / 3, column = i % 3;
        cr_expect_eq(get(&buffers[QUANTIZE_OUT], i) * (double)factors[row], values[i], "%d", i);
        cr_expect_eq(get(&buffers[QUANTIZE_TRANSPOSED], column * 2 + row) * (double)others[column], values[i], "%d", i);
    }
}

Test(host_fp8, quantizes_zeros_with_the_factor_one)
{
    struct op     op = {.kind = OP_QUANTIZE, .shape.quantize = {.rows = 1, .columns = 3}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "b4-f", FORMAT_BF16, buffers);
    memset(buffers[QUANTIZE_IN].data, 0, 3 * sizeof(bf16));
    run_op(&op, buffers, 1);

    cr_expect_eq(*(float *)buffers[QUANTIZE_INVERSE_SCALE].data, 1.0f);
    cr_expect_arr_eq(buffers[QUANTIZE_OUT].data, ((uint8_t[]){0, 0, 0}), 3);
}

Test(host_fp8, transposes_codes)
{
    enum { ROWS = 67, COLUMNS = 259 };
    struct op     op                   = {.kind = OP_TRANSPOSE, .shape.rows = {.rows = ROWS, .columns = COLUMNS}};
    struct buffer buffers[OP_OPERANDS] = {[TRANSPOSE_IN]  = make_buffer(FORMAT_E4M3, ROWS * COLUMNS),
                                          [TRANSPOSE_OUT] = make_output(FORMAT_E4M3, ROWS * COLUMNS)};
    uint8_t      *codes = buffers[TRANSPOSE_IN].data, *transposed = buffers[TRANSPOSE_OUT].data;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        codes[i] = (uint8_t)(i * 37 % 251);
    }
    run_op(&op, buffers, 2);

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        cr_assert_eq(transposed[i % COLUMNS * ROWS + i / COLUMNS], codes[i], "%d", i);
    }
}

Test(host_fp8, raises_the_largest_magnitude)
{
    struct op     op                   = {.kind = OP_MAGNITUDE, .shape.elements.elements = 3};
    struct buffer buffers[OP_OPERANDS] = {
        [MAGNITUDE_IN] = make_buffer(FORMAT_F32, 3), [MAGNITUDE_AMAX] = make_buffer(FORMAT_F32, 1)};
    memcpy(buffers[MAGNITUDE_IN].data, (float[]){2, -5, NAN}, 3 * sizeof(float));
    set(&buffers[MAGNITUDE_AMAX], 0, 4);
    run_op(&op, buffers, 1);
    cr_expect_eq(get(&buffers[MAGNITUDE_AMAX], 0), 5);
    run_op(&op, buffers, 1);
    cr_expect_eq(get(&buffers[MAGNITUDE_AMAX], 0), 5);
}

// Each of four tensors is scaled by its largest magnitude in the last two steps. The first tensor's magnitude grows.
// The second's shrinks, but the history keeps the larger one. The third has no magnitude yet. The last starts with an
// infinite one: while that is in the history, its scale stays.
Test(host_fp8, scales_by_the_largest_magnitude_of_the_history)
{
    enum { SLOTS = 4, HISTORY = 2, TARGET = 448 };
    struct op     op                   = {.kind = OP_RESCALE, .shape.rescale = {SLOTS, HISTORY, TARGET}};
    struct buffer buffers[OP_OPERANDS] = {make_buffer(FORMAT_F32, SLOTS), make_buffer(FORMAT_F32, SLOTS * HISTORY),
                                          make_buffer(FORMAT_F32, SLOTS), make_output(FORMAT_F32, SLOTS)};
    const float   seen[3][SLOTS]       = {{1, 8, 0, INFINITY}, {2, 4, 0, 7}, {4, 2, 0, 3.5f}};
    const float   expected[3][SLOTS]   = {{448, 56, 3, 3}, {224, 56, 3, 3}, {112, 112, 3, 64}};
    float        *amax = buffers[RESCALE_AMAX].data, *scale = buffers[RESCALE_SCALE].data;
    for (int slot = 0; slot < SLOTS; slot++) {
        scale[slot] = 3;
    }
    for (int step = 0; step < 3; step++) {
        memcpy(amax, seen[step], sizeof(seen[step]));
        run_op(&op, buffers, 1);
        cr_expect_arr_eq(amax, ((float[SLOTS]){0}), sizeof(float[SLOTS]));
        for (int slot = 0; slot < SLOTS; slot++) {
            cr_expect_eq(scale[slot], expected[step][slot], "step %d, slot %d: %g", step, slot, (double)scale[slot]);
            cr_expect_eq(((float *)buffers[RESCALE_FACTOR].data)[slot], 1 / expected[step][slot]);
        }
    }
}

Test(host_fp8, scales_by_the_present_magnitude_without_a_history)
{
    struct op     op = {.kind = OP_RESCALE, .shape.rescale = {.slots = 1, .target = 224}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "f-ff", FORMAT_F32, buffers);
    set(&buffers[RESCALE_AMAX], 0, 7);
    run_op(&op, buffers, 1);
    cr_expect_eq(get(&buffers[RESCALE_SCALE], 0), 32);
    cr_expect_eq(get(&buffers[RESCALE_FACTOR], 0), 1.0 / 32);
}

static double inverse_scale(const struct buffer *scales, int32_t scaling, int64_t rows, int64_t depth, int64_t row,
                            int64_t k)
{
    (void)scaling, (void)rows, (void)depth, (void)row, (void)k;
    return get(scales, 0);
}

static void expect_gemm(const struct gemm_shape *shape, enum format a, enum format b, enum format c, bool accumulates)
{
    struct op     op                   = {.kind = OP_GEMM, .accumulates = accumulates, .shape.gemm = *shape};
    struct buffer buffers[OP_OPERANDS] = {[GEMM_A]               = make_random(a, shape->m * shape->k, 1, 40),
                                          [GEMM_B]               = make_random(b, shape->k * shape->n, 2, 90),
                                          [GEMM_C]               = make_random(c, shape->m * shape->n, 3, 20),
                                          [GEMM_INVERSE_SCALE_A] = make_buffer(FORMAT_F32, 1),
                                          [GEMM_INVERSE_SCALE_B] = make_buffer(FORMAT_F32, 1)};
    set(&buffers[GEMM_INVERSE_SCALE_A], 0, 0.0123);
    set(&buffers[GEMM_INVERSE_SCALE_B], 0, 0.7);
    expect_scaled_gemm(&op, buffers, 1, inverse_scale);
}

Test(host_fp8, multiplies_both_factors_into_the_three_gemms_of_a_linear)
{
    struct gemm_shape forward         = {.m = 33, .n = 70, .k = 600, .transpose_b = true};
    struct gemm_shape data_gradient   = {.m = 33, .n = 600, .k = 70};
    struct gemm_shape weight_gradient = {.m = 70, .n = 600, .k = 33, .transpose_a = true};

    expect_gemm(&forward, FORMAT_E4M3, FORMAT_E4M3, FORMAT_BF16, false);
    expect_gemm(&forward, FORMAT_E4M3, FORMAT_E4M3, FORMAT_F32, false);
    expect_gemm(&data_gradient, FORMAT_E5M2, FORMAT_E4M3, FORMAT_BF16, false);
    expect_gemm(&data_gradient, FORMAT_E5M2, FORMAT_E4M3, FORMAT_F32, false);
    expect_gemm(&weight_gradient, FORMAT_E5M2, FORMAT_E4M3, FORMAT_F32, false);
    expect_gemm(&weight_gradient, FORMAT_E5M2, FORMAT_E4M3, FORMAT_F32, true);
}

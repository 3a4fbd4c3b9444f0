// SPDX-License-Identifier: MIT
// Tests NVFP4 on the host backend: quantized tensors must equal the ones that the Python package ml_dtypes computes,
// and GEMMs must multiply each block by its scales.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "host.h"
#include "gswbench/fp4.h"

enum { SIDE = 16 };

// Expected quantized tensors of a 16 x 16 matrix whose element i is (i * 37 % 101 - 50) * 2^(i % 7 - 3).
// tests/reference/fp4_copy_test.py --vectors printed them: the codes, the scales of the 16 rows, and the scale of the
// tensor. Each vector has the matrix and its transpose.
// clang-format off
static const struct vector {
    const char *name;
    bool        is_square, transforms;
    int64_t     draw;
    struct { const char *codes, *factors; float scale; } copy[2];
} vectors[] = {
    {"nearest", false, false, -1,
     {{"88a1680f91c17a0891610d88b1700891d1090891f20889c203089af40019b4861809e690188b871019ad80101a879028"
      "1d80a0498f90305b88a1600f81c1790891610c88a1710889c2080891f20809b304188af50019ac861819d580180b8710"
      "189d8010298f90282d80a0490f90405b88a1600e81c1790891d10b88a1710889",
      "787b7d7a7a7d7b787c7d797b7e7a797d", 0.14880952f},
      {"2954a89f4286f929a80f3182fa1043a8118afa1092a80f217a10c1a807118bfae8b907008e7b10d006909f7c00f9b907"
      "9f5200f92905908f80fa2904a88f42801002a80f3180fa10a80f1188fa1002a801887a1081a80f117b0088b80700887b"
      "8a490790987c008907b89874008a49072874808c4907c898908e4207e9287590",
      "717375767574787a7b7d7e7d7b797673", 0.14880952f}}},
    {"squares", true, false, -1,
     {{"8890480e80b1590891510c88a1600881c1090891f20889b2020889e30008a3850809d580188a861019ad80101a879028"
      "1c80a0398e80304a8890400d80b1690891510b88a1710889c2080891f20809b2030889e400089b851809c580180a8610"
      "189d8010298f90282c8090390e80304a8890400d80a1680891d10b88a1710889",
      "7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e", 0.14880952f},
      {"1821988c2183c818980c1081c91021981089d90081980d105900a098050089d9c89805008b5900b004808d4a00c89804"
      "8e3100d91804908d80e91803988e31801002a80e2180e910a80f1188fa1002a801887a1081a80f116b0088b80700887a"
      "89390690986b008805a89863008939061852808a2905a898808b2104b8184280",
      "7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e", 0.14880952f}}},
    {"transformed", false, true, -1,
     {{"88a1680f91c17a0891610d88b1700891d1090891f20889c203089af40019b4861809e690188b871019ad80101a879028"
      "1d80a0498f90305b88a1600f81c1790891610c88a1710889c2080891f20809b304188af50019ac861819d580180b8710"
      "189d8010298f90282d80a0490f90405b88a1600e81c1790891d10b88a1710889",
      "787b7d7a7a7d7b787c7d797b7e7a797d", 0.14880952f},
      {"5b9bdc1526f84b81e926c0264f78be39a5b79e1ef1d86173f5cccef204d78633267b883d6d13bebd3da4552313cba472"
      "a9aeafb5d9bc5bfbc58c261edb79e24861aee90497f01d62e836e8173f70af6a6a61e1e0ae1f0737ccf1f1cbd74252d7"
      "1649d9be5c160fe38a37573e6193d5744c128d0654f841d9e91512184e70b0c8",
      "75747478787b7b7b7b7b7c7e7b7a7978", 0.10565477f}}},
    {"stochastic", false, true, 3,
     {{"88a0680f80d17a0891500c88a1711881d1090892f20888c3030899f50008a496080ae680189b871019ad80101a878028"
      "1d8090488f90315b88a1600f90c1790991510c88a1710889c2081891f31808b204099af50018bc861819d690180a8711"
      "28ad8010298f80292d80a0490f91405b88a0600f80b2790890d10a88a1710989",
      "787b7d7a7a7d7b787c7d797b7e7a797d", 0.14880952f},
      {"5b9bcc1527f85b81e825c0154f78bd3995b79d1ef1e86162f5cccef104d78632267b883d6e13bfad3da4452313cba473"
      "a8aeafb5caac4bfbc58c261edc79e248619ee90596f02d62f935e9272f709f6a6b61e2e0ae1f0727ccf0f0cbd64252d6"
      "1659c9be5c071fe38a37573f6182d5744c128e0655f840d8f91522284f71b0c8",
      "75747478787b7b7b7b7b7c7e7b7a7978", 0.10565477f}}}};
// clang-format on

static void expect_bytes(const char *what, const struct buffer *buffer, int64_t stride, const char *hex)
{
    for (int64_t i = 0; hex[2 * i] != '\0'; i++) {
        const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        long       wanted   = strtol(digits, NULL, 16);
        uint8_t    found    = ((const uint8_t *)buffer->data)[i * stride];
        cr_assert_eq(found, wanted, "%s: byte %d is %02x, not %02lx", what, (int)i, found, wanted);
    }
}

static void expect_copies(const struct vector *vector, const struct buffer *hyper, const struct buffer *in)
{
    struct op     op = {.kind           = OP_QUANTIZE,
                        .shape.quantize = {.rows          = SIDE,
                                           .columns       = SIDE,
                                           .scaling       = vector->is_square ? SCALING_NV_SQUARE : SCALING_NV,
                                           .transforms    = vector->transforms,
                                           .is_stochastic = vector->draw >= 0,
                                           .draw          = vector->draw}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "f2244--fff", FORMAT_F32, buffers);
    buffers[QUANTIZE_IN]    = *in;
    buffers[QUANTIZE_HYPER] = *hyper;
    run_op(&op, buffers, 2);
    for (int i = 0; i < 2; i++) {
        int codes   = i ? QUANTIZE_TRANSPOSED : QUANTIZE_OUT,
            factors = i ? QUANTIZE_TRANSPOSED_INVERSE_SCALE : QUANTIZE_INVERSE_SCALE,
            scale   = i ? QUANTIZE_TRANSPOSED_TENSOR_SCALE : QUANTIZE_TENSOR_SCALE;
        expect_bytes(vector->name, &buffers[codes], 1, vector->copy[i].codes);
        expect_bytes(vector->name, &buffers[factors], 16, vector->copy[i].factors);
        cr_expect_eq(*(float *)buffers[scale].data, vector->copy[i].scale, "%s %d", vector->name, i);
    }
}

Test(host_fp4, makes_the_copies_that_ml_dtypes_makes)
{
    struct buffer in = make_buffer(FORMAT_F32, SIDE * SIDE), hyper = make_buffer(FORMAT_F32, HYPER_COUNT);
    set(&hyper, HYPER_KEY_LOW, 0x123457);
    set(&hyper, HYPER_KEY_HIGH, 0xabcdef);
    for (int i = 0; i < SIDE * SIDE; i++) {
        set(&in, i, ldexp(i * 37 % 101 - 50, i % 7 - 3));
    }
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        expect_copies(&vectors[i], &hyper, &in);
    }
}

static struct buffer make_factors(int64_t rows, int64_t columns, uint64_t seed)
{
    return make_random(FORMAT_E4M3, scaling_inverses(SCALING_NV, rows, columns), seed, 20);
}

static double inverse_scale(const struct buffer *scales, int32_t scaling, int64_t rows, int64_t depth, int64_t row,
                            int64_t k)
{
    (void)scaling, (void)rows;
    int64_t tile = row / 128 * ((depth + 63) / 64) + k / 64;
    return get(scales, tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + k % 64 / 16);
}

static void expect_product(enum scaling scaling_b, bool accumulates)
{
    const int64_t m = 160, n = 80, k = 544;
    struct op     op = {
            .kind        = OP_GEMM,
            .accumulates = accumulates,
            .shape.gemm  = {
                 .m = m, .n = n, .k = k, .transpose_b = true, .scaling_a = SCALING_NV, .scaling_b = (int32_t)scaling_b}};
    struct buffer buffers[OP_OPERANDS] = {
        [GEMM_A] = make_random(FORMAT_E2M1, m * k, 1, 3),  [GEMM_B] = make_random(FORMAT_E2M1, n * k, 2, 3),
        [GEMM_C] = make_random(FORMAT_F32, m * n, 3, 1e5), [GEMM_INVERSE_SCALE_A] = make_factors(m, k, 5),
        [GEMM_INVERSE_SCALE_B] = make_factors(n, k, 7),    [GEMM_TENSOR_SCALE_A] = make_buffer(FORMAT_F32, 1),
        [GEMM_TENSOR_SCALE_B] = make_buffer(FORMAT_F32, 1)};
    set(&buffers[GEMM_TENSOR_SCALE_A], 0, 0.75);
    set(&buffers[GEMM_TENSOR_SCALE_B], 0, 1.5);
    expect_scaled_gemm(&op, buffers, 0.75 * 1.5, inverse_scale);
}

Test(host_fp4, multiplies_codes_by_the_scales_of_blocks_and_tensors)
{
    expect_product(SCALING_NV, false);
    expect_product(SCALING_NV_SQUARE, true);
}

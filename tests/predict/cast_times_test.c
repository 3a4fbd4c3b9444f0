// SPDX-License-Identifier: MIT
// Compares casts to FP8 with times that were measured: kernels of Transformer Engine on B200 (ROCm/TransformerEngine,
// pull request 598), and linears on B300 and H200 with and without casts (NVIDIA/TransformerEngine,
// docs/examples/gemm_profiling: sum over forward, input-gradient and weight-gradient shapes of one layer).
#include <criterion/criterion.h>

#include "round_machine.h"
#include "shipped_machine.h"

enum { TOKENS = 15872, HIDDEN = 4096, QKV = 12288, MLP = 16384, SHAPES = 12 };

// Inputs [rows, inner] and weights [inner, columns] of the measured linears.
static const int64_t linears[SHAPES][3] = {
    {TOKENS, HIDDEN, QKV}, {TOKENS, HIDDEN, HIDDEN}, {TOKENS, HIDDEN, MLP}, {TOKENS, MLP, HIDDEN},
    {TOKENS, QKV, HIDDEN}, {TOKENS, HIDDEN, HIDDEN}, {TOKENS, MLP, HIDDEN}, {TOKENS, HIDDEN, MLP},
    {HIDDEN, TOKENS, QKV}, {HIDDEN, TOKENS, HIDDEN}, {HIDDEN, TOKENS, MLP}, {MLP, TOKENS, HIDDEN},
};

static void use(const char *profile)
{
    static struct config config;
    init_round();
    config                  = read_machine(profile);
    given.hardware          = config.hardware;
    given.tensors[1].format = FORMAT_E4M3;
}

// Returns the seconds of a cast with one scale, which it computes first, or with a scale per block of 32. With a
// transposed copy it writes two bytes per element.
static double cast(enum scaling scaling, bool transposes, int64_t rows, int64_t columns)
{
    int8_t    second = transposes ? 1 : -1, scales = scaling == SCALING_MX && transposes ? 2 : -1;
    struct op op            = {.kind           = OP_QUANTIZE,
                               .operand_count  = 7,
                               .operand        = {0, 1, second, 2, scales, -1, -1},
                               .access         = {1, 2, 2, 2, 2},
                               .shape.quantize = {.rows = rows, .columns = columns, .scaling = (uint8_t)scaling}};
    given.tensors[2].format = scaling == SCALING_MX ? FORMAT_E8M0 : FORMAT_F32;
    return seconds_of(&op);
}

static void expect_near(double seconds, double measured, double error, const char *what)
{
    cr_expect(fabs(seconds / measured - 1.0) < error, "%s: %.4g s, measured %.4g s", what, seconds, measured);
}

// Casts of all linears. Inputs have two copies, since weight gradients need another layout: in MXFP8 always, with one
// scale only on Hopper.
static double cast_all(enum scaling scaling, bool transposes)
{
    double seconds = 0.0;
    for (int i = 0; i < SHAPES; i++) {
        seconds += cast(scaling, transposes, linears[i][0], linears[i][1]);
        seconds += cast(scaling, false, linears[i][1], linears[i][2]);
    }
    return seconds;
}

Test(cast_times, agree_with_kernels_of_transformer_engine)
{
    use("b200");
    expect_near(cast(SCALING_MX, true, 8192, 8192), 52.34e-6, 0.08, "two copies");
    expect_near(cast(SCALING_MX, false, 8192, 8192), 34.84e-6, 0.2, "one copy");
}

Test(cast_times, agree_with_linears_of_transformer_engine)
{
    use("b300");
    expect_near(cast_all(SCALING_WHOLE, false), 9.147e-3 - 6.812e-3, 0.08, "B300, one scale");
    expect_near(cast_all(SCALING_MX, true), 8.984e-3 - 7.161e-3, 0.08, "B300, MXFP8");
    use("h200");
    expect_near(cast_all(SCALING_WHOLE, true), 20.285e-3 - 16.785e-3, 0.08, "H200, one scale");
}

// SPDX-License-Identifier: MIT
// Compares costs of FP8 attention in other frameworks with cuDNN measurements and calculations by hand.
#include <criterion/criterion.h>
#include <math.h>

#include "layouts.h"
#include "line.h"
#include "round_machine.h"
#include "shipped_machine.h"

TestSuite(cost_attention, .init = init_round);

// Gives the framework FP8 attention, and the plan FP8 linears.
static void set_fp8(enum scaling_recipe recipe)
{
    init_round();
    given.plan.precision.low_precision_linears = 1;
    given.plan.precision.recipe                = recipe;
    given.software.fp8_attention               = true;
    given.hardware.peak[RATE_FP8].value        = 2e15;
}

// Replaces the hardware by a real machine profile, without casts and gaps between kernels.
static void take_machine(const char *profile)
{
    given.hardware                  = read_machine(profile).hardware;
    given.hardware.kernel_gap.value = 0.0;
    given.software.cast_bytes.value = 0.0;
}

// Measured milliseconds of causal attention from cudnn-frontend, benchmark/sdpa_benchmark_training/results: MXFP8 with
// cuDNN 9.22 of 24 April 2026 and two sequences; FP8 with cuDNN 9.19 on H200 and one sequence. Windows have 128 keys;
// the backward pass computes all keys nevertheless.
Test(cost_attention, takes_what_cudnn_was_measured_to_take_in_fp8)
{
    static const struct {
        const char *profile;
        int64_t     batch, sequence, heads, head_dim, value_dim, window;
        double      forward, backward, share_forward, share_backward;
    } cases[] = {
        {"gb300", 2, 4096, 64, 128, 128, 0, 0.242, 1.203, 0.06, 0.11},
        {"gb300", 2, 16384, 64, 128, 128, 0, 3.225, 14.072, 0.06, 0.11},
        {"gb300", 2, 4096, 128, 192, 128, 0, 0.546, 2.348, 0.06, 0.11},
        {"gb300", 2, 32768, 128, 192, 128, 0, 29.731, 122.768, 0.06, 0.11},
        {"gb300", 2, 4096, 128, 64, 64, 128, 0.175, 1.871, 0.3, 0.11},
        {"gb300", 2, 32768, 128, 64, 64, 128, 1.345, 96.913, 0.3, 0.11},
        {"gb200", 2, 4096, 64, 128, 128, 0, 0.326, 1.305, 0.06, 0.11},
        {"gb200", 2, 16384, 64, 128, 128, 0, 4.400, 15.315, 0.06, 0.11},
        {"gb200", 2, 4096, 128, 192, 128, 0, 0.714, 2.620, 0.06, 0.11},
        {"gb200", 2, 32768, 128, 192, 128, 0, 37.773, 149.238, 0.06, 0.11},
        {"gb200", 2, 32768, 128, 64, 64, 128, 1.637, 108.370, 0.3, 0.11},
        {"h200", 1, 4096, 64, 128, 128, 0, 0.322, 1.459, 0.06, 0.3},
        {"h200", 1, 8192, 64, 128, 128, 0, 1.141, 6.392, 0.06, 0.3},
        {"h200", 1, 32768, 64, 128, 128, 0, 16.884, 118.729, 0.06, 0.3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_fp8(RECIPE_MXFP8);
        take_machine(cases[i].profile);
        struct op op      = ATTENTION(cases[i].batch, cases[i].sequence, cases[i].heads, 8, cases[i].head_dim,
                                      .value_dim = cases[i].value_dim, .window = cases[i].window, .causal = true);
        double    forward = 1e3 * seconds_of(&op) / cases[i].forward;
        op.kind           = OP_ATTENTION_BACKWARD;
        double backward   = 1e3 * seconds_of(&op) / cases[i].backward;
        cr_expect_float_eq(forward, 1.0, cases[i].share_forward, "%zu: %g", i, forward);
        cr_expect_float_eq(backward, 1.0, cases[i].share_backward, "%zu: %g", i, backward);
    }
}

// For 8,192 tokens on H200, cuDNN takes 1.141 + 6.392 ms in FP8 and 1.708 + 5.083 ms in BF16 (forward + backward). So
// FP8 attention gains nothing there.
Test(cost_attention, gains_nothing_on_hopper)
{
    struct op op = ATTENTION(1, 8192, 64, 8, 128, .causal = true);
    double    seconds[2][2];
    set_fp8(RECIPE_DELAYED);
    take_machine("h100-sxm");
    for (int fp8 = 0; fp8 < 2; fp8++) {
        given.software.fp8_attention = fp8;
        op.kind                      = OP_ATTENTION_FORWARD;
        seconds[fp8][0]              = seconds_of(&op);
        op.kind                      = OP_ATTENTION_BACKWARD;
        seconds[fp8][1]              = seconds_of(&op);
    }
    cr_expect_lt(seconds[1][0], 0.8 * seconds[0][0]);
    cr_expect_gt(seconds[1][1], seconds[0][1]);
    cr_expect_gt(seconds[1][0] + seconds[1][1], 1.708e-3 + 5.083e-3);
}

// The rate is half its maximum at 512 keys, so 512 keys double the time. 200 heads have 512 x 512 pairs each. Forward:
// 2 (96 + 64) FLOPs per pair at 2e15 FLOP/s, and 1e12 pairs/s. Backward: 2 (3 x 96 + 2 x 64) FLOPs per pair, 5e11
// pairs/s, and six arrays of the size of Q.
Test(cost_attention, computes_products_at_the_peak_and_pairs_besides)
{
    const double pairs = 100 * 2.0 * 512 * 512, queries = 100 * 2.0 * 512 * 96;
    struct op    op = ATTENTION(100, 512, 2, 2, 96, .value_dim = 64);
    set_fp8(RECIPE_MXFP8);
    given.software.cast_bytes.value             = 0.0;
    given.hardware.attention_fp8_forward.value  = 1e12;
    given.hardware.attention_fp8_backward.value = 5e11;
    expect_cost(&op, 2 * pairs * (320 / 2e15 + 1 / 1e12));
    op.kind = OP_ATTENTION_BACKWARD;
    expect_cost(&op, 2 * pairs * (832 / 2e15 + 1 / 5e11) + 12 * queries / 1e12);
    given.hardware.power_share.value = 0.3;    // the power limit halves the clock
    expect_cost(&op, 4 * pairs * (832 / 2e15 + 1 / 5e11) + 12 * queries / 1e12);
    given.software.attention_backward.value = 0.01;    // a limit of BF16 kernels, which does not apply
    expect_cost(&op, 4 * pairs * (832 / 2e15 + 1 / 5e11) + 12 * queries / 1e12);
}

// A sequence of 8,192 tokens is packed from documents of 768 tokens, so a token sees 384 keys on average. Documents of
// the length of the sequence have no effect.
Test(cost_attention, computes_the_pairs_within_packed_texts)
{
    struct op op               = ATTENTION(100, 8192, 2, 2, 128, .causal = true);
    double    one_text         = seconds_of(&op);
    given.software.text_tokens = 8192;
    expect_cost(&op, one_text);
    given.software.text_tokens = 768;
    double packed              = seconds_of(&op);
    given.software.text_tokens = 0;
    op.shape.attention.window  = 384;
    expect_cost(&op, packed);
    double seen = 8192.0 * 384 - 384.0 * 383 / 2, all = 8192.0 * 8193 / 2;
    cr_expect_float_eq(packed / one_text, seen / all * (512.0 / 384) * 2 / ((8192.0 + 512) / 8192), 1e-6);
}

// A tile of queries meets 512 keys of a window of 384, as in BF16. The backward pass computes all 8,192 x 8,193 / 2
// pairs.
Test(cost_attention, makes_no_use_of_a_window_in_the_backward_pass)
{
    struct op op   = ATTENTION(100, 8192, 2, 2, 128, .window = 384, .causal = true);
    double    seen = 8192.0 * 384 - 384.0 * 383 / 2, all = 8192.0 * 8193 / 2;
    set_fp8(RECIPE_MXFP8);
    given.software.cast_bytes.value             = 0.0;
    given.hardware.attention_fp8_forward.value  = 1e12;
    given.hardware.attention_fp8_backward.value = 5e11;
    expect_cost(&op, 200.0 * 2 * seen * (512.0 / 384) * (512 / 2e15 + 1 / 1e12));
    op.kind = OP_ATTENTION_BACKWARD;
    expect_cost(&op, (8192.0 + 512) / 8192 * 200 * all * (1280 / 2e15 + 1 / 5e11) + 12.0 * 200 * 8192 * 128 / 1e12);
    given.software.text_tokens = 768;    // no pass computes pairs of different texts
    expect_cost(&op, 200.0 * 2 * seen * (512.0 / 384) * (1280 / 2e15 + 1 / 5e11) + 12.0 * 200 * 8192 * 128 / 1e12);
}

// There are 1,024 queries in 8 heads of 192, 1,536 keys and values in 2 heads of 192 and 128, and 1,024 output
// gradients. All are cast to FP8.
Test(cost_attention, casts_what_attention_reads_and_the_gradient_of_what_it_gives)
{
    const double inputs = 1024.0 * 8 * 192 + 1536.0 * 2 * (192 + 128), gradients = 1024.0 * 8 * 128;
    static const struct {
        enum scaling_recipe recipe;
        double              bytes, forward_kernels, backward_kernels;
    } cases[]    = {{RECIPE_MXFP8, 4.3125, 7, 5}, {RECIPE_CURRENT, 5, 3, 1}, {RECIPE_DELAYED, 3, 3, 1}};
    struct op op = ATTENTION(1, 1024, 8, 2, 192, .value_dim = 128, .earlier = 512);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_fp8(cases[i].recipe);
        for (int pass = 0; pass < 2; pass++) {
            op.kind                         = pass == 0 ? OP_ATTENTION_FORWARD : OP_ATTENTION_BACKWARD;
            given.software.cast_bytes.value = 0.0;
            double without                  = seconds_of(&op);
            given.software.cast_bytes.value = 1.5;
            expect_cost(&op, without + 1.5 * cases[i].bytes * (pass == 0 ? inputs : gradients) / 1e12);
            given.hardware.kernel_gap.value = 1e-6;    // attention itself has one gap as well
            expect_cost(&op, without + 1.5 * cases[i].bytes * (pass == 0 ? inputs : gradients) / 1e12 +
                                 1e-6 * (1 + (pass == 0 ? cases[i].forward_kernels : cases[i].backward_kernels)));
            given.hardware.kernel_gap.value = 0.0;
        }
    }
}

// Attention is in BF16 without fp8_attention, or with BF16 linears.
Test(cost_attention, is_in_bf16_where_nothing_says_otherwise)
{
    struct op op = ATTENTION(100, 512, 2, 2, 64, .causal = false);
    set_fp8(RECIPE_MXFP8);
    double wide = 4 * 200 * 64 * 512.0 * 512 / (0.5 * 0.8 * 0.596e15);
    cr_expect_gt(fabs(seconds_of(&op) - wide), 0.1 * wide);
    given.software.fp8_attention = false;
    expect_cost(&op, wide);
    given.software.fp8_attention               = true;
    given.plan.precision.low_precision_linears = 0;
    expect_cost(&op, wide);
}

// Megatron-Bridge's presets of DeepSeek-V3 set fp8_dot_product_attention (MXFP8) on GB300 but not on GB200.
Test(cost_attention, is_in_fp8_in_rows_whose_preset_says_so)
{
    static const struct {
        const char *config;
        int64_t     ranks;
        const char *gpu, *variant;
        bool        in_fp8;
    } cases[] = {{"megatron-bridge-deepseek-v3-mtp", 256, "gb300", "release-26.06", true},
                 {"megatron-bridge-deepseek-v3-mtp", 256, "gb300", "release-26.06-15360", true},
                 {"megatron-bridge-deepseek-v3-mtp", 256, "gb300", "release-26.04", false},
                 {"megatron-bridge-deepseek-v3-mtp", 256, "gb200", "release-26.06", false},
                 {"megatron-bridge-qwen3-30b-a3b-mxfp8", 8, "b300", "release-26.06", true},
                 {"megatron-bridge-qwen3-30b-a3b-mxfp8", 8, "gb200", "release-26.04", false},
                 {"megatron-bridge-gpt-oss-120b", 64, "gb200", "release-26.08", true},
                 {"megatron-bridge-gpt-oss-120b", 64, "b300", "release-26.06", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job;
        layout_job(
            &job, cases[i].config, cases[i].ranks,
            line_of("hardware.profile=%s published.variant=%s precision.compute=fp8", cases[i].gpu, cases[i].variant));
        cr_expect_eq(job.config.software.fp8_attention != 0, cases[i].in_fp8, "%zu", i);
    }
}

// SPDX-License-Identifier: MIT
// Tests the functions that compute a single element, such as exp, and AdamW over several steps.
#include "gswbench/arithmetic.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "host.h"
#include "reference.h"

Test(arithmetic, exponential_is_exact_to_two_parts_in_ten_million)
{
    double worst = 0;
    for (double x = -63.9; x < 63.9; x += 0.000317) {
        double exact = exp((double)(float)x);
        worst        = fmax(worst, fabs((double)arithmetic_exp((float)x) - exact) / exact);
    }

    cr_assert_lt(worst, 2e-7, "%g", worst);
    cr_assert_eq(arithmetic_exp(0.0f), 1.0f);
}

Test(arithmetic, exponential_is_a_number_for_all_but_nan)
{
    cr_assert(arithmetic_exp(-INFINITY) > 1e-28f && arithmetic_exp(-INFINITY) < 2e-28f);
    cr_assert(arithmetic_exp(INFINITY) > 6e27f && arithmetic_exp(INFINITY) < 7e27f);
    cr_assert(isnan(arithmetic_exp(NAN)));
}

Test(arithmetic, activations_are_exact_to_a_few_units)
{
    double worst = 0;
    for (float x = -20.0f; x < 20.0f; x += 0.0137f) {
        double size = fmax(1e-3, fabs((double)x));
        worst = fmax(worst, fabs((double)arithmetic_silu(x) - reference_gate((double)x, ACTIVATION_SWIGLU)) / size);
        worst = fmax(worst, fabs((double)arithmetic_gelu(x) - reference_gate((double)x, ACTIVATION_GELU)) / size);
    }

    cr_assert_lt(worst, 5e-7, "%g", worst);
    cr_assert_eq(arithmetic_relu2(-3.0f), 0.0f);
    cr_assert_eq(arithmetic_relu2(3.0f), 9.0f);
}

Test(arithmetic, activations_let_nan_through)
{
    cr_assert(isnan(arithmetic_silu(NAN)) && isnan(arithmetic_gelu(NAN)) && isnan(arithmetic_relu2(NAN)));
    cr_assert(isnan(arithmetic_silu_slope(NAN)) && isnan(arithmetic_gelu_slope(NAN)) &&
              isnan(arithmetic_relu2_slope(NAN)));
}

// Runs AdamW with weight decay, bias correction and gradient clipping for several steps, and compares it with the
// formula in double.
static void expect_adamw(enum format weight_type, enum format moment_type, bool has_master)
{
    enum { COUNT = 2500, STEPS = 5 };
    struct op     op                   = {.kind = OP_ADAMW, .shape.elements.elements = COUNT};
    struct buffer buffers[OP_OPERANDS] = {
        [ADAMW_HYPER]  = make_buffer(FORMAT_F32, HYPER_COUNT),
        [ADAMW_SCALE]  = make_buffer(FORMAT_F32, 1),
        [ADAMW_FIRST]  = make_buffer(moment_type, COUNT),
        [ADAMW_SECOND] = make_buffer(moment_type, COUNT),
        [ADAMW_MASTER] = has_master ? make_random(FORMAT_F32, COUNT, 1, 1) : (struct buffer){0},
        [ADAMW_WEIGHT] = has_master ? make_output(weight_type, COUNT) : make_random(weight_type, COUNT, 1, 1),
    };
    const struct buffer *kept   = &buffers[has_master ? ADAMW_MASTER : ADAMW_WEIGHT];
    double              *weight = values_of(kept);
    double              *first = values_of(&buffers[ADAMW_FIRST]), *second = values_of(&buffers[ADAMW_SECOND]);
    const double         rate = 0.01, beta1 = 0.875, beta2 = 0.9375, epsilon = 1e-5, decay = 0.1, scale = 0.5;
    const double         hyper[] = {rate, beta1, beta2, epsilon, decay};
    for (int i = 0; i < 5; i++) {
        set(&buffers[ADAMW_HYPER], i, hyper[i]);
    }
    set(&buffers[ADAMW_SCALE], 0, scale);
    for (int step = 1; step <= STEPS; step++) {
        set(&buffers[ADAMW_HYPER], HYPER_CORRECTION1, 1 - pow(beta1, step));
        set(&buffers[ADAMW_HYPER], HYPER_CORRECTION2, 1 - pow(beta2, step));
        buffers[ADAMW_GRADIENT] = make_random(moment_type, COUNT, (uint64_t)(10 + step), 1);
        for (int64_t i = 0; i < COUNT; i++) {
            double gradient = scale * get(&buffers[ADAMW_GRADIENT], i);
            weight[i] *= 1 - rate * decay;
            first[i]  = beta1 * first[i] + (1 - beta1) * gradient;
            second[i] = beta2 * second[i] + (1 - beta2) * gradient * gradient;
            weight[i] -=
                rate / (1 - pow(beta1, step)) * first[i] / (sqrt(second[i] / (1 - pow(beta2, step))) + epsilon);
        }
        run_op(&op, buffers, THREADS);
        buffers[ADAMW_GRADIENT].data = NULL;
    }
    double bound = moment_type == FORMAT_BF16 ? 0.02 : tolerance(weight_type);
    expect_close(kept, weight, has_master ? bound : 2 * bound, "weight");
    expect_close(&buffers[ADAMW_FIRST], first, moment_type == FORMAT_BF16 ? 0.02 : 1e-6, "first moment");
    expect_close(&buffers[ADAMW_SECOND], second, moment_type == FORMAT_BF16 ? 0.02 : 1e-6, "second moment");
    struct buffer stored = make_buffer(weight_type, COUNT);
    for (int64_t i = 0; i < COUNT && has_master; i++) {
        set(&stored, i, get(kept, i));
        cr_assert_eq(get(&buffers[ADAMW_WEIGHT], i), get(&stored, i), "the weight is not the rounded master");
    }
}

// Runs AdamW and checks the largest magnitude (amax) of the weights that it stores. The last weight is the largest;
// -8.05 rounds up to -8.0625 in bf16.
static void expect_magnitude(float gradient_scale, bool has_master, double amax, double expected)
{
    enum { COUNT = 2500 };
    struct op     op = {.kind = OP_ADAMW, .shape.elements.elements = COUNT};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, has_master ? "ffffffbf" : "fff-ffbf", FORMAT_F32, buffers);
    buffers[ADAMW_FIRST]      = make_buffer(FORMAT_F32, COUNT);
    buffers[ADAMW_SECOND]     = make_buffer(FORMAT_F32, COUNT);
    const struct buffer *kept = &buffers[has_master ? ADAMW_MASTER : ADAMW_WEIGHT];
    set(kept, COUNT - 1, has_master ? -8.05 : -8.0625);
    set(&buffers[ADAMW_WEIGHT], COUNT - 1, -8.0625);
    set(&buffers[ADAMW_SCALE], 0, (double)gradient_scale);
    set(&buffers[ADAMW_AMAX], 0, amax);
    set(&buffers[ADAMW_HYPER], HYPER_LEARNING_RATE, 0.5);
    set(&buffers[ADAMW_HYPER], HYPER_DECAY, 1);
    for (int hyper = HYPER_EPSILON; hyper < HYPER_COUNT; hyper++) {
        set(&buffers[ADAMW_HYPER], hyper, 1);
    }
    double before = get(kept, 17);

    run_op(&op, buffers, THREADS);

    cr_expect_eq(get(&buffers[ADAMW_AMAX], 0), expected, "%.9g", get(&buffers[ADAMW_AMAX], 0));
    cr_expect_eq(get(kept, 17) == before, isnan(gradient_scale));
}

Test(arithmetic, adamw_notes_the_largest_magnitude_of_what_it_leaves)
{
    for (int has_master = 0; has_master <= 1; has_master++) {
        expect_magnitude(0, has_master, 0.25, 4.03125);    // weight decay halves the weights
        expect_magnitude(0, has_master, 5, 5);
        expect_magnitude(NAN, has_master, 0.25, 8.0625);
    }
}

Test(arithmetic, adamw_follows_its_formula_in_every_type)
{
    expect_adamw(FORMAT_F32, FORMAT_F32, false);
    expect_adamw(FORMAT_F32, FORMAT_F32, true);
    expect_adamw(FORMAT_BF16, FORMAT_F32, true);
    expect_adamw(FORMAT_BF16, FORMAT_BF16, true);
    expect_adamw(FORMAT_BF16, FORMAT_BF16, false);
}

// ALiBi slopes as Press et al. define them: for eight heads, and by their rule for numbers of heads that are no power
// of two, such as the 56 heads of MPT 30B.
Test(arithmetic, slopes_are_those_of_alibi)
{
    static const struct {
        int64_t head, heads;
        float   slope;
    } cases[] = {{0, 8, 0.5f},           {1, 8, 0.25f},          {7, 8, 0.00390625f},   {0, 16, 0.70710678f},
                 {15, 16, 0.00390625f},  {0, 1, 0.00390625f},    {0, 2, 0.0625f},       {7, 12, 0.00390625f},
                 {8, 12, 0.70710678f},   {11, 12, 0.088388348f}, {31, 56, 0.00390625f}, {32, 56, 0.91700404f},
                 {55, 56, 0.0170391833f}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        float slope = arithmetic_slope(cases[i].head, cases[i].heads);
        cr_expect_float_eq(slope, cases[i].slope, 1e-7f, "head %d of %d: %.9g", (int)cases[i].head, (int)cases[i].heads,
                           (double)slope);
    }
}

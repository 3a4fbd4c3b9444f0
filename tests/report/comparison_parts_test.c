// SPDX-License-Identifier: MIT
// Tests which parts of a step explain the difference between two synthetic results. The numbers were worked out by
// hand.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comparison_pair.h"

TestSuite(comparison_parts, .init = open_pair, .fini = close_pair);

// Turns the second result into an FP8 run with a median step of 4.8993 s and a traced step of 5.06 s.
static void open_fp8(void)
{
    static const struct waterfall waterfall = {{[WATERFALL_IDEAL]        = 1.84,
                                                [WATERFALL_GEMM]         = 0.92,
                                                [WATERFALL_ATTENTION]    = 0.25,
                                                [WATERFALL_MEMORY]       = 0.8,
                                                [WATERFALL_CAST]         = 0.3,
                                                [WATERFALL_RECOMPUTE]    = 0.6,
                                                [WATERFALL_OPTIMIZER]    = 0.05,
                                                [WATERFALL_EXPOSED_FSDP] = 0.25,
                                                [WATERFALL_STRAGGLERS]   = 0.02,
                                                [WATERFALL_UNEXPLAINED]  = 0.03}};
    static struct op_totals       totals    = {.count   = {[OP_GEMM][PHASE_FORWARD]           = 561,
                                                           [OP_QUANTIZE][PHASE_FORWARD]       = 5,
                                                           [OP_NORM_FORWARD][PHASE_FORWARD]   = 2,
                                                           [OP_NORM_BACKWARD][PHASE_BACKWARD] = 2,
                                                           [OP_ALL_GATHER][PHASE_FORWARD]     = 9},
                                               .seconds = {[OP_GEMM][PHASE_FORWARD]           = 2.0,
                                                           [OP_QUANTIZE][PHASE_FORWARD]       = 0.3,
                                                           [OP_NORM_FORWARD][PHASE_FORWARD]   = 0.125,
                                                           [OP_NORM_BACKWARD][PHASE_BACKWARD] = 0.25,
                                                           [OP_ALL_GATHER][PHASE_FORWARD]     = 9}};
    open_pair();
    scale_steps(&second, 0.7);
    strcpy(second.precision, "fp8");
    second.peak               = 1978e12;
    second.trace.waterfall    = waterfall;
    second.trace.step_seconds = 5.06;
    result_set_op_times(&second, &totals);
    result_derive(&second);
}

Test(comparison_parts, explains_the_whole_difference)
{
    open_fp8();

    compare();
    double difference = 0;
    for (int64_t i = 0; i < comparison.part_count; i++) {
        difference += comparison.parts[i].second - comparison.parts[i].first;
    }
    cr_expect(fabs(difference - (4.8993 - 6.999)) < 1e-12, "%.15g", difference);
    cr_expect(comparison.pace == 2);
    expect_line("  ideal                                3.680      1.840  -1.840000     +0.000000\n");
    expect_line("  attention                        -0.250000   0.250000  +0.500000     +0.375000\n");
    expect_line("  unexplained                       0.039000  -0.130700  -0.169700     -0.150200\n");
    expect_line("  the median step                      6.999      4.899  -2.099700     +1.399800\n");
    expect_no_line("bubble");
}

Test(comparison_parts, compares_families_of_ops_that_compute)
{
    open_fp8();

    compare();
    cr_expect_eq(comparison.family_count, 3);
    expect_line("  gemm                                      5.000          2.000      2.500\n");
    expect_line("  norm                                   0.000000       0.375000          -\n");
    expect_line("  quantize                               0.000000       0.300000          -\n");
}

Test(comparison_parts, says_why_fp8_is_not_twice_as_fast)
{
    open_fp8();

    compare();
    expect_line(
        "why fp8 is not 2.00 times as fast as bf16: it takes 1.399800 s more than 1/2.00\n    of the step\n   30.4%  "
        "memory "
        "       memory-bound ops, which move the same bytes\n   26.8%  attention     attention, which stays in the "
        "higher precision\n   21.4%  cast          casts\n   14.3%  gemm          GEMMs below the lower precision's "
        "peak, or not in it\n    8.9%  exposed-fsdp  exposed communication\n    7.1%  recompute     recompute\n");
    expect_no_line("%  optimizer");
}

// The second run saves 1.05 of 6.999 s: its collectives take 1.2 s less, and contention 0.25 s more.
Test(comparison_parts, names_the_technique_that_gains)
{
    scale_steps(&second, 0.85);
    second.trace.waterfall                               = first.trace.waterfall;
    second.trace.step_seconds                            = first.trace.step_seconds - 1.05;
    second.figures.step.median                           = first.figures.step.median - 1.05;
    first.trace.waterfall.seconds[WATERFALL_EXPOSED_TP]  = 1.2;
    second.trace.waterfall.seconds[WATERFALL_CONTENTION] = 0.25;
    second.trace.waterfall.seconds[WATERFALL_EXPOSED_TP] = 0.1;
    second.trace.waterfall.seconds[WATERFALL_EXPOSED_FSDP] =
        first.trace.waterfall.seconds[WATERFALL_EXPOSED_FSDP] - 0.2;
    set_both("parallel.tp_overlap", "no", "yes");

    compare();
    expect_line("where the step goes, s                 first     second     change\n");
    expect_line("where the second gains 1.050000 s\n"
                "  104.8%  exposed-tp  parallel.tp_overlap: no -> yes\n"
                "   19.0%  exposed-fsdp\n");
}

static int count_lines(const char *from)
{
    int lines = 0;
    for (; *from != '\0'; from++) {
        lines += *from == '\n';
    }
    return lines;
}

// FP8 could halve every part, but each takes 0.7 of its BF16 time. Parts are named from 1/20 of the shortfall on, and
// each part here is 1/19. "unexplained" also has the difference between the median and the traced step, another 1/19.
Test(comparison_parts, names_every_part_where_all_fall_short_alike)
{
    scale_steps(&second, 0.7);
    strcpy(second.precision, "fp8");
    second.peak               = 1978e12;
    first.trace.step_seconds  = 6.999 / (WATERFALL_PARTS + 1) * WATERFALL_PARTS;
    second.trace.step_seconds = first.trace.step_seconds * 0.7;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        first.trace.waterfall.seconds[part]  = 6.999 / (WATERFALL_PARTS + 1);
        second.trace.waterfall.seconds[part] = first.trace.waterfall.seconds[part] * 0.7;
    }

    compare();
    cr_expect_eq(count_lines(strstr(text, "why fp8")), 3 + 18, "%s", text);    // two lines are wrapped
    expect_line("    5.3%  launch        host launches, which are as many\n");
    expect_line("   10.5%  unexplained   gaps between ops, and the difference between measured\n"
                "    steps and the traced one\n");
}

Test(comparison_parts, has_nothing_to_explain_where_fp8_is_twice_as_fast)
{
    scale_steps(&second, 0.4);
    strcpy(second.precision, "fp8");
    second.peak               = 1978e12;
    second.trace.step_seconds = first.trace.step_seconds * 0.4;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        second.trace.waterfall.seconds[part] = first.trace.waterfall.seconds[part] * 0.4;
    }

    compare();
    expect_line("\nfp8 is at least 2.00 times as fast as bf16\n");
    expect_no_line("why fp8");
}

// A faster GPU is no lower precision: its GEMMs have a higher peak, but no cast or kept precision explains a shortfall.
Test(comparison_parts, explains_a_faster_device_by_its_gains)
{
    for (int i = 0; i < 2; i++) {
        open_fp8();
        strcpy(second.precision, i == 0 ? "bf16" : "fp8");
        strcpy(second.device, "NVIDIA B200, 148 multiprocessors");

        compare();
        cr_expect(comparison.pace == 1);
        expect_line("where the second gains 2.099700 s\n   87.6%  ideal\n");
        expect_no_line("beyond");
        expect_no_line("why ");
    }
}

Test(comparison_parts, explains_nothing_without_traced_steps)
{
    scale_steps(&second, 0.7);
    second.trace = (struct result_trace){.step_seconds = NAN};

    compare();
    cr_expect_eq(comparison.part_count, 0);
    expect_line("where the difference is: unknown, a run has no traced step (trace.steps)\n");
}

Test(comparison_parts, expects_twice_the_pace_of_each_class_after_bf16)
{
    static const struct {
        const char *first, *second;
        double      pace;
    } cases[] = {{"fp8", "fp8", 1},  {"bf16", "fp8", 2}, {"bf16", "fp4", 4}, {"fp8", "fp4", 2},
                 {"fp8", "bf16", 1}, {"fp32", "fp8", 1}, {"bf16", "", 1},    {"bf16", "bf16", 1}};
    scale_steps(&second, 1.2);
    first.peak = second.peak = NAN;
    compare();
    expect_no_line("beyond");
    comparison_free(&comparison);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(first.precision, cases[i].first);
        strcpy(second.precision, cases[i].second);
        comparison_init(&comparison, &first, &second, 0.01);
        cr_expect_eq(comparison.pace, cases[i].pace, "%s and %s", cases[i].first, cases[i].second);
        comparison_free(&comparison);
    }
}

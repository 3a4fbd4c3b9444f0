// SPDX-License-Identifier: MIT
// Two made-up results side by side: figures worked out by hand, and what may not be compared.
#include "gswbench/comparison.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "result_fixture.h"

static struct result     first, second;
static struct comparison comparison;

// The second takes `share` of the first's step times.
static void open_pair(double share)
{
    fixture_open(&first);
    fixture_open(&second);
    for (int64_t i = 0; i < second.step_count; i++) {
        second.steps[i].seconds *= share;
    }
    result_derive(&second);
}

static void close_pair(void)
{
    comparison_free(&comparison);
    result_free(&first);
    result_free(&second);
}

static char *text_of(void)
{
    static char  *text;    // static, or gcc 12 takes what it points to for something on the stack
    static size_t bytes;
    FILE         *file = open_memstream(&text, &bytes);
    comparison_write_text(&comparison, file);
    fclose(file);
    return text;
}

static void expect_line(const char *text, const char *line)
{
    cr_expect_not_null(strstr(text, line), "%s is missing in:\n%s", line, text);
}

TestSuite(comparison, .fini = close_pair);

Test(comparison, sets_two_runs_against_each_other)
{
    open_pair(0.8);
    second.steps[7].loss *= 1.02;
    second.steps[49].loss *= 0.995;

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    cr_expect_eq(comparison.step.verdict, CHANGE_FASTER);
    cr_expect(fabs(comparison.step.speedup - 1.25) < 1e-12);
    cr_expect(fabs(comparison.loss.largest - 0.02) < 1e-12 && comparison.loss.largest_step == 7);
    cr_expect(fabs(comparison.loss.last - 0.005) < 1e-12 && comparison.loss.last_step == 49);
    cr_expect(comparison.gradient_norm.largest == 0);
    cr_expect_eq(comparison.setting_count, 0);
    expect_line(text, "FASTER  speed-up 1.250  [95% CI of the medians: 1.250 to 1.250]  step time -20.0%; "
                      "less than 1.0% would not count\n");
    expect_line(text, "step time, s                                6.999          5.599     -20.0%\n");
    expect_line(text, "tokens/s                                    74909          93636     +25.0%\n");
    expect_line(text, "model FLOPs utilization                    52.59%         65.73%     +25.0%\n");
    expect_line(text, "loss: apart by 2.0000% at most (step 7), by 0.5000% in the last common step (49)\n");
    free(text);
}

Test(comparison, sets_each_precision_against_its_own_peak)
{
    open_pair(0.7);
    strcpy(second.precision, "fp8");
    second.peak = second.published_peak = 1979e12;
    result_add_entry(&first.config, &first.config_count, "precision.compute", "bf16");
    result_add_entry(&second.config, &second.config_count, "precision.compute", "fp8");
    result_derive(&second);

    comparison_init(&comparison, &first, &second, 0.01);

    char  *text   = text_of();
    status result = comparison_check(&comparison);
    cr_expect(!failed(&result), "%s", result.text);
    expect_line(text, "# differs precision.compute: bf16 -> fp8\n");
    expect_line(text, "model FLOPs utilization                    52.59%         37.54%     -28.6%\n");
    expect_line(text, "  of a peak in TFLOP/s                        989           1979    +100.1%\n");
    free(text);
}

// The second in FP8: 4.8993 s in the median, 5.06 s traced.
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
    open_pair(0.7);
    strcpy(second.precision, "fp8");
    second.peak               = 1978e12;
    second.trace.waterfall    = waterfall;
    second.trace.step_seconds = 5.06;
    result_set_op_times(&second, &totals);
    result_derive(&second);
}

Test(comparison, explains_the_whole_difference)
{
    open_fp8();

    comparison_init(&comparison, &first, &second, 0.01);

    char  *text       = text_of();
    double difference = 0;
    for (int64_t i = 0; i < comparison.part_count; i++) {
        difference += comparison.parts[i].second - comparison.parts[i].first;
    }
    cr_expect(fabs(difference - (4.8993 - 6.999)) < 1e-12, "%.15g", difference);
    cr_expect(comparison.pace == 2);
    expect_line(text, "  ideal                                     3.680          1.840  -1.840000        +0.000000\n");
    expect_line(text, "  attention                             -0.250000       0.250000  +0.500000        +0.375000\n");
    expect_line(text, "  tracing                               -0.021000      -0.160700  -0.139700        -0.150200\n");
    expect_line(text, "  the median step                           6.999          4.899  -2.099700        +1.399800\n");
    cr_expect_null(strstr(text, "bubble"));
    free(text);
}

Test(comparison, compares_families_of_ops_that_compute)
{
    open_fp8();

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    cr_expect_eq(comparison.family_count, 3);
    expect_line(text, "  gemm                                      5.000          2.000      2.500\n");
    expect_line(text, "  norm                                   0.000000       0.375000          -\n");
    expect_line(text, "  quantize                               0.000000       0.300000          -\n");
    free(text);
}

Test(comparison, says_why_fp8_is_not_twice_as_fast)
{
    open_fp8();

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    expect_line(text, "why fp8 is not 2.00 times as fast as bf16: it takes 1.399800 s more than 1/2.00 of the step\n"
                      "   30.4%  memory        ops that memory bounds, which move as many bytes\n"
                      "   26.8%  attention     attention, which stays in the wider type\n"
                      "   21.4%  cast          casts\n"
                      "   14.3%  gemm          products that do not reach the narrower type's peak, or are not in it\n"
                      "    8.9%  exposed-fsdp  transfers that nothing hides\n"
                      "    7.1%  recompute     what is computed again\n");
    cr_expect_null(strstr(text, "%  optimizer"));
    free(text);
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

// Each of them is an eighteenth of what is missing, more than the twentieth that is worth a line.
Test(comparison, names_every_part_where_all_fall_short_alike)
{
    open_pair(0.7);
    strcpy(second.precision, "fp8");
    second.peak               = 1978e12;
    first.trace.step_seconds  = 6.999 / (WATERFALL_PARTS + 1) * WATERFALL_PARTS;
    second.trace.step_seconds = first.trace.step_seconds * 0.7;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        first.trace.waterfall.seconds[part]  = 6.999 / (WATERFALL_PARTS + 1);
        second.trace.waterfall.seconds[part] = first.trace.waterfall.seconds[part] * 0.7;
    }

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    cr_expect_eq(count_lines(strstr(text, "why fp8")), 1 + 18, "%s", text);
    free(text);
}

Test(comparison, explains_nothing_without_traced_steps)
{
    open_pair(0.7);
    second.trace = (struct result_trace){.step_seconds = NAN};

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    cr_expect_eq(comparison.part_count, 0);
    expect_line(text, "where the difference is: not known, a run has no traced step (profile.trace_steps)\n");
    free(text);
}

Test(comparison, asks_for_no_pace_within_one_precision)
{
    open_pair(0.7);

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    cr_expect(comparison.pace == 1);
    cr_expect_null(strstr(text, "why"));
    cr_expect_null(strstr(text, "beyond"));
    free(text);
}

Test(comparison, refuses_results_of_different_jobs)
{
    open_pair(1);
    result_add_entry(&first.config, &first.config_count, "train.recompute", "none");
    result_add_entry(&second.config, &second.config_count, "train.recompute", "full");
    result_add_entry(&second.config, &second.config_count, "parallel.pp", "2");
    second.mesh.world = 128;
    strcpy(second.backend, "host");
    strcpy(first.device, "GPU one, driver 1");
    strcpy(second.device, "GPU on, driver 1");
    strcpy(second.communicator, "local");

    comparison_init(&comparison, &first, &second, 0.01);

    status result = comparison_check(&comparison);
    char  *text   = text_of();
    cr_expect_eq(result.exit_code, EXIT_COMPARE);
    cr_expect_str_eq(
        result.text,
        "these results cannot be compared: backend cuda and host, communicator "
        "mpi and local, device GPU one, driver 1 and GPU on, driver 1, ranks 64 and 128, and 1 more; --force "
        "compares them nevertheless");
    expect_line(text, "# NOT COMPARABLE parallel.pp:  -> 2\n");
    expect_line(text, "# differs train.recompute: none -> full\n");
    free(text);
}

Test(comparison, refuses_every_other_model_batch_and_layout)
{
    static const char *const names[] = {"model.layers",     "model.activation", "parallel.dp",        "parallel.fsdp",
                                        "parallel.tp",      "parallel.cp",      "parallel.ep",        "parallel.pp",
                                        "parallel.vp",      "parallel.zero",    "train.global_batch", "train.sequence",
                                        "train.micro_batch"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        open_pair(1);
        result_add_entry(&first.config, &first.config_count, names[i], "1");
        result_add_entry(&second.config, &second.config_count, names[i], "2");

        comparison_init(&comparison, &first, &second, 0.01);

        status result = comparison_check(&comparison);
        cr_expect_eq(result.exit_code, EXIT_COMPARE, "%s", names[i]);
        close_pair();
    }
}

Test(comparison, lets_the_rest_differ)
{
    static const char *const names[] = {"precision.moments",    "train.recompute", "parallel.tp_overlap",
                                        "parallel.zero_gather", "run.seed",        "model.preset",
                                        "hardware.profile",     "software.x",      "run.output"};
    open_pair(1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        result_add_entry(&first.config, &first.config_count, names[i], "1");
        result_add_entry(&second.config, &second.config_count, names[i], "2");
    }
    strcpy(first.device, "GPU one, driver 1");
    strcpy(second.device, "GPU one, driver 2");

    comparison_init(&comparison, &first, &second, 0.01);

    status result = comparison_check(&comparison);
    cr_expect(!failed(&result), "%s", result.text);
    cr_expect_eq(comparison.setting_count, 6);
    cr_expect_str_eq(comparison.settings[0].name, "device");
    cr_expect_str_eq(comparison.settings[1].name, "parallel.tp_overlap");
    cr_expect_str_eq(comparison.settings[2].name, "parallel.zero_gather");
    cr_expect_str_eq(comparison.settings[5].name, "train.recompute");
}

Test(comparison, refuses_runs_without_figures)
{
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        open_pair(1);
        first.verdict = second.verdict = verdict;

        comparison_init(&comparison, &first, &second, 0.01);

        status result = comparison_check(&comparison);
        cr_expect_eq(failed(&result), verdict != VERDICT_VALID && verdict != VERDICT_DEGRADED, "%d", verdict);
        close_pair();
    }
}

Test(comparison, refuses_runs_that_a_profiler_watched)
{
    open_pair(1);
    result_add_reason(&second, &(struct result_reason){.id = "profiled", .verdict = VERDICT_VALID});

    comparison_init(&comparison, &first, &second, 0.01);

    status result = comparison_check(&comparison);
    cr_expect_str_eq(result.text, "these results cannot be compared: profiled no and yes; "
                                  "--force compares them nevertheless");
}

Test(comparison, says_nothing_where_nothing_was_measured)
{
    open_pair(1);
    second.step_count = 0;
    result_derive(&second);

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    cr_expect_eq(comparison.step.verdict, CHANGE_AMBIGUOUS);
    cr_expect(isnan(comparison.loss.largest));
    expect_line(text, "step time, s                                6.999              -\n");
    cr_expect_null(strstr(text, "nan"));
    free(text);
}

Test(comparison, makes_foreign_texts_safe)
{
    open_pair(1);
    fixture_poison(&second);
    result_add_entry(&second.config, &second.config_count, "model.\x1b[2J", "\x1b[31m");

    comparison_init(&comparison, &first, &second, 0.01);

    char  *text   = text_of();
    status result = comparison_check(&comparison);
    cr_expect_null(strchr(text, '\x1b'));
    cr_expect_null(strchr(result.text, '\x1b'));
    free(text);
}

Test(comparison, is_json_for_programs)
{
    open_pair(0.5);
    char  *text = NULL;
    size_t bytes;
    comparison_init(&comparison, &first, &second, 0.01);

    FILE *file = open_memstream(&text, &bytes);
    cr_assert(comparison_write_json(&comparison, file));
    fclose(file);

    json_t *document = json_loads(text, 0, NULL), *step = json_object_get(document, "step_time");
    cr_expect_str_eq(json_string_value(json_object_get(document, "schema")), "gswbench.comparison/1");
    cr_expect_str_eq(json_string_value(json_object_get(step, "verdict")), "faster");
    cr_expect(json_real_value(json_object_get(step, "speedup")) == 2);
    cr_expect_not_null(json_object_get(json_object_get(document, "second"), "result"));
    json_decref(document);
    free(text);
}

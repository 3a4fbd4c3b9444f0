// SPDX-License-Identifier: MIT
// Impossible numbers make a run INVALID or leave it without a utilization. No utilization above the peak is ever
// printed.
#include <jansson.h>
#include <math.h>

#include "result_suite.h"

TestSuite(impossible_numbers, .init = open_result, .fini = close_result);

enum number {
    POSSIBLE,
    CLOCK_AHEAD,
    CLOCK_BEHIND,
    STEP_OF_NOTHING,
    STEP_BACKWARDS,
    STEP_WITHOUT_END,
    STEP_WITHOUT_TIME,
    STEP_ABOVE_PEAK,
    RUN_ABOVE_PEAK,
    UNKNOWN_DEVICE,
    COUNTED_ABOVE_PEAK,
};

static void make(enum number number)
{
    static const double seconds[] = {[STEP_OF_NOTHING]   = 0,
                                     [STEP_BACKWARDS]    = -7,
                                     [STEP_WITHOUT_END]  = INFINITY,
                                     [STEP_WITHOUT_TIME] = NAN,
                                     [STEP_ABOVE_PEAK]   = 4.39};
    reopen_result();
    if (number == CLOCK_AHEAD || number == CLOCK_BEHIND) {    // by more than 1 % of 379 s
        result.ranks[1].clock_drift_seconds = number == CLOCK_AHEAD ? 3.9 : -3.9;
    } else if (number >= STEP_OF_NOTHING && number <= STEP_ABOVE_PEAK) {
        result.steps[20].seconds = seconds[number];
    } else if (number == RUN_ABOVE_PEAK) {
        for (int64_t i = 0; i < result.step_count; i++) {
            result.steps[i].seconds = 1e-3;
        }
    } else if (number == UNKNOWN_DEVICE) {
        result.peak = NAN;
        strcpy(result.peak_source, "no hardware profile for the device");
    } else if (number == COUNTED_ABOVE_PEAK) {    // counts both triangles of causal attention; one is computed
        result.flops_per_sequence[FLOPS_PUBLISHED] = 3.6e15;
    }
    result_check(&result);
}

// Returns the largest utilization in result.json; each is null or at most 1.
static double largest_share(void)
{
    char   *text     = fixture_render(report_write_json, &result);
    json_t *document = json_loads(text, 0, NULL), *value;
    double  largest  = 0;
    cr_assert_not_null(document, "%s", text);
    json_t *figures = json_object_get(document, result_is_right(&result) ? "result" : "unverified");
    json_t *shares  = json_object_get(figures, "mfu");
    cr_assert_eq(json_object_size(shares), FLOPS_COUNT);
    const char *key;
    json_object_foreach(shares, key, value)
    {
        cr_expect(json_is_null(value) || json_is_real(value), "%s", key);
        largest = fmax(largest, json_number_value(value));
    }
    json_decref(document);
    free(text);
    return largest;
}

Test(impossible_numbers, make_a_run_invalid_or_leave_it_without_a_utilization)
{
    static const struct {
        enum number  number;
        enum verdict verdict;
        const char  *id;
        const char  *utilization;    // the line, or NULL
    } cases[] = {
        {POSSIBLE, VERDICT_VALID, NULL, "Model flops utilization: 52.59%  published 52.59%"},
        {CLOCK_AHEAD, VERDICT_INVALID, "clock", NULL},
        {CLOCK_BEHIND, VERDICT_INVALID, "clock", NULL},
        {STEP_OF_NOTHING, VERDICT_INVALID, "clock", NULL},
        {STEP_BACKWARDS, VERDICT_INVALID, "clock", NULL},
        {STEP_WITHOUT_END, VERDICT_INVALID, "clock", NULL},
        {STEP_WITHOUT_TIME, VERDICT_INVALID, "clock", NULL},
        {STEP_ABOVE_PEAK, VERDICT_INVALID, "above-peak", NULL},
        {RUN_ABOVE_PEAK, VERDICT_INVALID, "above-peak", NULL},
        {UNKNOWN_DEVICE, VERDICT_VALID, NULL, "Model flops utilization: none (no hardware profile for the device)\n"},
        {COUNTED_ABOVE_PEAK, VERDICT_VALID, NULL,
         "Model flops utilization: none (published would exceed the peak)  full 52.60%"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make(cases[i].number);
        cr_expect_eq(result.verdict, cases[i].verdict, "case %zu: %s", i, result_verdict_names[result.verdict]);
        cr_expect_eq(result.exit_code, cases[i].verdict == VERDICT_VALID ? 0 : 5, "case %zu", i);
        cr_assert_eq(result.reason_count, cases[i].id != NULL, "case %zu: %d reasons", i, (int)result.reason_count);
        if (cases[i].id != NULL) {
            cr_expect_str_eq(result.reasons[0].id, cases[i].id, "case %zu", i);
        }
        if (cases[i].utilization != NULL) {
            expect_in(report_write_result, cases[i].utilization);
        } else {
            expect_not_in(report_write_result, "tilization");
        }
        cr_expect_leq(largest_share(), 1.0, "case %zu", i);
    }
}

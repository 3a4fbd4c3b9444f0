// SPDX-License-Identifier: MIT
// Figures against the published table, verdicts against made-up runs, JSON against the struct.
#include "gswbench/result.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/status.h"
#include "result_fixture.h"

Test(result, derives_the_published_figures)
{
    struct result result;
    fixture_open(&result);

    cr_expect(result.figures.step.median == 6.999);
    cr_expect(result.figures.step.low == 6.998 && result.figures.step.high == 7.0);
    cr_expect(result.figures.warmup_steps == 10 && result.figures.measured_steps == 40);
    cr_expect(result.figures.convention == FLOPS_PUBLISHED);
    cr_expect(fabs(result.figures.tokens_per_second - 74908.99) < 0.005);
    cr_expect(fabs(result.figures.tokens_per_second_per_rank - 1170.453) < 0.0005);
    cr_expect(fabs(result.figures.teraflops_per_rank - 520.0743) < 0.00005, "%.6f", result.figures.teraflops_per_rank);
    cr_expect(fabs(100 * result.figures.utilization[FLOPS_PUBLISHED] - 52.586) < 0.0005);
    cr_expect(fabs(100 * result.figures.utilization[FLOPS_FULL] - 52.604) < 0.0005);
    cr_expect(fabs(result.figures.days_per_trillion_tokens - 154.51) < 0.005);
    cr_expect(result.figures.published_ratio == 1);
    cr_expect(fabs(result.figures.mean_35_44_seconds - 6.999) < 1e-12);
    cr_expect(result.figures.last_step_seconds == 7.0);
    result_free(&result);
}

Test(result, takes_the_published_peak_of_the_same_device_only)
{
    struct result result;
    fixture_open(&result);

    result.published_peak = 989.5e12;
    result_derive(&result);
    cr_expect(fabs(100 * result.figures.utilization[FLOPS_PUBLISHED] - 52.559) < 0.0005);

    result.published_peak = 312e12;
    result_derive(&result);
    cr_expect(fabs(100 * result.figures.utilization[FLOPS_PUBLISHED] - 52.586) < 0.0005);

    result_free(&result);
}

Test(result, has_no_utilization_without_a_peak)
{
    struct result result;
    fixture_open(&result);
    result.peak = NAN;

    result_derive(&result);

    for (int i = 0; i < FLOPS_COUNT; i++) {
        cr_expect(isnan(result.figures.utilization[i]));
    }
    cr_expect(fabs(result.figures.tokens_per_second - 74908.99) < 0.005);
    result_free(&result);
}

Test(result, counts_in_full_where_nothing_is_published)
{
    struct result result;
    fixture_open(&result);
    result.flops_per_sequence[FLOPS_PUBLISHED] = NAN;
    result.published_seconds                   = NAN;

    result_derive(&result);

    cr_expect(result.figures.convention == FLOPS_FULL);
    cr_expect(isnan(result.figures.utilization[FLOPS_PUBLISHED]));
    cr_expect(isnan(result.figures.published_ratio));
    result_free(&result);
}

Test(result, knows_steps_35_to_44_only_when_they_ran)
{
    struct result result;
    fixture_open(&result);

    result.step_count = 45;
    result_derive(&result);
    cr_expect(!isnan(result.figures.mean_35_44_seconds));

    result.step_count = 44;
    result_derive(&result);
    cr_expect(isnan(result.figures.mean_35_44_seconds));
    result_free(&result);
}

Test(result, survives_a_run_without_steps)
{
    struct result result;
    fixture_open(&result);
    result.step_count = 0;

    result_derive(&result);

    cr_expect(isnan(result.figures.step.median) && isnan(result.figures.last_step_seconds));
    cr_expect(result.figures.measured_steps == 0);
    result_free(&result);
}

// The verdict and the reason that one change to a good run leads to.
enum change {
    NOTHING,
    LOSS_NAN,
    NORM_INFINITE,
    LOSS_ZERO,
    NORM_CONSTANT,
    LOSS_CONSTANT,
    REPLICAS,
    CLOCK_BACK,
    CLOCK_DRIFT,
    ALLOCATION,
    NOT_COMPUTED
};

static void apply(struct result *result, enum change change)
{
    for (int64_t i = 0; i < result->step_count; i++) {
        result->steps[i].gradient_norm = change == NORM_CONSTANT ? 1.5 : result->steps[i].gradient_norm;
        result->steps[i].loss          = change == LOSS_CONSTANT ? 9.5 : result->steps[i].loss;
    }
    result->steps[7].loss                = change == LOSS_NAN ? NAN : change == LOSS_ZERO ? 0 : result->steps[7].loss;
    result->steps[7].gradient_norm       = change == NORM_INFINITE ? INFINITY : result->steps[7].gradient_norm;
    result->steps[7].seconds             = change == CLOCK_BACK ? -0.5 : result->steps[7].seconds;
    result->ranks[1].clock_drift_seconds = change == CLOCK_DRIFT ? -7.3 : 0.01;    // of 364 s
    result->replica_groups_equal -= change == REPLICAS;
    result->step_allocations = change == ALLOCATION;
    result->computes         = change != NOT_COMPUTED;
}

Test(result, judges_a_run)
{
    static const struct {
        enum change  change;
        enum verdict verdict;
        int          exit_code;
        const char  *id;
    } cases[] = {
        {NOTHING, VERDICT_VALID, 0, NULL},
        {LOSS_NAN, VERDICT_INVALID, 5, "not-finite"},
        {NORM_INFINITE, VERDICT_INVALID, 5, "not-finite"},
        {LOSS_ZERO, VERDICT_INVALID, 5, "zero"},
        {NORM_CONSTANT, VERDICT_INVALID, 5, "constant"},
        {LOSS_CONSTANT, VERDICT_INVALID, 5, "constant"},
        {REPLICAS, VERDICT_INVALID, 5, "replicas-differ"},
        {CLOCK_BACK, VERDICT_INVALID, 5, "clock"},
        {CLOCK_DRIFT, VERDICT_INVALID, 5, "clock"},
        {ALLOCATION, VERDICT_INVALID, 5, "allocation"},
        {NOT_COMPUTED, VERDICT_UNVERIFIED, 5, "not-computed"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result result;
        fixture_open(&result);
        apply(&result, cases[i].change);

        result_check(&result);

        cr_expect(result.verdict == cases[i].verdict, "case %zu: %s", i, result_verdict_names[result.verdict]);
        cr_expect(result.exit_code == cases[i].exit_code, "case %zu: %d", i, (int)result.exit_code);
        cr_expect(cases[i].id == NULL ? result.reason_count == 0
                                      : result.reason_count == 1 && strcmp(result.reasons[0].id, cases[i].id) == 0,
                  "case %zu: %d reasons", i, (int)result.reason_count);
        result_free(&result);
    }
}

Test(result, keeps_the_gravest_verdict)
{
    struct result        result = {0};
    struct result_reason reason = {.verdict = VERDICT_PARTIAL, .id = "stopped"};
    result_add_reason(&result, &reason);
    reason.verdict = VERDICT_DEGRADED;
    result_add_reason(&result, &reason);

    cr_expect(result.verdict == VERDICT_PARTIAL);
    cr_expect(result.reason_count == 2);
    result_free(&result);
}

// Four experts: of 40 choices of the first layer in each step, and 20 of the second.
static void add_routings(struct result *result, int64_t steps)
{
    static const float routings[3][2 * 6] = {
        {10, 10, 10, 10, 0, 0.5f, 5, 5, 5, 5, 0, 0.5f},
        {20, 10, 6, 4, 4, 0.75f, 5, 5, 5, 5, 0, 0.5f},
        {10, 16, 6, 8, 2, 0.25f, 5, 12, 3, 0, 7, 1.5f},
    };
    *result = (struct result){.method = RESULT_METHOD, .planned_steps = steps, .planned_warmup = 1};
    result_reserve(result, steps, 1, 2);
    for (int64_t i = 0; i < steps; i++) {
        result->steps[result->step_count++] = (struct result_step){.index = i, .seconds = 1};
        result_add_routing(result, routings[i], 4);
    }
}

Test(result, measures_the_load_of_experts)
{
    struct result result;
    add_routings(&result, 3);
    const struct result_layer *first = &result.layer_loads[0], *second = &result.layer_loads[1];

    cr_expect(fabs(first->last[LOAD_BUSIEST] - 1.6) < 1e-12 && fabs(first->last[LOAD_IDLEST] - 0.6) < 1e-12);
    cr_expect(fabs(first->mean[LOAD_BUSIEST] - 1.8) < 1e-12 && fabs(first->mean[LOAD_IDLEST] - 0.5) < 1e-12);
    cr_expect(fabs(first->last[LOAD_DROPPED] - 0.05) < 1e-12 && fabs(first->mean[LOAD_DROPPED] - 0.075) < 1e-12);
    cr_expect(first->last[LOAD_AUXILIARY] == 0.25 && first->mean[LOAD_AUXILIARY] == 0.5);
    cr_expect(second->layer == 1 && fabs(second->last[LOAD_BUSIEST] - 2.4) < 1e-12);
    cr_expect(second->last[LOAD_IDLEST] == 0 && fabs(second->mean[LOAD_BUSIEST] - 1.7) < 1e-12);
    cr_expect(result.steps[0].dropped == 0 && fabs(result.steps[1].dropped - 4.0 / 60) < 1e-12);
    cr_expect(fabs(result.steps[2].dropped - 9.0 / 60) < 1e-12);
    result_free(&result);
}

Test(result, has_no_mean_load_without_a_measured_step)
{
    struct result result;
    add_routings(&result, 1);

    cr_expect(result.layer_loads[0].last[LOAD_BUSIEST] == 1);
    cr_expect(isnan(result.layer_loads[0].mean[LOAD_BUSIEST]));
    result_free(&result);
}

static json_t *write_and_parse(const struct result *result)
{
    char  *text  = NULL;
    size_t bytes = 0;
    FILE  *file  = open_memstream(&text, &bytes);
    cr_assert(result_write_json(result, file));
    fclose(file);
    json_error_t error;
    json_t      *document = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    cr_assert(document != NULL, "%s at %d", error.text, error.position);
    free(text);
    return document;
}

static double real_at(json_t *document, const char *group, const char *key)
{
    return json_real_value(json_object_get(json_object_get(document, group), key));
}

Test(result, writes_json_equal_to_the_last_digit)
{
    struct result result;
    fixture_open(&result);

    json_t *document = write_and_parse(&result);
    json_t *steps    = json_object_get(document, "steps");

    cr_assert(json_array_size(steps) == 50);
    for (size_t i = 0; i < 50; i++) {
        json_t *step = json_array_get(steps, i);
        cr_expect(json_real_value(json_object_get(step, "loss")) == result.steps[i].loss);
        cr_expect(json_real_value(json_object_get(step, "grad_norm")) == result.steps[i].gradient_norm);
        cr_expect(json_real_value(json_object_get(step, "time_s")) == result.steps[i].seconds);
    }
    cr_expect_str_eq(json_string_value(json_object_get(document, "schema")), "gswbench.result/1");
    cr_expect_str_eq(json_string_value(json_object_get(document, "status")), "valid");
    json_t *waterfall = json_object_get(document, "waterfall"), *ops = json_object_get(waterfall, "op_times");
    cr_expect(real_at(waterfall, "parts_s", "exposed-fsdp") == 0.25);
    cr_expect(json_array_size(ops) == 2);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(ops, 1), "phase")), "backward");
    cr_expect(json_real_value(json_object_get(json_array_get(ops, 1), "seconds")) == 3.25);
    cr_expect(real_at(document, "result", "tokens_per_s") == result.figures.tokens_per_second);
    cr_expect(real_at(document, "result", "days_1t") == result.figures.days_per_trillion_tokens);
    cr_expect(json_object_get(document, "unverified") == NULL);
    json_decref(document);
    result_free(&result);
}

// Every part under its own name, which predictions use, too.
Test(result, names_parts_of_the_waterfall_as_everybody_does)
{
    struct result result;
    fixture_open(&result);
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        result.trace.waterfall.seconds[part] = part + 0.5;
    }

    json_t *document = write_and_parse(&result);
    json_t *parts    = json_object_get(json_object_get(document, "waterfall"), "parts_s");

    cr_expect_eq(json_object_size(parts), WATERFALL_PARTS);
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        cr_expect_eq(json_real_value(json_object_get(parts, waterfall_part_names[part])), part + 0.5, "%s",
                     waterfall_part_names[part]);
    }
    json_decref(document);
    result_free(&result);
}

Test(result, knows_what_the_ideal_step_takes)
{
    struct result result;
    fixture_open(&result);

    // 128 sequences on 64 devices.
    cr_expect_float_eq(result_ideal_seconds(&result, FLOPS_PUBLISHED), 2 * 1.82e15 / 989e12, 1e-12);
    result.peak = NAN;
    cr_expect(isnan(result_ideal_seconds(&result, FLOPS_FULL)));
    result_free(&result);
}

Test(result, keeps_figures_of_an_invalid_run_apart)
{
    struct result result;
    fixture_open(&result);
    result.steps[3].loss = NAN;
    result_check(&result);

    json_t *document = write_and_parse(&result);

    cr_expect(json_object_get(document, "result") == NULL);
    cr_expect(real_at(document, "unverified", "tokens_per_s") > 0);
    cr_expect(json_is_null(json_object_get(json_array_get(json_object_get(document, "steps"), 3), "loss")));
    json_decref(document);
    result_free(&result);
}

Test(result, escapes_hostile_texts_in_json)
{
    struct result result;
    fixture_open(&result);
    fixture_poison(&result);

    json_t     *document = write_and_parse(&result);
    json_t     *config   = json_object_get(document, "config");
    const char *value    = json_string_value(json_object_get(json_object_get(config, "merged"), "model.preset"));

    cr_expect_str_eq(json_string_value(json_object_get(config, "name")), "</script><b>\"&'?[31m");
    cr_expect_str_eq(value, "a?b?c?\\");
    json_decref(document);
    result_free(&result);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    fputs(text, file);
    fclose(file);
}

Test(result, reads_back_what_it_wrote)
{
    struct result result, again = {0};
    char          path[] = "/tmp/gswbench_result_XXXXXX";
    fixture_open(&result);
    result.layer_loads    = memory_resize(result.layer_loads, sizeof(*result.layer_loads));
    result.layer_loads[0] = (struct result_layer){.layer = 1, .last = {1.5, 0.5, 0.125, 0.01}, .mean = {3, 2, 1, NAN}};
    result.layer_load_count = 1;
    int handle              = mkstemp(path);
    cr_assert(handle >= 0);
    FILE *file = fdopen(handle, "w");
    cr_assert(result_write_json(&result, file));
    fclose(file);

    status read = result_read_json(&again, path);

    cr_assert(!failed(&read), "%s", read.text);
    json_t *first = write_and_parse(&result), *second = write_and_parse(&again);
    cr_expect(json_equal(first, second));
    cr_expect(again.figures.step.low == 6.998);
    json_decref(first);
    json_decref(second);
    result_free(&result);
    result_free(&again);
    unlink(path);
}

Test(result, refuses_files_that_are_no_result)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ":1:0: not a result: '[' or '{' expected near end of file"},
        {"[1, 2]", ": not a result: \"schema\" must be \"gswbench.result/1\""},
        {"{\"schema\": 1}", ": not a result: \"schema\" must be \"gswbench.result/1\""},
        {"{\"schema\": \"gswbench.result/2\"}", ": not a result: \"schema\" must be \"gswbench.result/1\""},
        {"{\"a\": 1, \"a\": 2}", ":1:12: not a result: duplicate object key near '\"a\"'"},
        {"{\"schema\": \"gswbench.result/1\"}", ": run_id is missing"},
        {"{\"schema\": \"gswbench.result/1\", \"run_id\": 7}", ": run_id must be a text of at most 31 bytes"},
        {"{\"schema\": \"gswbench.result/1\", \"run_id\": \"0123456789012345678901234567890123456789\"}",
         ": run_id must be a text of at most 31 bytes"},
        {"{\"schema\": \"gswbench.result/1\", \"run_id\": \"\", \"status\": \"great\"}",
         ": status must be one of its known words"},
        {"{\"schema\": \"gswbench.result/1\", \"run_id\": \"\", \"status\": \"valid\", \"reasons\": {}}",
         ": reasons must be a list of at most a million elements"},
        {"{\"schema\": \"gswbench.result/1\", \"run_id\": \"\", \"status\": \"valid\", \"reasons\": [{\"id\": \"x\"}]}",
         ": reasons[0]: verdict is missing"},
    };
    char path[] = "/tmp/gswbench_result_XXXXXX";
    cr_assert(mkstemp(path) >= 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result result = {0};
        char          expected[256];
        write_file(path, cases[i].text);
        snprintf(expected, sizeof(expected), "%s%s", path, cases[i].expected);

        status read = result_read_json(&result, path);

        cr_expect_str_eq(read.text, expected);
        cr_expect(read.exit_code == EXIT_CONFIG);
        result_free(&result);
    }
    unlink(path);
}

Test(result, refuses_paths_that_are_no_files)
{
    struct result result = {0};

    status folder = result_read_json(&result, "/tmp");
    status absent = result_read_json(&result, "/tmp/gswbench/absent.json");
    status device = result_read_json(&result, "/dev/zero");

    cr_expect_str_eq(folder.text, "/tmp: not a regular file of at most 256 MiB");
    cr_expect_str_eq(absent.text, "/tmp/gswbench/absent.json: No such file or directory");
    cr_expect_str_eq(device.text, "/dev/zero: not a regular file of at most 256 MiB");
}

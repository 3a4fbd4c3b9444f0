// SPDX-License-Identifier: MIT
// Tests result.json: it has every field of the struct, reading it restores the result, and other files are refused.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "gswbench/result.h"
#include "line.h"
#include "result_suite.h"
#include "success.h"

TestSuite(result_json, .init = open_result, .fini = close_result);

static double real_at(json_t *document, const char *group, const char *key)
{
    return json_real_value(json_object_get(json_object_get(document, group), key));
}

Test(result_json, writes_json_equal_to_the_last_digit)
{
    json_t *document = fixture_json(&result);
    json_t *steps    = json_object_get(document, "steps");

    cr_assert(json_array_size(steps) == 50);
    for (size_t i = 0; i < 50; i++) {
        json_t *step = json_array_get(steps, i);
        cr_expect(json_real_value(json_object_get(step, "loss")) == result.steps[i].loss);
        cr_expect(json_real_value(json_object_get(step, "grad_norm")) == result.steps[i].gradient_norm);
        cr_expect(json_real_value(json_object_get(step, "time_s")) == result.steps[i].seconds);
    }
    cr_expect_str_eq(json_string_value(json_object_get(document, "schema")), "gswbench.result/5");
    cr_expect_str_eq(json_string_value(json_object_get(document, "status")), "valid");
    json_t *waterfall = json_object_get(document, "waterfall"), *ops = json_object_get(waterfall, "op_times");
    cr_expect(real_at(waterfall, "parts_s", "exposed_fsdp") == 0.25);
    cr_expect(json_array_size(ops) == 2);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(ops, 1), "phase")), "backward");
    cr_expect(json_real_value(json_object_get(json_array_get(ops, 1), "time_s")) == 3.25);
    cr_expect(real_at(document, "result", "tokens_per_s") == result.figures.tokens_per_second);
    cr_expect(real_at(document, "result", "days_1t") == result.figures.days_per_trillion_tokens);
    cr_expect(json_object_get(document, "unverified") == NULL);
    json_decref(document);
}

// The parts of a waterfall have the same names in results and in predictions.
Test(result_json, names_parts_of_the_waterfall_as_everybody_does)
{
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        result.trace.waterfall.seconds[part]       = part + 0.5;
        result.expectation.waterfall.seconds[part] = part + 0.25;
    }

    json_t *document = fixture_json(&result);
    json_t *parts    = json_object_get(json_object_get(document, "waterfall"), "parts_s");
    json_t *expected = json_object_get(json_object_get(document, "expected"), "parts_s");

    cr_expect_eq(json_object_size(parts), WATERFALL_PARTS);
    cr_expect_eq(json_object_size(expected), WATERFALL_PARTS);
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        const char *key = line_of("%s", waterfall_part_names[part]);
        for (char *dash = strchr(key, '-'); dash != NULL; dash = strchr(key, '-')) {
            *dash = '_';
        }
        cr_expect_eq(json_real_value(json_object_get(parts, key)), part + 0.5, "%s", key);
        cr_expect_eq(json_real_value(json_object_get(expected, key)), part + 0.25, "%s", key);
    }
    json_decref(document);
}

Test(result_json, keeps_figures_of_an_invalid_run_apart)
{
    result.steps[3].loss = NAN;
    result_check(&result);

    json_t *document = fixture_json(&result);

    cr_expect(json_object_get(document, "result") == NULL);
    cr_expect(real_at(document, "unverified", "tokens_per_s") > 0);
    cr_expect(json_is_null(json_object_get(json_array_get(json_object_get(document, "steps"), 3), "loss")));
    json_decref(document);
}

static json_t *value_at(json_t *document, size_t rank, const char *group, const char *key, const char *moment)
{
    json_t *observation = json_array_get(json_object_get(document, "observations"), rank);
    return json_object_get(json_object_get(json_object_get(observation, group), key), moment);
}

Test(result_json, has_every_observation_under_its_name)
{
    fixture_observe(&result, 2);
    result.observations[1].counters[COUNTER_ECC_CORRECTED]       = (struct counter_values){5, 9, 4};
    result.observations[1].throttles[THROTTLE_POWER_CAP].samples = 38;

    json_t *document = fixture_json(&result), *own = json_array_get(json_object_get(document, "observations"), 1);

    static const struct {
        const char *key, *text;
    } texts[] = {{"name", "NVIDIA H100 80GB HBM3"},
                 {"uuid", "GPU-1"},
                 {"pci", "00000000:02:00.0"},
                 {"driver", "580.65.06"},
                 {"energy_source", "counter"}};
    static const struct {
        const char *group, *key, *moment;
        double      value;
    } values[] = {{"gauges", "sm_clock_mhz", "before", 345.0},   {"gauges", "sm_clock_mhz", "minimum", 1740.0},
                  {"gauges", "sm_clock_mhz", "median", 1755.0},  {"gauges", "power_w", "maximum", 699.0},
                  {"gauges", "temperature_c", "after", 64.0},    {"counters", "ecc_corrected", "before", 5.0},
                  {"counters", "ecc_corrected", "after", 9.0},   {"counters", "ecc_corrected", "growth", 4.0},
                  {"throttles", "sw_power_cap", "samples", 38.0}};
    cr_expect_eq(json_array_size(json_object_get(document, "observations")), 2);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_expect_str_eq(json_string_value(json_object_get(own, texts[i].key)), texts[i].text);
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        json_t *value = value_at(document, 1, values[i].group, values[i].key, values[i].moment);
        cr_expect_eq(json_real_value(value), values[i].value, "%s %s", values[i].key, values[i].moment);
    }
    cr_expect_eq(json_integer_value(json_object_get(own, "rank")), 1);
    cr_expect_eq(json_integer_value(json_object_get(own, "samples")), 40);
    cr_expect_eq(json_real_value(json_object_get(own, "sampling_s")), 0.0625);
    cr_expect_eq(json_real_value(json_object_get(own, "energy_j")), 8000.0);
    json_t *figures = json_object_get(document, "result");
    cr_expect_eq(json_real_value(json_object_get(figures, "energy_j_per_step")), 400.0);
    cr_expect_eq(json_real_value(json_object_get(figures, "tokens_per_j")), 1310.72);
    json_decref(document);
}

// An unknown value is written as null. 0 would be a measured value.
Test(result_json, has_null_for_what_nobody_said)
{
    fixture_observe(&result, 2);
    observation_init(&result.observations[0], "no library");
    result_derive(&result);

    json_t *document = fixture_json(&result), *own = json_array_get(json_object_get(document, "observations"), 0);

    cr_expect_str_eq(json_string_value(json_object_get(own, "missing")), "no library");
    static const char *const groups[]  = {"gauges", "counters", "throttles"};
    static const int         members[] = {GAUGE_COUNT * 5, COUNTER_COUNT * 3, THROTTLE_COUNT * 3};
    for (int group = 0; group < 3; group++) {
        const char *key, *moment;
        json_t     *values, *value;
        int         nulls = 0;
        json_object_foreach(json_object_get(own, groups[group]), key, values)
        {
            json_object_foreach(values, moment, value)
            {
                cr_expect(json_is_null(value), "%s %s", key, moment);
                nulls++;
            }
        }
        cr_expect_eq(nulls, members[group]);
    }
    cr_expect(json_is_null(json_object_get(own, "energy_j")));
    cr_expect(json_is_null(json_object_get(json_object_get(document, "result"), "energy_j_per_step")));
    cr_expect(json_is_null(value_at(document, 1, "counters", "pages_retired_double", "growth")));
    json_decref(document);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    fputs(text, file);
    fclose(file);
}

Test(result_json, reads_back_what_it_wrote)
{
    struct result again   = {0};
    char          path[]  = "/tmp/gswbench_result_XXXXXX";
    json_t       *empty   = fixture_json(&result);    // a run without GPUs
    result.layer_loads    = memory_resize(result.layer_loads, sizeof(*result.layer_loads));
    result.layer_loads[0] = (struct result_layer){.layer = 1, .last = {1.5, 0.5, 0.125, 0.01}, .mean = {3, 2, 1, NAN}};
    result.layer_load_count = 1;
    fixture_observe(&result, 3);
    result.mesh.world = 64;    // equal to the steps' number of ranks, which the reader checks
    observation_init(&result.observations[2], "no library");
    result_derive(&result);
    cr_assert(mkstemp(path) >= 0);
    char *text = fixture_render(report_write_json, &result);
    write_file(path, text);
    free(text);

    REQUIRE(result_read_json(&again, path));
    cr_expect_eq(json_array_size(json_object_get(empty, "observations")), 0);
    cr_expect_eq(again.observations[1].gauges[GAUGE_SM_CLOCK].median, 1755.0);
    cr_expect(isnan(again.observations[2].gauges[GAUGE_SM_CLOCK].median));
    json_decref(empty);
    json_t *first = fixture_json(&result), *second = fixture_json(&again);
    cr_expect(json_equal(first, second));
    cr_expect(again.figures.step.low == 6.998);
    json_decref(first);
    json_decref(second);
    result_free(&again);
    unlink(path);
}

Test(result_json, refuses_files_that_are_no_result)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ":1:0: not a result: '[' or '{' expected near end of file"},
        {"[1, 2]", ": not a result: \"schema\" must be \"gswbench.result/5\""},
        {"{\"schema\": 1}", ": not a result: \"schema\" must be \"gswbench.result/5\""},
        {"{\"schema\": \"gswbench.results/2\"}", ": not a result: \"schema\" must be \"gswbench.result/5\""},
        {"{\"schema\": \"gswbench.result/5b\"}", ": not a result: \"schema\" must be \"gswbench.result/5\""},
        {"{\"schema\": \"gswbench.result/1\"}",
         ": gswbench.result/1 was written by an older gswbench, and its keys differ from gswbench.result/5 of this "
         "version: read it with the version that wrote it, or run again"},
        {"{\"schema\": \"gswbench.result/10\"}",
         ": gswbench.result/10 was written by a newer gswbench, and its keys differ from gswbench.result/5 of this "
         "version: install that version or a newer one"},
        {"{\"a\": 1, \"a\": 2}", ":1:12: not a result: duplicate object key near '\"a\"'"},
        {"{\"schema\": \"gswbench.result/5\"}", ": run_id is missing"},
        {"{\"schema\": \"gswbench.result/5\", \"run_id\": 7}", ": run_id must be a text of at most 31 bytes"},
        {"{\"schema\": \"gswbench.result/5\", \"run_id\": \"0123456789012345678901234567890123456789\"}",
         ": run_id must be a text of at most 31 bytes"},
        {"{\"schema\": \"gswbench.result/5\", \"run_id\": \"\", \"status\": \"great\"}",
         ": status must be one of its known words"},
        {"{\"schema\": \"gswbench.result/5\", \"run_id\": \"\", \"status\": \"valid\", \"reasons\": {}}",
         ": reasons must be a list of at most a million elements"},
        {"{\"schema\": \"gswbench.result/5\", \"run_id\": \"\", \"status\": \"valid\", \"reasons\": [{\"id\": \"x\"}]}",
         ": reasons[0]: verdict is missing"},
    };
    char path[] = "/tmp/gswbench_result_XXXXXX";
    cr_assert(mkstemp(path) >= 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result again = {0};
        write_file(path, cases[i].text);
        EXPECT_ERROR(result_read_json(&again, path), EXIT_CONFIG, line_of("%s%s", path, cases[i].expected));
    }
    unlink(path);
}

Test(result_json, refuses_paths_that_are_no_files)
{
    struct result again = {0};

    EXPECT_ERROR(result_read_json(&again, "/tmp"), EXIT_CONFIG, "/tmp: is a directory, not a file");
    EXPECT_ERROR(result_read_json(&again, "/tmp/gswbench/absent.json"), EXIT_CONFIG,
                 "/tmp/gswbench/absent.json: cannot be opened: No such file or directory");
    EXPECT_ERROR(result_read_json(&again, "/dev/zero"), EXIT_CONFIG, "/dev/zero: is a device, not a file");
}

// SPDX-License-Identifier: MIT
// Device observations in result.json, written and read back.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "gswbench/result.h"
#include "observation_fixture.h"
#include "result_suite.h"
#include "success.h"

static char path[] = "/tmp/gswbench_observation_XXXXXX";

static json_t *write_and_parse(const struct result *from)
{
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && result_write_json(from, file) && fclose(file) == 0);
    json_error_t error;
    json_t      *document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    cr_assert_not_null(document, "%s", error.text);
    return document;
}

static json_t *value_at(json_t *document, size_t rank, const char *group, const char *key, const char *moment)
{
    json_t *observation = json_array_get(json_object_get(document, "observations"), rank);
    return json_object_get(json_object_get(json_object_get(observation, group), key), moment);
}

static void make_file(void)
{
    open_result();
    cr_assert_geq(mkstemp(path), 0);
}

static void remove_file(void)
{
    close_result();
    unlink(path);
}

TestSuite(observation_json, .init = make_file, .fini = remove_file);

Test(observation_json, has_every_value_under_its_name)
{
    fixture_observe(&result, 2);
    result.observations[1].counters[COUNTER_ECC_CORRECTED]       = (struct counter_values){5, 9, 4};
    result.observations[1].throttles[THROTTLE_POWER_CAP].samples = 38;

    json_t *document = write_and_parse(&result), *own = json_array_get(json_object_get(document, "observations"), 1);

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

// An unknown value is null, not 0, which would be an observed value.
Test(observation_json, has_null_for_what_nobody_said)
{
    fixture_observe(&result, 2);
    observation_init(&result.observations[0], "no library");
    result_derive(&result);

    json_t *document = write_and_parse(&result), *own = json_array_get(json_object_get(document, "observations"), 0);

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

Test(observation_json, reads_back_what_it_wrote)
{
    struct result again = {0};
    fixture_observe(&result, 3);
    result.mesh.world = 64;    // consistent with the steps, which reading checks again
    observation_init(&result.observations[2], "no library");
    result_derive(&result);

    json_t *first = write_and_parse(&result);
    REQUIRE(result_read_json(&again, path));
    cr_expect_eq(again.observation_count, 3);
    cr_expect_eq(again.observations[1].gauges[GAUGE_SM_CLOCK].median, 1755.0);
    cr_expect(isnan(again.observations[2].gauges[GAUGE_SM_CLOCK].median));
    json_t *second = write_and_parse(&again);
    cr_expect(json_equal(first, second));
    json_decref(first);
    json_decref(second);
    result_free(&again);
}

Test(observation_json, of_a_processor_is_an_empty_list)
{
    json_t *document = write_and_parse(&result);
    cr_expect(json_is_array(json_object_get(document, "observations")));
    cr_expect_eq(json_array_size(json_object_get(document, "observations")), 0);
    json_decref(document);
}

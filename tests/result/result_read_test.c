// SPDX-License-Identifier: MIT
// Tests that reading an edited result.json checks its numbers again.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/result.h"
#include "line.h"
#include "result_fixture.h"
#include "success.h"

static char path[] = "/tmp/gswbench_result_XXXXXX";

// Returns the fixture's result as a JSON document.
static json_t *write_document(void)
{
    struct result result;
    fixture_open(&result);
    json_t *document = fixture_json(&result);
    result_free(&result);
    return document;
}

static status read_document(struct result *result, json_t *document)
{
    *result = (struct result){0};
    cr_assert_eq(json_dump_file(document, path, JSON_REAL_PRECISION(17)), 0);
    json_decref(document);
    return result_read_json(result, path);
}

static void make_file(void)
{
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
}

static void remove_file(void)
{
    unlink(path);
}

TestSuite(result_read, .init = make_file, .fini = remove_file);

// Sets the field at a path like "steps.3.loss" to a value, which is parsed as JSON.
static void set(json_t *document, const char *place, const char *value)
{
    char  copy[128], *key = copy;
    char *dot;
    snprintf(copy, sizeof(copy), "%s", place);
    json_t *in = document;
    while ((dot = strchr(key, '.')) != NULL) {
        *dot = '\0';
        in   = json_is_array(in) ? json_array_get(in, (size_t)atoi(key)) : json_object_get(in, key);
        cr_assert_not_null(in, "%s", place);
        key = dot + 1;
    }
    json_t *parsed = json_loads(value, JSON_DECODE_ANY, NULL);
    cr_assert_not_null(parsed, "%s", value);
    cr_assert_eq(json_is_array(in) ? json_array_set_new(in, (size_t)atoi(key), parsed)
                                   : json_object_set_new(in, key, parsed),
                 0);
}

Test(result_read, finds_what_contradicts_the_verdict)
{
    static const struct {
        const char *place, *value, *expected;
    } rows[] = {
        {"steps.3.loss", "null", "status is valid, but the values of the file give invalid: step 3: loss "},
        {"steps.3.loss", "8.96e34", "status is valid, but the values of the file give invalid: step 3: loss 8.96e+34"},
        {"steps.0.loss", "-1", "status is valid, but the values of the file give invalid: step 0: loss -1"},
        {"steps.9.grad_norm", "null", "status is valid, but the values of the file give invalid: step 9: loss "},
        {"steps.12.time_s", "-1", "status is valid, but the values of the file give invalid: step 12 took -1 s"},
        {"steps.12.time_s", "null", "status is valid, but the values of the file give invalid: step 12 took "},
        {"steps.12.time_s", "0.001",
         "status is valid, but the values of the file give invalid: step 12 took 0.001 s, but "},
        {"steps.12.i", "11", "steps[12] is step 11, measure: not the step of this index"},
        {"steps.12.phase", "\"warmup\"", "steps[12] is step 12, warmup: not the step of this index"},
        {"steps.12.slowest_rank", "64", "steps[12].slowest_rank is 64 of 64"},
        {"validation.step_allocations", "1", "status is valid, but the values of the file give invalid: 1 alloc"},
        {"validation.step_allocations", "-1", "validation.step_allocations is -1, but must be 0 or more"},
        {"validation.replica_groups_equal", "0",
         "status is valid, but the values of the file give invalid: weights differ between the replicas "},
        {"validation.repeated_steps", "51", "status is valid, but the values of the file give invalid"},
        {"checkpoint.first_step", "-1", "checkpoint.first_step is -1, which no run has"},
        {"checkpoint.first_step", "9223372036854775807", "checkpoint.first_step is 9223372036854775807, which no run "},
        {"validation.wall_s", "null", "validation.wall_s is "},
        {"validation.wall_s", "300", "validation.wall_s is 300, but the steps took 365"},
        {"device.computes", "false", "status is valid, but the values of the file give unverified: backend cuda "},
        {"device.peak_flops", "-1", "device.peak_flops is -1, but must be above 0, or null"},
        {"device.peak_flops", "0", "device.peak_flops is 0, but must be above 0, or null"},
        {"device.peak_flops", "1e18", "result: "},
        {"status", "\"degraded\"", "status is degraded, but the values of the file give valid"},
        {"status", "\"invalid\"", "status is invalid, but the values of the file give valid"},
        {"exit_code", "5", "exit_code is 5, but valid runs end with 0"},
        {"emulation.stages", "1", "status is valid, but the values of the file give emulated"},
        {"waterfall.source", "\"predicted\"", "status is valid, but the values of the file give predicted"},
        {"waterfall.turns", "[{\"stage\":1,\"phase\":\"\",\"chunk\":0,\"microbatch\":0,\"begin_s\":0,\"end_s\":1}]",
         "waterfall.turns[0] is of stage 1 from 0 to 1 s, which this run does not have"},
        {"memory.course", "[{\"from_s\":0,\"activation_bytes\":-1}]",
         "memory.course[0] has -1 bytes from 0 s, outside the step"},
        {"emulation.stages", "-1", "emulation.stages is -1, but must be 0 or more"},
        {"config.steps", "60", "status is valid, but the values of the file give partial"},
        {"config.steps", "49", "steps has 50 of config.steps 49"},
        {"config.layout.ranks", "0", "config.layout.ranks is 0, but must be 1 or more"},
        {"config.layout.global_batch", "-128", "config.layout.global_batch is -128, but must be 1 or more"},
        {"config.layout.sequence", "0", "config.layout.sequence is 0, but must be 1 or more"},
        {"config.model.parameters", "0", "config.model.parameters is 0, but must be 1 or more"},
        {"memory.allocated_bytes", "-1", "memory.allocated_bytes is -1, but must be 0 or more"},
        {"memory.connection_bytes", "-1", "memory.connection_bytes is -1, but must be 0 or more"},
        {"preparation.connect_s", "-0.5", "preparation has -0.5 seconds, but must have 0 or more"},
        {"config.model.flops_per_sequence.full", "-1.5",
         "config.model.flops_per_sequence.full is -1.5, but must be above 0, or null"},
        {"result.tokens_per_s", "1e6", "result: tokens_per_s is 1000000, but the steps of the file give 74"},
        {"result.step_time_s.median", "0.001", "result: median is 0.001, but the steps of the file give 6.999"},
        {"result.step_time_s.ci95.1", "6.5", "result: ci95 is 6.5, but the steps of the file give 7"},
        {"result.energy_j_per_step", "1", "result: energy_j_per_step is 1, but the steps of the file give nan"},
        {"reasons", "[{\"id\":\"x\",\"verdict\":\"invalid\",\"rank\":0,\"step\":0,\"message\":\"\"}]",
         "status is valid, but the values of the file give invalid"},
        {"ranks.1.compute_excess_low", "0.06",
         "status is valid, but the values of the file give degraded: rank 1 (dgx-02) computes 6.2 % longer than "},
        {"compute_times.1.ranks", "64", "compute_times[1] is of 64 ranks from 1 and 1 steps from 10, which this run "},
        {"compute_times.0.steps", "41", "compute_times[0] is of 1 ranks from 0 and 41 steps from 10, which this run "},
        {"ranks.1.clock_drift_s", "-30",
         "status is valid, but the values of the file give invalid: the clocks of rank 1 "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct result result;
        json_t       *document = write_document();
        set(document, rows[i].place, rows[i].value);

        status read = read_document(&result, document);

        const char *expected = line_of("%s: %s", path, rows[i].expected);
        cr_expect_eq(strncmp(read.text, expected, strlen(expected)), 0, "%s = %s: %s", rows[i].place, rows[i].value,
                     read.text);
        cr_expect_eq(read.exit_code, EXIT_CONFIG, "%s", rows[i].place);
        result_free(&result);
    }
}

// The file has a note with the id of a failing check. The check must report its reason nevertheless.
Test(result_read, lets_no_note_hide_a_finding)
{
    struct result result;
    json_t       *document = write_document();
    set(document, "steps.3.loss", "null");
    set(document, "reasons",
        "[{\"id\":\"not-finite\",\"verdict\":\"valid\",\"rank\":0,\"step\":3,\"message\":\"fine\"}]");

    status read = read_document(&result, document);

    cr_expect_not_null(strstr(read.text, "the values of the file give invalid: step 3: loss nan"), "%s", read.text);
    result_free(&result);
}

Test(result_read, keeps_the_reasons_and_figures_of_an_honest_file)
{
    struct result first, result;
    fixture_open(&first);
    first.steps[7].loss = 0;
    result_check(&first);
    FILE *file = fopen(path, "w");
    cr_assert(result_write_json(&first, file));
    fclose(file);
    result = (struct result){0};

    EXPECT_SUCCESS(result_read_json(&result, path));
    cr_expect(result.verdict == VERDICT_INVALID && result.exit_code == EXIT_INVALID);
    cr_expect_eq(result.reason_count, first.reason_count);
    result_free(&first);
    result_free(&result);
}

// 100,000 steps have 35 MB. Blanks at the end make the file as large as that.
Test(result_read, reads_the_file_of_a_long_run)
{
    enum { BYTES = 40000000 };
    struct result result   = {0};
    json_t       *document = write_document();
    char         *blanks   = memory_allocate(BYTES);
    cr_assert_eq(json_dump_file(document, path, JSON_REAL_PRECISION(17)), 0);
    json_decref(document);
    FILE *file = fopen(path, "a");
    memset(blanks, ' ', BYTES);
    cr_assert_eq(fwrite(blanks, 1, BYTES, file), BYTES);
    fclose(file);
    free(blanks);

    EXPECT_SUCCESS(result_read_json(&result, path));

    result_free(&result);
}

Test(result_read, refuses_a_large_file_before_it_is_parsed)
{
    struct result result = {0};
    cr_assert_eq(truncate(path, (512 << 20) + 1), 0);

    EXPECT_ERROR(result_read_json(&result, path), EXIT_CONFIG,
                 line_of("%s: has 536870913 bytes: the limit is 536870912", path));
}

// Memory is allocated for the members of one nested object. Its name may be empty.
Test(result_read, refuses_objects_within_a_section_without_a_name)
{
    struct result result;
    json_t       *document = write_document(), *innermost = json_object();
    for (int i = 0; i < 1000; i++) {
        json_object_set_new(innermost, line_of("key%d", i), json_string("value"));
    }
    json_object_set_new(document, "environment", json_pack("{s:{s:o}}", "", "", innermost));

    EXPECT_ERROR_WITH(read_document(&result, document), EXIT_CONFIG, "environment must be a text of at most ");
    result_free(&result);
}

Test(result_read, waits_for_no_writer_of_a_pipe, .timeout = 10)
{
    struct result result = {0};
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);

    EXPECT_ERROR(result_read_json(&result, path), EXIT_CONFIG, line_of("%s: is a pipe, not a file", path));
}

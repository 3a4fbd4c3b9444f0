// SPDX-License-Identifier: MIT
// Tests `gswbench atlas`, which predicts all jobs with a published step time and summarizes the errors.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "folder.h"

static void shell(const char *format, const char *place)
{
    cr_assert_eq(system(line_of(format, place)), 0);
}

// Makes a folder of configurations with tiny-llama and an atlas file. This file has three jobs with a published step
// time, two on H200 and one on B200. The output has a row for each job.
static void install(void)
{
    make_folder();
    shell("cd " GSWBENCH_SOURCE_DIR "/configs && cp -r models hardware software tiny-llama.ini %s", folder);
    shell(
        "cd %s && mkdir atlas && printf '[model]\npreset = tiny-llama\n[train]\nsequence = 128\n[parallel]\ndp = auto\n"
        "[hardware]\nprofile = h200\n[published]\nsource = nobody\nvariant = plain\n"
        "[when ranks=2 variant=plain]\npublished.step_seconds = 0.02\n"
        "[when ranks=2 variant=other]\npublished.step_seconds = 0.04\n"
        "[when ranks=8 gpu=b200 variant=plain]\npublished.step_seconds = 0.03\n' > atlas/pair.ini",
        folder);
    configs = folder;
}

TestSuite(atlas, .init = install, .fini = remove_folder);

Test(atlas, sums_up_errors_by_what_rows_share)
{
    expect_success("atlas --json");
    json_t *document = json_loads(output, 0, NULL), *rows = json_object_get(document, "rows");
    double  size = 0.0, mean = 0.0;
    cr_assert_eq((int)json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row       = json_array_get(rows, i);
        double        published = json_number_value(json_object_get(row, "published_step_s"));
        double        predicted = json_number_value(json_object_get(row, "predicted_step_s"));
        double        error     = 100.0 * (predicted / published - 1.0);
        cr_expect_float_eq(json_number_value(json_object_get(row, "error_percent")), error, 1e-9);
        mean += error / 3;
        size += fabs(error) / 3;
    }
    json_decref(document);
    expect_success("atlas");
    expect_output("never fitted");
    expect_output("rows  error |err|   max <10%\n");
    expect_output(line_of("all     all                                     3 %+6.1f %5.1f", mean, size));
    expect_output("gpu     b200                                    1 ");
    expect_output("        h200                                    2 ");
}

// Returns the predicted step time of the row on B200.
static double predicted_on_b200(void)
{
    expect_success("atlas --gpu b200 --json");
    json_t *document = json_loads(output, 0, NULL);
    double  seconds =
        json_number_value(json_object_get(json_array_get(json_object_get(document, "rows"), 0), "predicted_step_s"));
    json_decref(document);
    return seconds;
}

// Sets the published time of the row on B200 to its prediction, so this row is certainly inside its range. The range is
// one standard deviation; 80 % of a normal distribution lie within 1.2816 of them.
Test(atlas, counts_the_rows_that_are_inside_their_range)
{
    int inside = 0;
    cr_assert_eq(system(line_of("sed -i 's/= 0.03$/= %.9g/' %s/atlas/pair.ini", predicted_on_b200(), folder)), 0);
    expect_success("atlas --ranges --json");
    json_t *document = json_loads(output, 0, NULL), *rows = json_object_get(document, "rows");
    cr_assert_eq((int)json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row   = json_array_get(rows, i);
        double        range = json_number_value(json_object_get(row, "range_percent"));
        cr_expect_gt(range, 0.0);
        inside += fabs(json_number_value(json_object_get(row, "error_percent"))) <= 1.2816 * range;
    }
    json_decref(document);
    cr_expect_geq(inside, 1);
    expect_success("atlas --ranges");
    expect_80_columns();
    char *all = strstr(output, "all     all ");
    cr_assert_not_null(all, "%s", output);
    const char *line = line_of(" %3d %3.0f\n", inside, 100.0 * inside / 3);
    cr_expect_not_null(strstr(all, line), "%s, not %s", all, line);
}

Test(atlas, takes_the_rows_that_are_asked_for)
{
    expect_success("atlas --gpu b200");
    expect_output("all     all                                     1 ");
    expect_80_columns();
    expect_success("configs --gpu b2 --model tiny");
    expect_output("pair\n      8  bf16  b200               4    0.030 s  dp 8");
    expect_80_columns();
    cr_expect_null(strstr(output, "h200"));
    cr_expect_null(strstr(output, "\ntiny-llama\n"));
    expect_error("configs --precision fp8", 2, "no row matches: gswbench configs lists all rows");
    expect_error("atlas --gpu h100", 2, "no published row matches: gswbench configs lists all rows");
}

// A row whose settings are not supported must not stop the command: it prints the other rows, and reports the failure
// by its exit code.
Test(atlas, names_a_row_that_cannot_be_predicted_and_goes_on)
{
    shell("printf '[model]\npreset = tiny-llama\n[train]\nsequence = 128\n[parallel]\nfsdp = 2\ndp = 2\nzero = 1\n"
          "[hardware]\nprofile = h200\n[published]\nsource = nobody\n[when ranks=4]\npublished.step_seconds = 0.02\n' "
          "> %s/atlas/none.ini",
          folder);
    expect_error("atlas --json", 3, "1 published row is left out: its settings cannot be predicted");
    cr_expect_not_null(strstr(errors.text, "none at 4 ranks, bf16: this version does not shard the optimizer over"),
                       "%s", errors.text);
    json_t *document = json_loads(output, 0, NULL);
    cr_expect_eq((int)json_array_size(json_object_get(document, "rows")), 3);
    json_decref(document);
    expect_error("atlas", 3, "1 published row is left out: its settings cannot be predicted");
    expect_output("rows");
}

Test(atlas, predicts_a_row_by_its_variant)
{
    expect_success("predict pair --ranks 2 --variant other --no-range");
    expect_output("published      0.040 s");
    expect_success("predict pair --ranks 8 --gpu b200 --no-range");
    expect_output("published      0.030 s");
    expect_success("predict pair --ranks 8 --gpu h200 --no-range");
    cr_expect_null(strstr(output, "\npublished "));
    expect_error("predict pair --ranks 2 --variant others", 3, "1 configuration error");
    cr_expect_not_null(
        strstr(errors.text, "variant = others: no [when variant=...] section has this name; there are plain, other\n"),
        "%s", errors.text);
}

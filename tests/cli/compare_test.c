// SPDX-License-Identifier: MIT
// Tests `gswbench compare` on runs of a small model, and on inputs that are not results or cannot be compared.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/result.h"
#include "command.h"
#include "folder.h"
#include "result_fixture.h"
#include "success.h"

#define TINY "run --config tiny-llama --layers 1 --steps 10 --warmup 2 --backend host --quiet --set run.threads=1"

TestSuite(compare, .init = make_folder, .fini = remove_folder, .timeout = 100);

// Runs the small model with these flags. Returns the path of the run's folder.
static const char *run_model(const char *flags)
{
    expect_success(line_of(TINY " --out %s %s", folder, flags));
    const char *files = strstr(output, "\nfiles: ");
    cr_assert_not_null(files, "%s", output);
    files += strlen("\nfiles: ");
    return line_of("%.*s", (int)strcspn(files, "\n"), files);
}

static status compare(const char *first, const char *second, const char *flags)
{
    const char *line = line_of("compare %s %s %s", first, second, flags);
    return run(line);
}

static double real_at(json_t *document, const char *side, const char *key)
{
    json_t *result = json_object_get(json_object_get(document, side), "result");
    return json_real_value(json_object_get(json_object_get(result, "step_time_s"), key));
}

// Checks that the parts of the first and of the second run sum to the median step of that run, and that the differences
// of the parts sum to the difference of the medians.
static void expect_whole_difference(json_t *document)
{
    double  first = 0, second = 0;
    size_t  index;
    json_t *part;
    json_array_foreach(json_object_get(document, "parts"), index, part)
    {
        first += json_real_value(json_object_get(part, "first_s"));
        second += json_real_value(json_object_get(part, "second_s"));
    }
    double medians[] = {real_at(document, "first", "median"), real_at(document, "second", "median")};
    cr_expect(medians[0] > 0 && medians[1] > 0);
    cr_expect(fabs(first / medians[0] - 1) < 1e-9, "%g", first);
    cr_expect(fabs((second - first) / (medians[1] - medians[0]) - 1) < 0.02, "%g", second - first);
}

Test(compare, sets_fp8_against_bf16)
{
    const char *wide          = run_model("");
    const char *low_precision = run_model("--set precision.compute=fp8 --set precision.recipe=current");

    REQUIRE(compare(wide, low_precision, "--json --force"));
    json_t *document = json_loads(output, 0, NULL);
    cr_assert_not_null(document, "%s", output);
    double loss = json_real_value(json_object_get(json_object_get(document, "loss_difference"), "largest"));
    cr_expect(loss > 0 && loss < 0.05, "%g", loss);
    expect_whole_difference(document);
    json_decref(document);

    EXPECT_SUCCESS(compare(wide, low_precision, "--force"));
    expect_output("# differs precision.compute: bf16 -> fp8\n");
    expect_output("\n  quantize ");
    // Whether the text before is "is not" or "is at least" depends on the measured speeds.
    expect_output(" 2.00 times as fast as bf16");
}

// Writes a synthetic result and returns its path. Every step is slower by the fraction `all`. In every second block of
// ten steps, each step is slower by a further fraction, `restless`.
static const char *write_result(const char *name, double all, double restless)
{
    const char   *path = line_of("%s/%s.json", folder, name);
    struct result result;
    fixture_open(&result);
    result.mesh.world   = 64;
    result.wall_seconds = 0;
    for (int64_t i = 0; i < result.step_count; i++) {
        result.steps[i].seconds *= 1 + all + (i / 10 % 2 == 0 ? restless : 0);
        result.wall_seconds += result.steps[i].seconds;
    }
    result_check(&result);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && result_write_json(&result, file));
    fclose(file);
    result_free(&result);
    return path;
}

Test(compare, fails_where_the_second_is_slower_than_allowed)
{
    const char *base = write_result("base", 0, 0);
    const char *slow = write_result("slow", 0.03, 0);

    status above = compare(base, slow, "--fail-on slower:2%");
    expect_output("SLOWER  speed-up 0.971 ");
    status below    = compare(base, slow, "--fail-on slower:4%");
    status opposite = compare(slow, base, "--fail-on slower:2%");
    status without  = compare(base, slow, "");

    cr_expect_str_eq(above.text, "the second is slower by 3.00%, more than --fail-on slower:2% allows");
    cr_expect_eq(above.exit_code, EXIT_GATE);
    cr_expect_eq(below.exit_code, EXIT_VALID, "%s", below.text);
    cr_expect_eq(opposite.exit_code, EXIT_VALID, "%s", opposite.text);
    cr_expect_eq(without.exit_code, EXIT_VALID, "%s", without.text);
}

// All steps of the second run are 10 % slower, and every second block of ten steps is a further 30 % slower. So the
// speed changes within this run about as much as between the two runs, and compare must answer AMBIGUOUS.
Test(compare, says_that_it_cannot_tell)
{
    const char *base     = write_result("base", 0, 0);
    const char *restless = write_result("restless", 0.1, 0.3);

    status asked = compare(base, restless, "--force --fail-on slower:2%");
    expect_output("AMBIGUOUS ");
    status unasked = compare(base, restless, "--force");

    cr_expect_eq(asked.exit_code, EXIT_UNDECIDED, "%s", asked.text);
    cr_expect_not_null(
        strstr(asked.text, "undecided whether the second is slower by more than --fail-on slower:2% allows (+"), "%s",
        asked.text);
    cr_expect_eq(unasked.exit_code, EXIT_VALID);
}

Test(compare, refuses_what_is_not_comparable_unless_forced)
{
    const char *base  = write_result("base", 0, 0);
    const char *other = line_of("%s/other.json", folder);
    cr_assert_eq(system(line_of("sed 's/\"communicator\": \"mpi\"/\"communicator\": \"local\"/' %s >%s", base, other)),
                 0);

    EXPECT_ERROR(compare(base, other, ""), EXIT_COMPARE,
                 "these results cannot be compared: communicator mpi and local; --force compares them anyway");
    cr_expect_str_empty(output);

    EXPECT_SUCCESS(compare(base, other, "--force"));
    expect_output("# NOT COMPARABLE communicator: mpi -> local\n");
}

static const char *at(json_t *document, const char *side, const char *key)
{
    return json_string_value(json_object_get(json_object_get(document, side), key));
}

// Compares predictions of three layouts. Expects a table with one row for each, and a page.
Test(compare, sets_several_predictions_against_the_first)
{
    static const char *const settings[] = {"", "--set parallel.tp_overlap=yes", "--ranks 4 --set parallel.dp=2"};
    for (size_t i = 0; i < 3; i++) {
        expect_success(line_of("predict tiny-llama --ranks 2 --gpu h100-sxm --set parallel.tp=2 %s -o %s/%zu",
                               settings[i], folder, i));
    }
    const char *page = line_of("%s/page.html", folder);
    expect_success(line_of("compare %s/0/latest %s/1 %s/2 -o %s", folder, folder, folder, page));
    expect_output("\n# differs parallel.tp_overlap: no -> yes\n");
    expect_output("\n# differs ranks: 2 -> 4\n");
    expect_output("  the first\n");
    expect_output("  parallel.tp_overlap yes\n");
    cr_expect_eq(access(page, R_OK), 0);

    expect_success(line_of("compare %s/0/latest %s/1 %s/2 --json", folder, folder, folder));
    json_t *document = json_loads(output, 0, NULL), *list = json_object_get(document, "comparisons");
    cr_assert_eq(json_array_size(list), 2);
    cr_expect_str_eq(at(json_array_get(list, 1), "second", "status"), "predicted");
    json_t *side = json_object_get(json_array_get(list, 1), "second");
    cr_expect(json_is_null(json_object_get(side, "result")) && json_is_object(json_object_get(side, "predicted")));
    json_decref(document);
}

// A folder counts as one side of the comparison if its runs are repeats of one job. Runs with different settings (here
// the seed) are refused.
Test(compare, takes_a_folder_of_repeats_for_one_side)
{
    run_model("--set run.seed=1");
    const char *first = run_model("--set run.seed=1");
    expect_success(line_of("compare %s/tiny-llama %s --force", folder, first));
    expect_output("# first  2 runs with a spread of ");

    first = run_model("--set run.seed=2");
    EXPECT_ERROR_WITH(run(line_of("compare %s/tiny-llama %s --force", folder, first)), EXIT_COMPARE,
                      " are not repeats of the same job, or not VALID: ");
}

Test(compare, names_files_that_are_no_results)
{
    static const struct {
        const char *line, *text;
        int         exit_code;
    } cases[] = {
        {"compare", "compare needs two or more folders or result.json files, but 0 are given", EXIT_USAGE},
        {"compare a", "compare needs two or more folders or result.json files, but 1 are given", EXIT_USAGE},
        {"compare /absent /absent",
         "/absent: No such file or directory: name the folder of a run, as in the last line of its output, or its "
         "result.json",
         EXIT_USAGE},
        {"compare /proc/self/fdinfo a",
         "/proc/self/fdinfo: contains no result: name the folder of a run, or a folder of runs", EXIT_USAGE},
        {"compare /dev/null /dev/null", "/dev/null: is a device, not a file", EXIT_CONFIG},
        {"compare a b --fail-on faster:2%", "--fail-on faster:2%: expected slower:2%", EXIT_USAGE},
        {"compare a b --fail-on slower:2", "--fail-on slower:2: expected slower:2%", EXIT_USAGE},
        {"compare a b --fail-on slower:%", "--fail-on slower:%: expected slower:2%", EXIT_USAGE},
        {"compare a b --fail-on slower:-1%", "--fail-on slower:-1%: expected slower:2%", EXIT_USAGE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        status result = run(cases[i].line);

        cr_expect_str_eq(result.text, cases[i].text);
        cr_expect_eq(result.exit_code, cases[i].exit_code, "%s: %d", cases[i].line, result.exit_code);
    }
}

Test(compare, refuses_a_result_of_another_method)
{
    const char *base  = write_result("base", 0, 0);
    const char *other = line_of("%s/other.json", folder);
    cr_assert_eq(system(line_of("sed 's/\"method\": [0-9]*/\"method\": 99/' %s >%s", base, other)), 0);

    EXPECT_ERROR(compare(base, other, "--force"), EXIT_COMPARE,
                 line_of("%s: tool: method 99 is not method %d of this version: run again", other, RESULT_METHOD));
}

// A million tokens cost 2 ranks x $3.6 / 3600 s x 1e6 / (tokens/s) = $2000 / (tokens/s), so dollars times tokens/s must
// be 2000.
Test(compare, says_dollars_for_a_million_tokens)
{
    double      tokens[2], dollars[2];
    const char *path = run_model("--ranks 2 --comm local --price 3.6");
    compare(path, path, "--force");
    const char *rate = strstr(output, "\ntokens/s  "), *cost = strstr(output, "\n$ per million tokens ");
    cr_assert(rate != NULL && sscanf(rate, "\ntokens/s %lf %lf", &tokens[0], &tokens[1]) == 2, "%s", output);
    cr_assert(cost != NULL && sscanf(cost, "\n$ per million tokens %lf %lf", &dollars[0], &dollars[1]) == 2, "%s",
              output);
    cr_expect_float_eq(dollars[0] * tokens[0] / 2000.0, 1.0, 1e-4, "%g at %g", dollars[0], tokens[0]);
    cr_expect_float_eq(dollars[1] * tokens[1] / 2000.0, 1.0, 1e-4);
}

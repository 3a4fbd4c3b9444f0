// SPDX-License-Identifier: MIT
// Tests `gswbench report`: each format must show the contents of a run's result file.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "folder.h"
#include "gswbench/report.h"
#include "gswbench/text.h"
#include "result_fixture.h"
#include "success.h"

// Writes the files of a synthetic run to the test's folder.
static void write_run(void)
{
    struct result        result;
    struct output_folder held;
    make_folder();
    fixture_open(&result);
    REQUIRE(output_open_folder(&held, folder));
    REQUIRE(report_write_files(&held, &result));
    output_close_folder(&held);
    result_free(&result);
}

static void show(const char *format)
{
    status shown = run(line_of("report %s --format %s", folder, format));
    cr_expect(!failed(&shown), "%s: %s", format, shown.text);
}

Test(report_command, prints_each_format_that_a_run_keeps)
{
    static const struct {
        const char *format, *file;
    } kept[] = {{"csv", "steps.csv"},
                {"csv_ranks", "ranks.csv"},
                {"csv_compute_times", "compute_times.csv"},
                {"json", "result.json"},
                {"html", "report.html"}};
    write_run();
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        const char *expected = text_in(line_of("%s/%s", folder, kept[i].file));
        show(kept[i].format);
        cr_expect_gt(strlen(output), 40);
        cr_expect_str_eq(output, expected, "%s differs from %s", kept[i].format, kept[i].file);
    }
    show("text");
    expect_output("completed step: 0, seconds: ");
    expect_output("\nRESULT VALID");
    remove_folder();
}

Test(report_command, names_the_formats_when_asked_for_another)
{
    status result = run("report /tmp --format pdf");
    cr_expect_eq(result.exit_code, EXIT_USAGE);
    const char *names = "--format pdf: expected text|csv|csv_ranks|csv_compute_times|html|json";    // may grow
    cr_expect_eq(strncmp(result.text, names, strlen(names)), 0, "%s", result.text);
}

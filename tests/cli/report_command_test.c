// SPDX-License-Identifier: MIT
// gswbench report: each format shows the contents of a run's result file.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "gswbench/report.h"
#include "gswbench/text.h"
#include "result_fixture.h"

// Writes the folder of a run, which the caller removes.
static void write_run(char folder[32])
{
    struct result        result;
    struct output_folder held;
    snprintf(folder, 32, "/tmp/gswbench-report-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    fixture_open(&result);
    status opened  = output_open_folder(&held, folder);
    status written = report_write_files(&held, &result);
    cr_assert(!failed(&opened) && !failed(&written), "%s", written.text);
    output_close_folder(&held);
    result_free(&result);
}

static void show(const char *folder, const char *format)
{
    char line[96];
    snprintf(line, sizeof(line), "report %s --format %s", folder, format);
    status shown = run(line);
    cr_expect(!failed(&shown), "%s: %s", format, shown.text);
}

static void remove_run(const char *folder)
{
    cr_expect_eq(system(line_of("rm -r %s", folder)), 0);
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
    static char expected[1 << 20];
    char        folder[32], path[64];
    write_run(folder);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, kept[i].file);
        FILE *file = fopen(path, "r");
        cr_assert_not_null(file, "%s", path);
        expected[fread(expected, 1, sizeof(expected) - 1, file)] = '\0';
        fclose(file);
        show(folder, kept[i].format);
        cr_expect_gt(strlen(output), 40);
        cr_expect_str_eq(output, expected, "%s differs from %s", kept[i].format, kept[i].file);
    }
    show(folder, "text");
    expect_output("completed step: 0, seconds: ");
    expect_output("\nRESULT VALID");
    remove_run(folder);
}

Test(report_command, names_the_formats_when_asked_for_another)
{
    status result = run("report /tmp --format pdf");
    cr_expect_eq(result.exit_code, EXIT_USAGE);
    const char *names =
        "--format pdf: text|csv|csv_ranks|csv_compute_times|html|json";    // formats added later may follow
    cr_expect_eq(strncmp(result.text, names, strlen(names)), 0, "%s", result.text);
}

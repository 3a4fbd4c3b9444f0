// SPDX-License-Identifier: MIT
// The folder of a run and its files: names, contents whole or absent, targets that cannot be written.
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gswbench/report.h"
#include "gswbench/status.h"
#include "result_fixture.h"

static int count_files(const char *folder)
{
    int  files = 0;
    DIR *open  = opendir(folder);
    cr_assert(open != NULL);
    for (struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        files += entry->d_name[0] != '.';
    }
    closedir(open);
    return files;
}

static int count_formats(void)
{
    int files = 0;
    for (const struct report_format *format = report_formats; format->name != NULL; format++) {
        files += format->file != NULL;
    }
    return files;
}

static void remove_run(const char *output, const char *folder)
{
    char path[1024];
    for (const struct report_format *format = report_formats; format->name != NULL; format++) {
        if (format->file != NULL) {
            snprintf(path, sizeof(path), "%s/%s", folder, format->file);
            unlink(path);
        }
    }
    snprintf(path, sizeof(path), "%s", folder);
    while (strcmp(path, output) != 0 && rmdir(path) == 0) {
        *strrchr(path, '/') = '\0';
    }
    rmdir(output);
}

Test(report_files, fills_a_new_folder_once)
{
    struct result result;
    fixture_open(&result);
    char output[] = "/tmp/gswbench_report_XXXXXX", folder[1024], again[1024], expected[1024];
    cr_assert(mkdtemp(output) != NULL);
    snprintf(expected, sizeof(expected), "%s/llama2-70b/bf16/64/20260822T101500Z-7f3a", output);

    status created = report_create_folder(&result, output, folder, sizeof(folder));
    status written = report_write_files(folder, &result);
    status twice   = report_create_folder(&result, output, again, sizeof(again));
    status over    = report_write_file(folder, "steps.csv", report_write_csv, &result);

    cr_expect(!failed(&created), "%s", created.text);
    cr_expect(!failed(&written), "%s", written.text);
    cr_expect_str_eq(folder, expected);
    const char *names[] = {"result.json", "steps.csv", "ranks.csv", "report.html"};
    for (int i = 0; i < 4; i++) {
        char path[1200];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        cr_expect_eq(access(path, R_OK), 0, "%s", names[i]);
    }
    cr_expect_eq(count_files(folder), count_formats(), "each that has a file, and nothing else");
    cr_expect(twice.exit_code == EXIT_OUTPUT && strstr(twice.text, "File exists") != NULL, "%s", twice.text);
    cr_expect(over.exit_code == EXIT_OUTPUT && strstr(over.text, "steps.csv: File exists") != NULL, "%s", over.text);
    remove_run(output, folder);
    result_free(&result);
}

Test(report_files, stays_inside_the_output_folder)
{
    struct result result;
    fixture_open(&result);
    char output[] = "/tmp/gswbench_report_XXXXXX", folder[1024], expected[1024];
    cr_assert(mkdtemp(output) != NULL);
    strcpy(result.config_name, "../../etc");
    snprintf(expected, sizeof(expected), "%s/_._.._etc/bf16/64/20260822T101500Z-7f3a", output);

    status created = report_create_folder(&result, output, folder, sizeof(folder));

    cr_expect(!failed(&created), "%s", created.text);
    cr_expect_str_eq(folder, expected);
    remove_run(output, folder);
    result_free(&result);
}

Test(report_files, names_path_and_reason_of_a_target_that_cannot_be_written)
{
    struct result result;
    fixture_open(&result);
    char folder[1024], expected[1024];

    status no_folder = report_create_folder(&result, "/dev/null/results", folder, sizeof(folder));
    status no_file   = report_write_file("/proc", "steps.csv", report_write_csv, &result);

    cr_expect_str_eq(no_folder.text, "cannot create /dev/null/results: Not a directory");
    cr_expect(no_folder.exit_code == EXIT_OUTPUT);
    snprintf(expected, sizeof(expected), "cannot create /proc/steps.csv.tmp: No such file or directory");
    cr_expect_str_eq(no_file.text, expected);
    cr_expect(no_file.exit_code == EXIT_OUTPUT);
    result_free(&result);
}

Test(report_files, leaves_nothing_half_written)
{
    struct result result;
    fixture_open(&result);
    char folder[] = "/tmp/gswbench_report_XXXXXX", expected[128];
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(expected, sizeof(expected), "cannot write %s/result.json.tmp: File too large", folder);
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);

    status written = report_write_file(folder, "result.json", report_write_json, &result);

    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_expect_str_eq(written.text, expected);
    cr_expect(written.exit_code == EXIT_OUTPUT);
    cr_expect(count_files(folder) == 0);
    rmdir(folder);
    result_free(&result);
}

// SPDX-License-Identifier: MIT
// Tests the folder and files of a run: their names, complete or missing contents, and folders that cannot be written.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "folder.h"
#include "gswbench/status.h"
#include "line.h"
#include "result_suite.h"
#include "success.h"

static struct output_folder held;

static void make_output(void)
{
    open_result();
    make_folder();
}

static void remove_output(void)
{
    remove_folder();
    close_result();
}

TestSuite(report_files, .init = make_output, .fini = remove_output);

static int count_files(const char *path)
{
    int  files = 0;
    DIR *open  = opendir(path);
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

Test(report_files, fills_a_new_folder_once)
{
    EXPECT_SUCCESS(report_create_folder(&held, &result, folder));
    EXPECT_SUCCESS(report_write_files(&held, &result));
    EXPECT_ERROR_WITH(report_write_files(&held, &result), EXIT_OUTPUT, "steps.csv: the file exists");
    cr_expect_str_eq(held.path, line_of("%s/llama2-70b/bf16/64/20260822T101500Z-7f3a", folder));
    const char *names[] = {"result.json", "steps.csv", "ranks.csv", "compute_times.csv", "report.html"};
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(faccessat(held.descriptor, names[i], R_OK, 0), 0, "%s", names[i]);
    }
    cr_expect_eq(count_files(held.path), count_formats(), "each that has a file, and nothing else");
    output_close_folder(&held);
}

Test(report_files, gives_runs_of_one_id_folders_of_their_own)
{
    enum { RUNS = 300 };
    char last[64];
    for (int i = 0; i < RUNS; i++) {
        strcpy(result.run_id, "20260822T101500Z-fffe");
        status created = report_create_folder(&held, &result, folder);
        cr_assert_not(failed(&created), "%d: %s", i, created.text);
        snprintf(last, sizeof(last), "%s", strrchr(held.path, '/') + 1);
        output_close_folder(&held);
    }

    cr_expect_str_eq(last, "20260822T101500Z-0129", "fffe, ffff, 0000 and 297 more");
    cr_expect_str_eq(result.run_id, last);
}

Test(report_files, creates_no_folder_through_a_link)
{
    const char *link = line_of("%s/llama2-70b", folder);
    cr_assert_eq(symlink("/tmp", link), 0);
    EXPECT_ERROR(report_create_folder(&held, &result, folder), EXIT_OUTPUT,
                 line_of("cannot open %s: Not a directory", link));
}

Test(report_files, stays_inside_the_output_folder)
{
    strcpy(result.config_name, "../../etc");
    EXPECT_SUCCESS(report_create_folder(&held, &result, folder));
    cr_expect_str_eq(held.path, line_of("%s/_._.._etc/bf16/64/20260822T101500Z-7f3a", folder));
    output_close_folder(&held);
}

Test(report_files, names_path_and_reason_of_a_target_that_cannot_be_written)
{
    EXPECT_ERROR(report_create_folder(&held, &result, "/dev/null/results"), EXIT_OUTPUT,
                 "cannot create /dev/null/results: Not a directory");
    EXPECT_SUCCESS(output_open_folder(&held, "/proc"));
    EXPECT_ERROR(report_write_files(&held, &result), EXIT_OUTPUT,
                 "cannot write /proc/steps.csv: No such file or directory");
    output_close_folder(&held);
}

Test(report_files, leaves_nothing_half_written)
{
    REQUIRE(output_open_folder(&held, folder));
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);

    EXPECT_ERROR(report_write_files(&held, &result), EXIT_OUTPUT,
                 line_of("cannot write %s/steps.csv: File too large", folder));
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_expect(count_files(folder) == 0);
    output_close_folder(&held);
}

// Recovers a run of two steps that died after it had written steps.csv, here with other contents.
Test(report_files, recovers_a_run_that_died_while_it_wrote_its_files)
{
    struct journal journal   = {0};
    struct result  recovered = {0};
    REQUIRE(output_open_folder(&held, folder));
    result.step_count = result.rank_count = 0;
    REQUIRE(journal_open(&journal, &held, &result));
    for (int i = 0; i < 2; i++) {
        result.step_count++;
        REQUIRE(journal_add_step(&journal, &result));
    }
    journal_close(&journal);
    REQUIRE(output_write(&held, "steps.csv", "older\n", 6));

    EXPECT_SUCCESS(report_recover(&recovered, folder, "the run died", NULL));

    const char *steps = text_in(line_of("%s/steps.csv", folder));
    cr_expect_eq(strncmp(steps, "step", 4), 0, "steps.csv begins with %.64s", steps);
    cr_expect_eq(recovered.step_count, 2);
    cr_expect_eq(faccessat(held.descriptor, "result.json", R_OK, 0), 0);
    cr_expect_eq(count_files(folder), count_formats() + 1, "and the journal");
    result_free(&recovered);
    output_close_folder(&held);
}

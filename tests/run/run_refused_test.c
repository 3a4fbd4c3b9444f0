// SPDX-License-Identifier: MIT
// Tests runs that are refused before their first step.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "whole_run.h"

TestSuite(run_refused, .init = make_folder, .fini = remove_folder, .timeout = 100);

Test(run_refused, before_the_first_step_with_the_reason)
{
    static const struct {
        const char *launched, *line;    // launched: number of processes of the launcher; "": no launcher
        int         exit_code;
        const char *text;
    } cases[] = {
        {"", TINY " --ranks 1024 --set train.global_batch=auto", EXIT_LAUNCH,
         "1024 ranks as threads of one process are more than the limit of 256: start them with mpirun or srun, or use "
         "fewer (--ranks)"},
        {"4", TINY " --comm local", EXIT_LAUNCH,
         "4 processes were launched, but communicator local runs all ranks in one: start it without a launcher, or use "
         "--comm mpi"},
        {"4", TINY " --ranks 2", EXIT_LAUNCH, "--ranks 2, but 4 ranks were launched: leave --ranks out"},
        {"", TINY " --comm nccl", EXIT_LAUNCH,
         "[run] communicator = nccl: it connects devices, but backend host has none: use mpi or local (communicator: "
         "--comm nccl)"},
        {"", TINY " --comm nccl --ranks 2", EXIT_LAUNCH,
         "[run] communicator = nccl: 2 ranks need one process each: start them with mpirun or srun (communicator: "
         "--comm nccl)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsetenv("OMPI_COMM_WORLD_SIZE");
        if (cases[i].launched[0] != '\0') {
            setenv("OMPI_COMM_WORLD_SIZE", cases[i].launched, 1);
        }
        status result = run_here(cases[i].line);
        cr_expect_eq(result.exit_code, cases[i].exit_code, "%s", cases[i].line);
        cr_expect_str_eq(result.text, cases[i].text);
        cr_expect_str_eq(output, "");
    }
}

static void expect_output_error(status result, const char *text)
{
    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_not_null(strstr(result.text, text), "%s", result.text);
    cr_expect_str_eq(output, "");
}

Test(run_refused, finds_folders_that_it_cannot_use_before_the_first_step)
{
    char line[1200], expected[1200];
    expect_output_error(run(TINY " --ranks 2 --out /dev/null/results"),
                        "cannot create /dev/null/results: Not a directory");
    snprintf(line, sizeof(line), TINY " --weights-out %s", folder);
    snprintf(expected, sizeof(expected), "%s: is not empty: name a new folder", folder);
    expect_output_error(run_here(line), expected);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(run_refused, finds_too_small_a_limit_of_files_before_the_first_step)
{
    char line[1200];
    limit_files(20000);
    status result = run_here(TINY);
    limit_files(RLIM_INFINITY);
    expect_output_error(result, ": File too large: it needs 180.00 KiB, but the limit of a file is 19.53 KiB");

    snprintf(line, sizeof(line), TINY " --weights-out %s/weights", folder);
    limit_files(300000);
    result = run_here(line);
    limit_files(RLIM_INFINITY);
    expect_output_error(result, "/weights: File too large: it needs 1.20 MiB, but the limit of a file is ");
}

// SPDX-License-Identifier: MIT
// Runs that are refused before their first step.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "whole_run.h"

TestSuite(run_refused, .init = make_folder, .fini = remove_folder, .timeout = 100);

Test(run_refused, finds_an_unwritable_folder_before_the_first_step)
{
    status result = run(TINY " --ranks 2 --out /dev/null/results");

    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_str_eq(result.text, "cannot create /dev/null/results: Not a directory");
    cr_expect_str_eq(output, "");
}

Test(run_refused, refuses_more_ranks_than_one_process_can_be)
{
    status result = run_here(TINY " --ranks 1024 --set train.global_batch=auto");

    cr_expect_eq(result.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(result.text, "1024 ranks as threads of one process are more than the limit of 256: start them "
                                  "with mpirun or srun, or use fewer (--ranks)");
    cr_expect_str_eq(output, "");
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(run_refused, finds_too_small_a_limit_of_files_before_the_first_step)
{
    limit_files(20000);

    status result = run_here(TINY);

    limit_files(RLIM_INFINITY);
    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_not_null(
        strstr(result.text, ": File too large: it needs 180.00 KiB, but the limit of a file is 19.53 KiB"), "%s",
        result.text);
    cr_expect_str_eq(output, "");
}

Test(run_refused, finds_too_small_a_limit_for_weights_before_the_first_step)
{
    char line[1200];
    snprintf(line, sizeof(line), TINY " --weights-out %s/weights", folder);
    limit_files(300000);

    status result = run_here(line);

    limit_files(RLIM_INFINITY);
    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_not_null(strstr(result.text, "/weights: File too large: it needs 1.20 MiB, but the limit of a file is "),
                       "%s", result.text);
    cr_expect_str_eq(output, "");
}

Test(run_refused, finds_a_used_folder_for_weights_before_the_first_step)
{
    char line[1200], expected[1200];
    snprintf(line, sizeof(line), TINY " --weights-out %s", folder);
    snprintf(expected, sizeof(expected), "%s: is not empty: name a new folder", folder);

    status result = run_here(line);

    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_str_eq(result.text, expected);
    cr_expect_str_eq(output, "");
}

Test(run_refused, refuses_to_be_one_of_several_that_do_not_know_each_other)
{
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);

    status local = run_here(TINY " --comm local");
    status other = run_here(TINY " --ranks 2");

    cr_expect_eq(local.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(local.text, "4 processes were launched, but communicator local runs all ranks in one: start it "
                                 "without a launcher, or use --comm mpi");
    cr_expect_eq(other.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(other.text, "--ranks 2, but 4 ranks were launched: leave --ranks out");
}

Test(run_refused, has_nothing_for_nccl_to_carry_without_a_device)
{
    status one = run_here(TINY " --comm nccl");
    status two = run_here(TINY " --comm nccl --ranks 2");

    cr_expect_eq(one.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(one.text, "[run] communicator = nccl: it connects devices, but backend host has none: use mpi or "
                               "local (communicator: --comm nccl)");
    cr_expect_eq(two.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(two.text, "[run] communicator = nccl: 2 ranks need one process each: start them with mpirun or "
                               "srun (communicator: --comm nccl)");
}

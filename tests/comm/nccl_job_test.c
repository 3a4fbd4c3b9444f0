// SPDX-License-Identifier: MIT
// Tests the checks of a job before NCCL starts, and how pipeline connections and NCCL's unique ids are chosen. NCCL is
// not called.
#include "comm/nccl_job.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct nccl_seat apart[] = {
    {22809, "n1", "GPU-aa", ""}, {22809, "n1", "GPU-bb", ""}, {22809, "n2", "GPU-cc", ""}, {22809, "n2", "GPU-dd", ""}};

Test(nccl_job, takes_ranks_with_a_device_each)
{
    status result = nccl_check_seats(apart, 4);
    cr_expect(!failed(&result), "%s", result.text);
}

Test(nccl_job, refuses_ranks_with_one_device)
{
    struct nccl_seat seats[] = {apart[0], apart[1], apart[2], apart[2]};
    status           result  = nccl_check_seats(seats, 4);
    cr_expect_eq(result.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(result.text, "ranks 2 and 3 on n2 share device GPU-cc: launch one rank per device, or use --comm "
                                  "mpi (for a test, set a different NCCL_HOSTID per rank)");
}

Test(nccl_job, takes_ranks_with_one_device_that_a_test_sets_apart)
{
    struct nccl_seat seats[] = {apart[0], apart[0], apart[0]};
    strcpy(seats[0].host_id, "r0");
    strcpy(seats[1].host_id, "r1");
    strcpy(seats[2].host_id, "r2");
    status result = nccl_check_seats(seats, 3);
    cr_expect(!failed(&result), "%s", result.text);

    strcpy(seats[2].host_id, "r1");
    result = nccl_check_seats(seats, 3);
    cr_expect_not_null(strstr(result.text, "ranks 1 and 2 on n1 share device GPU-aa: launch one rank per device"), "%s",
                       result.text);
}

Test(nccl_job, refuses_different_versions)
{
    struct nccl_seat seats[] = {apart[0], apart[1], apart[2]};
    seats[2].version         = 22107;
    status result            = nccl_check_seats(seats, 3);
    cr_expect_eq(result.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(result.text,
                     "rank 2 on n2 has NCCL 2.21.7, rank 0 on n1 2.28.9: install one version on every host");
}

Test(nccl_job, refuses_what_is_too_old_to_know_its_limits)
{
    cr_expect_eq(nccl_check_version(21700).exit_code, 0);
    cr_expect_eq(nccl_check_version(22809).exit_code, 0);
    status result = nccl_check_version(21605);
    cr_expect_eq(result.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(result.text, "NCCL 2.16.5 is too old: 2.17.0 or newer is needed");
}

Test(nccl_job, connects_neighbours_of_a_pipeline_both_ways)
{
    cr_expect_eq(nccl_directions(4), 2);
    cr_expect_eq(nccl_receiver(4, 3, NCCL_NEXT), 0);
    cr_expect_eq(nccl_receiver(4, 0, NCCL_BEFORE), 3);
    cr_expect_eq(nccl_direction(4, 1, 2), NCCL_NEXT);
    cr_expect_eq(nccl_direction(4, 2, 1), NCCL_BEFORE);
    cr_expect_eq(nccl_direction(4, 3, 0), NCCL_NEXT);
    cr_expect_eq(nccl_direction(4, 0, 3), NCCL_BEFORE);
}

Test(nccl_job, connects_two_ranks_once_each_way)
{
    cr_expect_eq(nccl_directions(2), 1);
    cr_expect_eq(nccl_direction(2, 0, 1), NCCL_NEXT);
    cr_expect_eq(nccl_direction(2, 1, 0), NCCL_NEXT);
    cr_expect_eq(nccl_receiver(2, 1, NCCL_NEXT), 0);
}

Test(nccl_job, connects_nobody_else, .exit_code = EXIT_INTERNAL)
{
    nccl_direction(4, 0, 2);
}

// A group that has at least two full sets of 64 ranks uses one NCCL unique id per set: 2 ids for 128 ranks, 15 for
// 1000.
Test(nccl_job, gives_large_groups_several_ids_that_members_far_apart_make)
{
    cr_expect_eq(nccl_ids(127, 64), 1);
    cr_expect_eq(nccl_ids(128, 64), 2);
    cr_expect_eq(nccl_ids(1000, 64), 15);
    cr_expect_eq(nccl_ids(4096, 0), 1);
    cr_expect_eq(nccl_ids(4, 2), 2);
    cr_expect_eq(nccl_id_owner(128, 2, 0), 0);
    cr_expect_eq(nccl_id_owner(128, 2, 1), 64);
    cr_expect_eq(nccl_id_owner(1000, 15, 14), 933);
}

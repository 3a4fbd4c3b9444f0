// SPDX-License-Identifier: MIT
// Tests the checks of a job before NCCL starts, and how pipeline connections and NCCL's unique ids are chosen. NCCL is
// not called. Also tests the parser of log lines of NCCL 2.19 to 2.30.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/nccl_job.h"
#include "comm/nccl_log.h"
#include "folder.h"
#include "success.h"

static const struct nccl_seat apart[] = {
    {22809, "n1", "GPU-aa", ""}, {22809, "n1", "GPU-bb", ""}, {22809, "n2", "GPU-cc", ""}, {22809, "n2", "GPU-dd", ""}};

Test(nccl_job, takes_ranks_with_a_device_each)
{
    EXPECT_SUCCESS(nccl_check_seats(apart, 4));
}

Test(nccl_job, refuses_ranks_with_one_device)
{
    struct nccl_seat seats[] = {apart[0], apart[1], apart[2], apart[2]};
    EXPECT_ERROR(nccl_check_seats(seats, 4), EXIT_LAUNCH,
                 "ranks 2 and 3 on n2 share device GPU-cc: launch one rank per device, or use --comm "
                 "mpi (for a test, set a different NCCL_HOSTID per rank)");
}

Test(nccl_job, takes_ranks_with_one_device_that_a_test_sets_apart)
{
    struct nccl_seat seats[] = {apart[0], apart[0], apart[0]};
    strcpy(seats[0].host_id, "r0");
    strcpy(seats[1].host_id, "r1");
    strcpy(seats[2].host_id, "r2");
    EXPECT_SUCCESS(nccl_check_seats(seats, 3));

    strcpy(seats[2].host_id, "r1");
    EXPECT_ERROR_WITH(nccl_check_seats(seats, 3), EXIT_LAUNCH,
                      "ranks 1 and 2 on n1 share device GPU-aa: launch one rank per device");
}

Test(nccl_job, refuses_different_versions)
{
    struct nccl_seat seats[] = {apart[0], apart[1], apart[2]};
    seats[2].version         = 22107;
    EXPECT_ERROR(nccl_check_seats(seats, 3), EXIT_LAUNCH,
                 "rank 2 on n2 has NCCL 2.21.7, rank 0 on n1 2.28.9: install one version on every host");
}

Test(nccl_job, refuses_what_is_too_old_to_know_its_limits)
{
    cr_expect_eq(nccl_check_version(21700).exit_code, 0);
    cr_expect_eq(nccl_check_version(22809).exit_code, 0);
    EXPECT_ERROR(nccl_check_version(21605), EXIT_LAUNCH, "NCCL 2.16.5 is too old: 2.17.0 or newer is needed");
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

Test(nccl_log, tells_algorithm_protocol_and_channels)
{
    static const struct {
        const char        *line;
        struct comm_choice choice;
    } cases[] = {
        {"n1:7:9 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}",
         {"NVLS_TREE", "SIMPLE", 16}},
        {"NCCL INFO AllGather: 64 Bytes -> Algo PAT proto LL channel{Lo..Hi}={3..3}", {"PAT", "LL", 1}},
        {"NCCL INFO 4096 Bytes -> Algo 4 proto 1 time 12.345679", {"NVLS", "LL128", 0}},
        {"NCCL INFO 4096 Bytes -> Algo 77 proto 1 time 12.345679", {"77", "LL128", 0}},
        {"NCCL INFO ReduceScatter [Symmetric]: 8192 Bytes -> Kernel ReduceScatter_LDMC nchannels 8 nthreads 512 nWorks "
         "1",
         {"ReduceScatter_LDMC", "symmetric", 8}},
        {"NCCL INFO AllGather [Copy Engine]: 8192 Bytes -> cudaMemcpy; CE synchronization with NVLS",
         {"copy engine", "", 0}},
        {"NCCL INFO AlltoAll [Hierarchical CE]: 8192 Bytes -> RMA proxy + CE", {"copy engine", "", 0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct comm_choice choice;
        cr_expect(nccl_log_parse(cases[i].line, &choice), "case %zu", i);
        cr_expect_str_eq(choice.algorithm, cases[i].choice.algorithm);
        cr_expect_str_eq(choice.protocol, cases[i].choice.protocol);
        cr_expect_eq(choice.channels, cases[i].choice.channels, "case %zu", i);
    }
}

Test(nccl_log, leaves_out_what_it_does_not_know)
{
    static const char *const lines[] = {
        "",
        "NCCL INFO a communicator of 8 ranks",
        "NCCL INFO 8192 Bytes -> by pigeon",
        "8192 Bytes -> Algo RING",
        "NCCL INFO AllReduce: tuner chunk size 4 exceeds buffer max 2, clamping",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct comm_choice choice;
        cr_expect_not(nccl_log_parse(lines[i], &choice), "%s", lines[i]);
        cr_expect_str_eq(choice.algorithm, "");
    }
}

// NCCL's log would get a predictable name in the working folder. The test makes links with this name to the file
// "kept", which must not be truncated.
static char log_name[400];

static void prepare_log(void)
{
    char host[256] = "";
    enter_folder();
    write_text("kept", "kept");
    gethostname(host, sizeof(host) - 1);
    snprintf(log_name, sizeof(log_name), "nccl.%.*s.%d.log", (int)strcspn(host, "."), host, (int)getpid());
    setenv("NCCL_DEBUG", "INFO", 1);
    unsetenv("NCCL_DEBUG_FILE");
    // Standard error is a file, so it is neither a pipe nor a terminal.
    cr_assert_not_null(freopen("stderr", "w", stderr));
}

static int64_t bytes_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? about.st_size : -1;
}

Test(nccl_log, goes_to_no_file_behind_a_link, .init = prepare_log, .fini = remove_folder)
{
    static const char *const named[] = {NULL, "nccl.%h.%p.log", "link"};
    cr_assert_eq(symlink("kept", log_name), 0);
    cr_assert_eq(symlink("kept", "link"), 0);
    for (int i = 0; i < 3; i++) {
        if (named[i] != NULL) {
            setenv("NCCL_DEBUG_FILE", named[i], 1);
        }
        EXPECT_ERROR_WITH(nccl_log_choose_file(), EXIT_LAUNCH, "it is a symbolic link");
        cr_expect_eq(bytes_of("kept"), 4);
    }
}

Test(nccl_log, goes_to_the_file_that_was_opened_whatever_has_its_name_then, .init = prepare_log, .fini = remove_folder)
{
    REQUIRE(nccl_log_choose_file());
    cr_assert_eq(bytes_of(log_name), 0);
    cr_assert_eq(rename(log_name, "moved"), 0);
    cr_assert_eq(symlink("kept", log_name), 0);
    FILE *log = fopen(getenv("NCCL_DEBUG_FILE"), "w");    // opens the log as NCCL does
    cr_assert_not_null(log);
    fputs("a line", log);
    fclose(log);
    cr_expect_eq(bytes_of("moved"), 6);
    cr_expect_eq(bytes_of("kept"), 4);
    EXPECT_SUCCESS(nccl_log_choose_file());    // NCCL is opened a second time
}

Test(nccl_log, is_left_where_a_device_is_named, .init = prepare_log, .fini = remove_folder)
{
    setenv("NCCL_DEBUG_FILE", "/dev/stderr", 1);
    EXPECT_SUCCESS(nccl_log_choose_file());
    cr_expect_str_eq(getenv("NCCL_DEBUG_FILE"), "/dev/stderr");
}

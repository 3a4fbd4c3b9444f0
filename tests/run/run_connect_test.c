// SPDX-License-Identifier: MIT
// When a run uses NCCL, and its message when it does not.
#include "gswbench/environment.h"

#include <criterion/criterion.h>
#include <string.h>

// Two ranks that report the same.
static void gather_twice(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    (void)comm;
    memcpy(out, in, (size_t)bytes);
    memcpy((char *)out + bytes, in, (size_t)bytes);
}

static const struct comm_ops        processes = {.name = "mpi", .gather_all = gather_twice};
static const struct backend_streams streams;
static const struct backend_ops     device = {.name = "cuda", .is_device = true, .streams = &streams};

struct ranks {
    struct comm       nccl, comm;
    struct backend    backend;
    struct run_config run;
};

static struct ranks two_ranks(const struct backend_ops *backend, const char *communicator)
{
    struct ranks ranks = {.comm = {.ops = &processes, .topology = {.ranks = 2}}, .backend = {.ops = backend}};
    strcpy(ranks.run.communicator, communicator);
    return ranks;
}

static status connect_sharing(struct ranks *ranks, int64_t sharers)
{
    return environment_connect(&ranks->nccl, &ranks->comm, &ranks->backend, &ranks->run, sharers);
}

Test(run_connect, leaves_ranks_on_the_host_to_their_communicator)
{
    struct ranks ranks  = two_ranks(&backend_host, "auto");
    status       result = connect_sharing(&ranks, 1);
    cr_expect(!failed(&result), "%s", result.text);
    cr_expect_null(ranks.nccl.ops);
    cr_expect_str_empty(ranks.comm.choice);
}

Test(run_connect, says_why_ranks_that_share_a_device_go_without)
{
    struct ranks ranks  = two_ranks(&device, "auto");
    status       result = connect_sharing(&ranks, 2);
    cr_expect(!failed(&result), "%s", result.text);
    cr_expect_null(ranks.nccl.ops);
    cr_expect_str_eq(ranks.comm.choice, "not nccl: 2 ranks share a device");
}

Test(run_connect, does_not_look_for_what_is_not_asked_for)
{
    struct ranks ranks  = two_ranks(&device, "mpi");
    status       result = connect_sharing(&ranks, 1);
    cr_expect(!failed(&result), "%s", result.text);
    cr_expect_null(ranks.nccl.ops);
    cr_expect_str_empty(ranks.comm.choice);
}

Test(run_connect, fails_where_nccl_is_asked_for_and_there_is_no_device)
{
    struct ranks ranks = two_ranks(&backend_host, "nccl");
    strcpy(ranks.backend.choice, "not cuda: there is no NVIDIA driver");
    status result = connect_sharing(&ranks, 1);
    cr_expect_eq(result.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(result.text, "[run] communicator = nccl: it connects devices, but backend host has none (not "
                                  "cuda: there is no NVIDIA driver): use mpi or local");
}

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

Test(run_connect, uses_nccl_where_each_rank_has_a_device_and_says_why_it_does_not)
{
    static const struct {
        const struct backend_ops *backend;
        const char               *communicator, *no_device;
        int64_t                   sharers;
        int                       exit_code;
        const char               *text;    // of the error, or of the communicator's choice
    } cases[] = {
        {&backend_host, "auto", "", 1, 0, ""},
        {&device, "auto", "", 2, 0, "not nccl: 2 ranks share a device"},
        {&device, "mpi", "", 1, 0, ""},    // not asked for
        {&backend_host, "nccl", "not cuda: there is no NVIDIA driver", 1, EXIT_LAUNCH,
         "[run] communicator = nccl: it connects devices, but backend host has none (not cuda: there is no NVIDIA "
         "driver): use mpi or local"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct comm       nccl = {.ops = NULL}, comm = {.ops = &processes, .topology = {.ranks = 2}};
        struct backend    backend = {.ops = cases[i].backend};
        struct run_config run     = {.steps = 1};
        strcpy(run.communicator, cases[i].communicator);
        strcpy(backend.choice, cases[i].no_device);
        status result = environment_connect(&nccl, &comm, &backend, &run, cases[i].sharers);
        cr_expect_eq(result.exit_code, cases[i].exit_code, "case %zu: %s", i, result.text);
        cr_expect_null(nccl.ops, "case %zu", i);
        cr_expect_str_eq(failed(&result) ? result.text : comm.choice, cases[i].text);
    }
}

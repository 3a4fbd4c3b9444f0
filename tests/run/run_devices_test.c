// SPDX-License-Identifier: MIT
// Tests which devices a run accepts, the parts of its result that depend on devices, and whether it uses NCCL.
#include "run/internal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

// Two ranks are on one host. These are the names of this rank's device and of the other's.
static const char *own_name, *other_name;

static void print_id(struct backend *backend, char *text, size_t bytes)
{
    (void)backend;
    snprintf(text, bytes, "GPU-own");
}

static void print_name(struct backend *backend, char *text, size_t bytes)
{
    (void)backend;
    snprintf(text, bytes, "%s", own_name);
}

static void replace(char *data, int64_t bytes, const char *from, const char *to)
{
    for (int64_t i = 0; i + (int64_t)strlen(from) < bytes; i++) {
        if (memcmp(data + i, from, strlen(from) + 1) == 0) {
            strcpy(data + i, to);
        }
    }
}

// Gathers the reports of both ranks. The other rank reports the same as this one, but with its own device.
static void gather_two(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    ranks_report_the_same(comm, in, out, bytes);
    replace((char *)out + bytes, bytes, "GPU-own", "GPU-other");
    replace((char *)out + bytes, bytes, own_name, other_name);
}

static const struct comm_ops    processes = {.name = "mpi", .gather_all = gather_two};
static const struct backend_ops device    = {
       .name = "cuda", .is_device = true, .device_id = print_id, .device_name = print_name};

// Returns the result of a run on the two devices. The configuration has an H100 and a published time on it.
static struct result result_on(const char *own, const char *other, const struct backend_ops *ops)
{
    struct comm                comm      = {.ops = &processes, .topology = {.ranks = 2, .host = "here"}};
    struct backend             backend   = {.ops = ops};
    struct result              result    = {.verdict = VERDICT_VALID};
    struct benchmark           benchmark = {.config_text = ""};
    struct environment_devices devices;
    own_name   = own;
    other_name = other;
    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
    benchmark.job.config.precision.compute      = COMPUTE_BF16;
    benchmark.job.config.published.step_seconds = 7;
    benchmark.job.config.published.mfu_percent  = 52;
    cr_assert(config_find_hardware(&benchmark.job.config.hardware, "NVIDIA H100 80GB HBM3"));

    status shared_out = environment_share_devices(&devices, &comm, &backend, 1);
    cr_assert_not(failed(&shared_out), "%s", shared_out.text);
    cr_expect_eq(devices.sharers, 1);
    benchmark_describe(&result, &benchmark, &comm, &backend, &devices);
    free(devices.names);
    return result;
}

#define H100 "NVIDIA H100 80GB HBM3"
#define A100 "NVIDIA A100-SXM4-80GB"

Test(run_devices, are_set_against_the_peak_that_all_have_and_the_published_time_of_their_kind)
{
    static const struct {
        const char               *own, *other;
        const struct backend_ops *ops;
        double                    peak;    // 0: unknown
        const char               *source;
        bool                      is_published;
    } cases[] = {
        {H100, H100, &device, 989e12, "hardware profile h100-sxm, bf16", true},
        {"NVIDIA B200", "NVIDIA B200", &device, 2250e12, NULL, false},
        {"emulated GPU", "emulated GPU", &device, 0,
         "no hardware profile for device emulated GPU: set [hardware] device and peaks", false},
        {H100, "NVIDIA H200", &device, 989e12, NULL, false},
        {H100, A100, &device, 0, H100 " and " A100 " have different peaks", false},
        {"x", "x", &backend_host, 0, "backend host has no known peak", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result result = result_on(cases[i].own, cases[i].other, cases[i].ops);
        cr_expect(cases[i].peak > 0 ? result.peak == cases[i].peak : isnan(result.peak), "case %zu", i);
        cr_expect(cases[i].source == NULL || strcmp(result.peak_source, cases[i].source) == 0, "case %zu: %s", i,
                  result.peak_source);
        cr_expect(cases[i].is_published ? result.published_seconds == 7.0
                                        : isnan(result.published_seconds) && isnan(result.published_mfu),
                  "case %zu", i);
        cr_expect_eq(result.reason_count, 0);
        result_free(&result);
    }
}

static const struct comm_ops        twins = {.name = "mpi", .gather_all = ranks_report_the_same};
static const struct backend_streams streams;
static const struct backend_ops     streaming = {.name = "cuda", .is_device = true, .streams = &streams};

Test(run_devices, use_nccl_where_each_rank_has_one_and_say_why_they_do_not)
{
    static const struct {
        const struct backend_ops *backend;
        const char               *communicator, *no_device;
        int64_t                   sharers;
        int                       exit_code;
        const char               *text;    // text of the error, or why the communicator was chosen
    } cases[] = {
        {&backend_host, "auto", "", 1, 0, ""},
        {&streaming, "auto", "", 2, 0, "not nccl: 2 ranks share a device"},
        {&streaming, "mpi", "", 1, 0, ""},    // nccl was not requested
        {&backend_host, "nccl", "not cuda: there is no NVIDIA driver", 1, EXIT_LAUNCH,
         "[run] communicator = nccl: it connects devices, but backend host has none (not cuda: there is no NVIDIA "
         "driver): use mpi or local"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct comm       nccl = {.ops = NULL}, comm = {.ops = &twins, .topology = {.ranks = 2}};
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

// SPDX-License-Identifier: MIT
// Devices that a run observes, and the gathering of every rank's observations.
#include "run/internal.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NVML GSWBENCH_BINARY_DIR "/tests/nvml_new/libnvidia-ml.so.1"

static void print_id(struct backend *backend, char *text, size_t bytes)
{
    (void)backend;
    snprintf(text, bytes, "GPU-own");
}

// The other rank reports the same observation.
static void gather_two(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    (void)comm;
    memcpy(out, in, (size_t)bytes);
    memcpy((char *)out + bytes, in, (size_t)bytes);
}

static const struct comm_ops    processes = {.name = "mpi", .gather_all = gather_two};
static const struct backend_ops device    = {.name = "cuda", .is_device = true, .device_id = print_id};

// Observes a run on two ranks. This rank is the second, and `sharers` ranks use its device.
static struct result observe(const struct backend_ops *ops, int64_t sharers, double seconds)
{
    struct comm      comm      = {.ops = &processes, .topology = {.rank = 1, .ranks = 2, .host = "here"}};
    struct backend   backend   = {.ops = ops};
    struct result    result    = {.verdict = VERDICT_VALID};
    struct benchmark benchmark = {.config_text = ""};
    struct steps     steps     = {.comm = &comm, .backend = &backend, .result = &result, .benchmark = &benchmark};
    benchmark.job.config.run.observe_seconds = seconds;
    setenv("FAKE_NVML", "uuid=GPU-own name=NVIDIA_H200 sm=1980 ecc00=3", 1);
    cr_assert_not_null(dlopen(NVML, RTLD_NOW));    // so that the library is found by its name

    observations_open(&steps, sharers);
    if (steps.observed.device != NULL) {
        observer_begin(steps.observed.device);
        observer_end(steps.observed.device);
    }
    observations_gather(&steps, sharers);
    cr_expect_null(steps.observed.device);
    return result;
}

Test(run_observations, are_of_every_rank_with_a_device_of_its_own)
{
    struct result result = observe(&device, 1, 1);
    cr_assert_eq(result.observation_count, 2);
    cr_expect_eq(result.observations[1].rank, 1);
    cr_expect_str_eq(result.observations[1].missing, "");
    cr_expect_str_eq(result.observations[1].name, "NVIDIA H200");
    cr_expect_eq(result.observations[1].gauges[GAUGE_SM_CLOCK].median, 1980.0);
    cr_expect_eq(result.observations[1].counters[COUNTER_ECC_CORRECTED].before, 3.0);
    cr_expect(isnan(result.observations[1].gauges[GAUGE_POWER].median));
    result_free(&result);
}

Test(run_observations, claim_nothing_of_a_device_that_ranks_share_or_that_is_not_asked_for)
{
    for (int64_t sharers = 1; sharers <= 2; sharers++) {
        struct result result = observe(&device, sharers, sharers == 1 ? 0 : 1);
        cr_assert_eq(result.observation_count, 2);
        cr_expect_str_eq(result.observations[0].missing,
                         sharers == 1 ? "run.observe_seconds is 0" : "2 ranks share the device");
        cr_expect(sharers == 1 || result.observations[0].name[0] == '\0');
        cr_expect(isnan(result.observations[0].gauges[GAUGE_SM_CLOCK].median));
        cr_expect(isnan(result.observations[0].gauges[GAUGE_SM_CLOCK].before));
        result_free(&result);
    }
}

Test(run_observations, are_none_of_a_processor)
{
    struct result result = observe(&backend_host, 1, 1);
    cr_expect_eq(result.observation_count, 0);
    cr_expect_null(result.observations);
    result_free(&result);
}

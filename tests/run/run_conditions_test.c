// SPDX-License-Identifier: MIT
// Tests how observations of devices by the driver lead to the verdict of a run. One of four ranks has an unhealthy
// device. Also tests which devices a run observes.
#include "run/internal.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/result.h"
#include "line.h"
#include "ranks.h"
#include "result_fixture.h"

#define NVML GSWBENCH_BINARY_DIR "/tests/nvml_new/libnvidia-ml.so.1"
#define DEVICE                                                                                                         \
    "uuid=GPU-own name=NVIDIA_H100_80GB_HBM3 pci=00000000:1B:00.0 driver=580.65.06 vbios=96.00 memory=2619 "           \
    "power=690000 temperature=66 utilization=100 energy=1000,9000000 ecc00=5 ecc01=5 ecc11=0 rows_corrected=0 "        \
    "rows_uncorrected=0 pages_single=0 pages_double=0 links=18 link0=0 link1=0 link2=0 link3=0 "

enum { RANKS = 4, ILL = 2 };

static struct result result;

static void print_id(struct backend *backend, char *text, size_t bytes)
{
    (void)backend;
    snprintf(text, bytes, "GPU-own");
}

// Gathers the observations of four ranks. The devices of the other ranks are healthy.
static void gather_four(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    struct result well = {.verdict = VERDICT_VALID};
    (void)comm;
    cr_assert_eq(bytes, sizeof(struct observation));
    fixture_observe(&well, RANKS);
    memcpy(out, well.observations, RANKS * sizeof(struct observation));
    memcpy((struct observation *)out + ILL, in, sizeof(struct observation));
    result_free(&well);
}

static const struct comm_ops    processes = {.name = "mpi", .gather_all = gather_four};
static const struct comm_ops    twins     = {.name = "mpi", .gather_all = ranks_report_the_same};
static const struct backend_ops device    = {.name = "cuda", .is_device = true, .device_id = print_id};

// Observes a run with a script of the fake NVML. `sharers` ranks use the device of this rank.
static struct result observe(const char *script, const struct backend_ops *ops, struct comm comm, int64_t sharers,
                             double seconds)
{
    struct backend   backend   = {.ops = ops};
    struct benchmark benchmark = {.config_text = ""};
    struct result    gathered  = {.verdict = VERDICT_VALID};
    struct steps     steps     = {.comm = &comm, .backend = &backend, .result = &gathered, .benchmark = &benchmark};
    benchmark.job.config.run.observe_seconds = seconds;
    setenv("FAKE_NVML", script, 1);
    cr_assert_not_null(dlopen(NVML, RTLD_NOW));    // so that the library is found by its name
    observations_open(&steps, sharers);
    if (steps.observed.device != NULL) {
        observer_begin(steps.observed.device);
        observer_end(steps.observed.device);
    }
    observations_gather(&steps, sharers);
    cr_expect_null(steps.observed.device);
    return gathered;
}

// Runs with a script of the fake NVML. Its words override the common ones.
static void run_with(const char *script)
{
    struct comm   comm     = {.ops = &processes, .topology = {.rank = ILL, .ranks = RANKS, .host = "here"}};
    struct result gathered = observe(line_of("%s " DEVICE, script), &device, comm, 1, 1);
    fixture_open(&result);
    fixture_observe(&result, RANKS);
    memcpy(result.observations, gathered.observations, RANKS * sizeof(struct observation));
    result_check(&result);
    result_free(&gathered);
}

Test(run_conditions, decide_the_verdict_and_name_rank_and_host)
{
#define WELL "sm=1755 limit=700000 events=0 ecc10=0 rows_pending=0 rows_failed=0 active=18"
    static const struct {
        const char *script, *id, *fault;    // NULL: no reason
        bool        is_degraded;
    } cases[] = {
        {WELL, NULL, NULL, false},
        {"events=0,0x8,0 " WELL, "hw-slowdown", "hardware slowdown in 1 of 1 samples", true},
        {"events=0,0x40,0 " WELL, "hw-thermal-slowdown", "hardware thermal slowdown in 1 of 1 samples", true},
        {"events=0,0x20,0 " WELL, "sw-thermal-slowdown", "software thermal slowdown in 1 of 1 samples", true},
        {"events=0,0x80,0 " WELL, "hw-power-brake", "hardware power brake in 1 of 1 samples", true},
        {"events=0,0x4,0 " WELL, "sw-power-cap", "power cap in 1 of 1 samples, which is normal at full load", false},
        {"limit=500000 " WELL, "power-limit-low", "power limit 500 W, 28.6 % below 700, the median of 4 ranks", true},
        {"sm=1410 " WELL, "sm-clock-low", "SM clock 1410 MHz, 19.7 % below 1755, the median of 4 ranks", true},
        {"ecc10=0,0,1 " WELL, "ecc-uncorrected", "1 ECC errors not corrected during the run", true},
        {"ecc00=5,5,7 " WELL, "ecc-corrected", "2 ECC errors corrected during the run", false},
        {"rows_pending=1 " WELL, "row-remap-pending", "a memory row waits for a reset to be remapped", true},
        {"rows_failed=1 " WELL, "row-remap-failed", "a memory row could not be remapped", true},
        {"active=18,18,17 " WELL, "nvlink-inactive", "17 of 18 NVLinks active after the run, 18 before it", true},
        {"active=17 " WELL, "nvlink-inactive", "17 of 18 NVLinks active, its peers have 18", true},
        {"init=9 " WELL, "not-observed", "not observed: libnvidia-ml.so.1: Driver Not Loaded", false},
        {"lost=3 " WELL, "not-observed", "observed for 1 samples only: GPU is lost", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char  *expected = "rank 2 (dgx-02";
        enum verdict verdict  = cases[i].is_degraded ? VERDICT_DEGRADED : VERDICT_VALID;

        run_with(cases[i].script);

        cr_expect_eq(result.verdict, verdict, "case %zu: %s", i, result_verdict_names[result.verdict]);
        cr_expect_eq(result.exit_code, 0);
        if (cases[i].id == NULL) {
            cr_expect_eq(result.reason_count, 0, "%s", result.reason_count > 0 ? result.reasons[0].message : "");
        } else {
            cr_assert_eq(result.reason_count, 1, "case %zu: %d reasons", i, (int)result.reason_count);
            const struct result_reason *reason = result.reasons;
            size_t                      length = strlen(reason->message), tail = strlen(cases[i].fault);
            cr_expect_str_eq(reason->id, cases[i].id);
            cr_expect_eq(reason->rank, ILL);
            cr_expect_eq(strncmp(reason->message, expected, strlen(expected)), 0, "%s", reason->message);
            cr_expect(length > tail && strcmp(reason->message + length - tail, cases[i].fault) == 0, "%s",
                      reason->message);
        }
        result_free(&result);
    }
}

// Counts the null values within a JSON value.
static int count_nulls(json_t *value)
{
    int         nulls = json_is_null(value);
    const char *key;
    json_t     *part;
    json_object_foreach(value, key, part)
    {
        nulls += count_nulls(part);
    }
    return nulls;
}

// Returns the observation of the unhealthy rank. The caller releases the document.
static json_t *observation_of(json_t **document)
{
    *document = result_to_json(&result);
    return json_array_get(json_object_get(*document, "observations"), ILL);
}

static void expect_same_keys(json_t *well, json_t *ill, const char *function)
{
    const char *key;
    json_t     *value;
    cr_expect_eq(json_object_size(well), json_object_size(ill), "%s", function);
    json_object_foreach(well, key, value)
    {
        json_t *other = json_object_get(ill, key);
        cr_assert_not_null(other, "%s: %s is absent", function, key);
        expect_same_keys(value, other, function);
    }
}

// If a call of NVML fails, its values are null, with a reason next to them. No other value may be null or missing, and
// all other values are judged as usual.
Test(run_conditions, lose_no_more_than_what_a_call_would_have_said)
{
#define THREE(a, b, c) a ": Unknown Error, " b ": Unknown Error, " c ": Unknown Error"
    static const struct {
        const char *function;
        int         nulls;
        const char *unknown;
    } cases[] = {
        {"nvmlSystemGetDriverVersion", 0, ""},
        {"nvmlDeviceGetName", 0, ""},
        {"nvmlDeviceGetUUID", 0, ""},
        {"nvmlDeviceGetPciInfo_v3", 0, ""},
        {"nvmlDeviceGetVbiosVersion", 0, ""},
        {"nvmlDeviceGetClockInfo", 10, "sm_clock_mhz: Unknown Error, memory_clock_mhz: Unknown Error"},
        {"nvmlDeviceGetPowerUsage", 5, "power_w: Unknown Error"},
        {"nvmlDeviceGetEnforcedPowerLimit", 5, "power_limit_w: Unknown Error"},
        {"nvmlDeviceGetUtilizationRates", 5, "utilization_percent: Unknown Error"},
        {"nvmlDeviceGetTotalEccErrors", 12,
         THREE("ecc_corrected", "ecc_uncorrected", "ecc_corrected_ever") ", ecc_uncorrected_ever: Unknown Error"},
        {"nvmlDeviceGetTemperature", 5, "temperature_c: Unknown Error"},
        {"nvmlDeviceGetTotalEnergyConsumption", 0, ""},    // power samples replace it
        {"nvmlDeviceGetCurrentClocksEventReasons", 27, "throttles: Unknown Error"},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", 0, ""},
        {"nvmlDeviceGetRemappedRows", 12,
         THREE("rows_remapped_corrected", "rows_remapped_uncorrected",
               "row_remap_pending") ", row_remap_failed: Unknown Error"},
        {"nvmlDeviceGetRetiredPages", 6, "pages_retired_single: Unknown Error, pages_retired_double: Unknown Error"},
        {"nvmlDeviceGetNvLinkState", 15,
         THREE("nvlinks", "nvlinks_active",
               "nvlink_replays") ", nvlink_recoveries: Unknown Error, nvlink_crc_errors: Unknown Error"},
        {"nvmlDeviceGetNvLinkErrorCounter", 9, THREE("nvlink_replays", "nvlink_recoveries", "nvlink_crc_errors")},
    };
    json_t *well, *ill;
    run_with(WELL);
    json_t *expected = observation_of(&well);
    cr_expect_eq(count_nulls(expected), 0);
    result_free(&result);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_with(line_of("refuse=%s:999 " WELL, cases[i].function));

        json_t *observation = observation_of(&ill);
        cr_expect_eq(count_nulls(observation), cases[i].nulls, "%s: %d", cases[i].function, count_nulls(observation));
        cr_expect_str_eq(json_string_value(json_object_get(observation, "unknown")), cases[i].unknown);
        expect_same_keys(expected, observation, cases[i].function);
        cr_expect_eq(result.verdict, VERDICT_VALID, "%s", cases[i].function);
        cr_expect_eq(result.reason_count, 0, "%s", cases[i].function);
        json_decref(ill);
        result_free(&result);
    }
    json_decref(well);
}

// Observes a run as the second of two ranks on one host.
static struct result observe_twin(const struct backend_ops *ops, int64_t sharers, double seconds)
{
    struct comm comm = {.ops = &twins, .topology = {.rank = 1, .ranks = 2, .host = "here"}};
    return observe("uuid=GPU-own name=NVIDIA_H200 sm=1980 ecc00=3", ops, comm, sharers, seconds);
}

Test(run_conditions, are_of_every_rank_with_a_device_of_its_own)
{
    struct result seen = observe_twin(&device, 1, 1);
    cr_assert_eq(seen.observation_count, 2);
    cr_expect_eq(seen.observations[1].rank, 1);
    cr_expect_str_eq(seen.observations[1].missing, "");
    cr_expect_str_eq(seen.observations[1].name, "NVIDIA H200");
    cr_expect_eq(seen.observations[1].gauges[GAUGE_SM_CLOCK].median, 1980.0);
    cr_expect_eq(seen.observations[1].counters[COUNTER_ECC_CORRECTED].before, 3.0);
    cr_expect(isnan(seen.observations[1].gauges[GAUGE_POWER].median));
    result_free(&seen);
}

Test(run_conditions, claim_nothing_of_a_device_that_ranks_share_or_that_is_not_asked_for)
{
    for (int64_t sharers = 1; sharers <= 2; sharers++) {
        struct result seen = observe_twin(&device, sharers, sharers == 1 ? 0 : 1);
        cr_assert_eq(seen.observation_count, 2);
        cr_expect_str_eq(seen.observations[0].missing,
                         sharers == 1 ? "run.observe_seconds is 0" : "2 ranks share the device");
        cr_expect(sharers == 1 || seen.observations[0].name[0] == '\0');
        cr_expect(isnan(seen.observations[0].gauges[GAUGE_SM_CLOCK].median));
        cr_expect(isnan(seen.observations[0].gauges[GAUGE_SM_CLOCK].before));
        result_free(&seen);
    }
}

Test(run_conditions, are_none_of_a_processor)
{
    struct result seen = observe_twin(&backend_host, 1, 1);
    cr_expect_eq(seen.observation_count, 0);
    cr_expect_null(seen.observations);
    result_free(&seen);
}

// SPDX-License-Identifier: MIT
// Tests the values that the observer reads before, during and after the steps. The fake NVML (fake_nvml.c) gets its
// values from a script.
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gswbench/clock.h"
#include "gswbench/observe.h"

#define NEW_NVML GSWBENCH_BINARY_DIR "/tests/nvml_new/libnvidia-ml.so.1"
#define OLD_NVML GSWBENCH_BINARY_DIR "/tests/nvml_old/libnvidia-ml.so.1"
#define UUID     "GPU-11112222-3333-4444-5555-666677778888"
#define DEVICE   "uuid=" UUID " name=NVIDIA_H100_80GB_HBM3 pci=00000000:1B:00.0 driver=580.65.06 vbios=96.00.A5 "

static void sleep_seconds(double seconds)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)(fmod(seconds, 1) * 1e9)}, NULL);
}

// Observes a run that takes run_seconds, and samples every 10 ms.
static struct observation observe(const char *library, const char *script, double run_seconds)
{
    const struct observe_setup setup = {.library = library, .device = UUID, .seconds = 0.01};
    struct observation         observation;
    setenv("FAKE_NVML", script, 1);
    struct observer *observer = observer_open(&setup);
    observer_begin(observer);
    sleep_seconds(run_seconds);
    observer_end(observer);
    observer_close(observer, &observation);
    return observation;
}

static void expect_gauge(const struct gauge_values *gauge, double before, double minimum, double median, double maximum,
                         double after)
{
    cr_expect_eq(gauge->before, before);
    cr_expect_eq(gauge->minimum, minimum);
    cr_expect_eq(gauge->median, median);
    cr_expect_eq(gauge->maximum, maximum);
    cr_expect_eq(gauge->after, after);
}

static void expect_counter(const struct counter_values *counter, double before, double after, double growth)
{
    cr_expect_eq(counter->before, before);
    cr_expect_eq(counter->after, after);
    cr_expect_eq(counter->growth, growth);
}

static bool is_unknown(const struct gauge_values *gauge)
{
    return isnan(gauge->before) && isnan(gauge->minimum) && isnan(gauge->median) && isnan(gauge->maximum) &&
           isnan(gauge->after);
}

Test(observer, takes_down_which_device_it_is)
{
    struct observation observation = observe(NEW_NVML, DEVICE, 0);
    cr_expect_str_eq(observation.missing, "");
    cr_expect_str_eq(observation.name, "NVIDIA H100 80GB HBM3");
    cr_expect_str_eq(observation.uuid, UUID);
    cr_expect_str_eq(observation.pci, "00000000:1B:00.0");
    cr_expect_str_eq(observation.driver, "580.65.06");
    cr_expect_str_eq(observation.vbios, "96.00.A5");
}

Test(observer, reads_gauges_before_while_and_after_steps_run)
{
    struct observation observation =
        observe(NEW_NVML,
                DEVICE "sm=345,1980:1410:1755,1200 memory=2619 power=90000,690500,250000 limit=700000 "
                       "temperature=31,70:72:71,66 utilization=0,100,40",
                1.0);
    cr_expect_geq(observation.samples, 4);
    cr_expect_leq(observation.samples, 101);
    expect_gauge(&observation.gauges[GAUGE_SM_CLOCK], 345, 1410, 1755, 1980, 1200);
    expect_gauge(&observation.gauges[GAUGE_MEMORY_CLOCK], 2619, 2619, 2619, 2619, 2619);
    expect_gauge(&observation.gauges[GAUGE_POWER], 90, 690.5, 690.5, 690.5, 250);
    expect_gauge(&observation.gauges[GAUGE_POWER_LIMIT], 700, 700, 700, 700, 700);
    expect_gauge(&observation.gauges[GAUGE_TEMPERATURE], 31, 70, 71, 72, 66);
    expect_gauge(&observation.gauges[GAUGE_UTILIZATION], 0, 100, 100, 100, 40);
}

Test(observer, counts_the_samples_that_show_a_throttle)
{
    struct observation observation = observe(NEW_NVML, DEVICE "events=0x1,0x4:0x44:0x48:0x4,0x20", 1.0);

    cr_assert_geq(observation.samples, 4);
    cr_expect_eq(observation.throttles[THROTTLE_IDLE].before, 1.0);
    cr_expect_eq(observation.throttles[THROTTLE_IDLE].samples, 0.0);
    cr_expect_eq(observation.throttles[THROTTLE_POWER_CAP].before, 0.0);
    cr_expect_eq(observation.throttles[THROTTLE_POWER_CAP].samples, (double)observation.samples - 1);
    cr_expect_eq(observation.throttles[THROTTLE_HARDWARE_THERMAL].samples, 2.0);
    cr_expect_eq(observation.throttles[THROTTLE_HARDWARE].samples, 1.0);
    cr_expect_eq(observation.throttles[THROTTLE_THERMAL].samples, 0.0);
    cr_expect_eq(observation.throttles[THROTTLE_THERMAL].after, 1.0);
}

Test(observer, knows_how_far_counters_have_grown)
{
    struct observation observation = observe(
        NEW_NVML,
        DEVICE "ecc00=5,5,9 ecc10=0 ecc01=105,105,109 ecc11=2,2,3 rows_corrected=1 rows_uncorrected=2 "
               "rows_pending=0,0,1 rows_failed=0 pages_single=0 pages_double=3 links=18 active=18,18,17 link0=1,1,4 "
               "link1=0 link2=2 link3=10,10,11",
        0);
    const struct counter_values *counters = observation.counters;
    expect_counter(&counters[COUNTER_ECC_CORRECTED], 5, 9, 4);
    expect_counter(&counters[COUNTER_ECC_UNCORRECTED], 0, 0, 0);
    expect_counter(&counters[COUNTER_ECC_CORRECTED_EVER], 105, 109, 4);
    expect_counter(&counters[COUNTER_ECC_UNCORRECTED_EVER], 2, 3, 1);
    expect_counter(&counters[COUNTER_ROWS_CORRECTED], 1, 1, 0);
    expect_counter(&counters[COUNTER_ROWS_UNCORRECTED], 2, 2, 0);
    expect_counter(&counters[COUNTER_ROWS_PENDING], 0, 1, 1);
    expect_counter(&counters[COUNTER_ROWS_FAILED], 0, 0, 0);
    expect_counter(&counters[COUNTER_PAGES_SINGLE], 0, 0, 0);
    expect_counter(&counters[COUNTER_PAGES_DOUBLE], 3, 3, 0);
    expect_counter(&counters[COUNTER_LINKS], 18, 18, 0);
    expect_counter(&counters[COUNTER_LINKS_ACTIVE], 18, 17, -1);
    expect_counter(&counters[COUNTER_LINK_REPLAYS], 18, 68, 50);
    expect_counter(&counters[COUNTER_LINK_RECOVERIES], 0, 0, 0);
    expect_counter(&counters[COUNTER_LINK_CRC], 216, 221, 5);
}

Test(observer, takes_energy_from_the_device_s_meter)
{
    struct observation observation = observe(NEW_NVML, DEVICE "energy=1000000,1020500 power=700000", 0.05);
    cr_expect_eq(observation.energy_joules, 20.5);
    cr_expect_str_eq(observation.energy_source, "counter");
}

// Without an energy meter, energy is the sum of power samples: here 500 W for 0.2 s.
Test(observer, adds_up_power_where_there_is_no_meter)
{
    double             begin       = clock_seconds();
    struct observation observation = observe(NEW_NVML, DEVICE "power=500000", 0.2);
    double             at_most     = 500 * (clock_seconds() - begin);

    cr_expect_str_eq(observation.energy_source, "power");
    cr_expect_geq(observation.energy_joules, 99.0);
    cr_expect_leq(observation.energy_joules, at_most);
}

Test(observer, knows_nothing_of_what_is_not_supported)
{
    struct observation observation = observe(NEW_NVML, DEVICE, 0.05);
    cr_expect_geq(observation.samples, 1);
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        cr_expect(is_unknown(&observation.gauges[gauge]), "gauge %d", gauge);
    }
    for (int i = 0; i < COUNTER_COUNT; i++) {
        const struct counter_values *counter = &observation.counters[i];
        cr_expect(isnan(counter->before) && isnan(counter->after) && isnan(counter->growth), "counter %d", i);
    }
    cr_expect_eq(strncmp(observation.unknown, "throttles: Not Supported, sm_clock_mhz: Not Supported, ", 54), 0, "%s",
                 observation.unknown);
    cr_expect_not_null(strstr(observation.unknown, ", nvlink_crc_errors: Not Supported"), "%s", observation.unknown);
    for (int i = 0; i < THROTTLE_COUNT; i++) {
        const struct throttle_values *throttle = &observation.throttles[i];
        cr_expect(isnan(throttle->before) && isnan(throttle->samples) && isnan(throttle->after), "throttle %d", i);
    }
    cr_expect(isnan(observation.energy_joules));
    cr_expect_str_eq(observation.energy_source, "");
}

// Only the calls for power and VBIOS version fail. All other values must be known.
Test(observer, loses_no_more_than_what_a_call_would_have_said)
{
    struct observation observation =
        observe(NEW_NVML,
                DEVICE "sm=1980 power=700000 temperature=60 refuse=nvmlDeviceGetPowerUsage:4 "
                       "refuse=nvmlDeviceGetVbiosVersion:999 links=2 active=1 link0=7",
                0.05);
    cr_expect(is_unknown(&observation.gauges[GAUGE_POWER]));
    cr_expect(isnan(observation.energy_joules));
    cr_expect_str_eq(observation.vbios, "");
    cr_expect_str_eq(observation.name, "NVIDIA H100 80GB HBM3");
    expect_gauge(&observation.gauges[GAUGE_SM_CLOCK], 1980, 1980, 1980, 1980, 1980);
    expect_gauge(&observation.gauges[GAUGE_TEMPERATURE], 60, 60, 60, 60, 60);
    expect_counter(&observation.counters[COUNTER_LINK_REPLAYS], 7, 7, 0);    // of the active link
    cr_expect(isnan(observation.counters[COUNTER_LINK_RECOVERIES].before));
    cr_expect_str_eq(observation.missing, "");
}

Test(observer, asks_an_older_driver_for_what_it_has)
{
    struct observation observation =
        observe(OLD_NVML,
                DEVICE "events=0x4 ecc00=1 power=300000 energy=5 rows_pending=1 links=4 active=4 pages_single=0", 0.05);
    cr_expect_str_eq(observation.missing, "");
    cr_expect_eq(observation.throttles[THROTTLE_POWER_CAP].samples, (double)observation.samples);
    cr_expect_str_eq(observation.energy_source, "power");
    expect_counter(&observation.counters[COUNTER_ECC_CORRECTED], 1, 1, 0);
    cr_expect(isnan(observation.counters[COUNTER_ROWS_PENDING].before));
    cr_expect(isnan(observation.counters[COUNTER_LINKS].before));
    cr_expect(isnan(observation.counters[COUNTER_PAGES_SINGLE].before));
}

Test(observer, says_why_nothing_was_observed)
{
    const struct {
        const char *library, *script, *expected;
    } cases[] = {
        {"libnvidia-ml-absent.so.1", "",
         "libnvidia-ml-absent.so.1 cannot be loaded (libnvidia-ml-absent.so.1: cannot open shared object file: No such "
         "file or directory): install it, or add its folder to LD_LIBRARY_PATH"},
        {NEW_NVML, DEVICE "init=9", ": Driver Not Loaded"},
        {NEW_NVML, "uuid=GPU-other sm=1980", " does not find " UUID ": Not Found"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct observation observation = observe(cases[i].library, cases[i].script, 0);
        size_t             length = strlen(observation.missing), expected = strlen(cases[i].expected);
        cr_expect(length >= expected && strcmp(observation.missing + length - expected, cases[i].expected) == 0, "%s",
                  observation.missing);
        cr_expect_eq(observation.samples, 0);
        cr_expect(is_unknown(&observation.gauges[GAUGE_SM_CLOCK]));
        cr_expect(isnan(observation.energy_joules));
    }
}

Test(observer, can_be_switched_off)
{
    const struct observe_setup setup = {.library = NEW_NVML, .device = UUID, .seconds = 0};
    struct observation         observation;
    setenv("FAKE_NVML", DEVICE "sm=1980", 1);
    struct observer *observer = observer_open(&setup);
    observer_begin(observer);
    observer_close(observer, &observation);
    cr_expect_str_eq(observation.missing, "run.observe_seconds is 0");
    cr_expect(is_unknown(&observation.gauges[GAUGE_SM_CLOCK]));
}

// The run ends before its measured steps, so the observation has only the values from before the run.
Test(observer, keeps_what_it_has_of_a_run_that_ended_early)
{
    const struct observe_setup setup = {.library = NEW_NVML, .device = UUID, .seconds = 1};
    struct observation         observation;
    setenv("FAKE_NVML", DEVICE "sm=345 ecc00=1", 1);
    observer_close(observer_open(&setup), &observation);
    cr_expect_eq(observation.gauges[GAUGE_SM_CLOCK].before, 345.0);
    cr_expect(isnan(observation.gauges[GAUGE_SM_CLOCK].median));
    cr_expect_eq(observation.counters[COUNTER_ECC_CORRECTED].before, 1.0);
    cr_expect(isnan(observation.counters[COUNTER_ECC_CORRECTED].growth));
    cr_expect_str_eq(observation.missing, "");
}

// The first power reading happens before the run, so the device is lost after the third sample of the run.
Test(observer, keeps_the_samples_of_a_device_that_is_lost)
{
    struct observation observation =
        observe(NEW_NVML, DEVICE "sm=345,1980 power=600000 ecc10=0 events=0 energy=1000,3000 lost=4", 0.2);
    cr_expect_str_eq(observation.missing, "GPU is lost");
    cr_expect_eq(observation.samples, 2);
    cr_expect_eq(observation.gauges[GAUGE_POWER].maximum, 600.0);
    cr_expect(isnan(observation.gauges[GAUGE_POWER].after));
    cr_expect(isnan(observation.counters[COUNTER_ECC_UNCORRECTED].growth));
    cr_expect(isnan(observation.energy_joules));
}

// Each reading takes 20 ms. Sampling may use 1 % of a core, so the second sample would follow after 2 s.
Test(observer, samples_less_often_where_the_driver_is_slow)
{
    struct observation observation =
        observe(NEW_NVML, DEVICE "sm=1980 temperature=60 slow=nvmlDeviceGetTemperature:20", 0.5);
    cr_expect_eq(observation.samples, 1);
    cr_expect_geq(observation.sampling_seconds, 0.02);
    cr_expect_leq(observation.sampling_seconds, 0.3);
}

// The observer's thread never returns from the driver. With the thread sanitizer all tests run in one process, and the
// next test would reset the fake driver while the thread is in it.
#ifndef __SANITIZE_THREAD__
Test(observer, does_not_wait_for_a_driver_that_has_stopped_answering, .timeout = 60)
{
    double             begin       = clock_seconds();
    struct observation observation = observe(
        NEW_NVML, DEVICE "sm=1980,1980 refuse=nvmlDeviceGetTemperature:3 slow=nvmlDeviceGetPowerUsage:8000", 0.1);
    cr_expect_leq(clock_seconds() - begin, 20.0);
    cr_expect_str_eq(observation.missing, "the driver did not answer in 5 s");
    cr_expect_eq(observation.samples, 0);
}
#endif

// SPDX-License-Identifier: MIT
// Tests which observations of devices make a run DEGRADED, are only noted, or are ignored. Also tests the energy per
// step. Also tests the limits above which a slow rank is noted or makes the result DEGRADED, and how the rank is named.
#include <math.h>

#include "line.h"
#include "result_suite.h"

static void open_devices(void)
{
    open_result();
    fixture_observe(&result, 4);
}

TestSuite(device_check, .init = open_devices, .fini = close_result);

static struct observation *device(int rank)
{
    return &result.observations[rank];
}

static void raise(int rank, enum counter counter, double before, double after)
{
    device(rank)->counters[counter] = (struct counter_values){before, after, after - before};
}

// Expects exactly one reason, for rank 2, with this id and text.
static void expect_fault(enum verdict verdict, const char *id, const char *fault)
{
    expect_reason(verdict, id, line_of("rank 2 (dgx-02, NVIDIA H100 80GB HBM3 at 00000000:03:00.0): %s", fault));
    cr_expect_eq(result.reasons[0].rank, 2);
    cr_expect_eq(result.exit_code, 0);
}

static void expect_nothing(void)
{
    expect_reason(VERDICT_VALID, NULL, NULL);
}

static void again(void)
{
    close_result();
    open_devices();
}

Test(device_check, finds_nothing_in_healthy_devices)
{
    device(1)->throttles[THROTTLE_IDLE].samples    = 1;
    device(1)->throttles[THROTTLE_DISPLAY].samples = 1;
    expect_nothing();
}

Test(device_check, finds_a_slowdown_and_notes_a_limit)
{
    static const struct {
        enum throttle throttle;
        enum verdict  verdict;
        const char   *id, *fault;
    } cases[] = {
        {THROTTLE_HARDWARE, VERDICT_DEGRADED, "hw-slowdown", "hardware slowdown in 3 of 40 samples"},
        {THROTTLE_HARDWARE_THERMAL, VERDICT_DEGRADED, "hw-thermal-slowdown",
         "hardware thermal slowdown in 3 of 40 samples"},
        {THROTTLE_THERMAL, VERDICT_DEGRADED, "sw-thermal-slowdown", "software thermal slowdown in 3 of 40 samples"},
        {THROTTLE_POWER_BRAKE, VERDICT_DEGRADED, "hw-power-brake", "hardware power brake in 3 of 40 samples"},
        {THROTTLE_POWER_CAP, VERDICT_VALID, "sw-power-cap",
         "power cap in 3 of 40 samples, which is normal at full load"},
        {THROTTLE_CLOCKS_SETTING, VERDICT_VALID, "clocks-setting", "application clocks in 3 of 40 samples"},
        {THROTTLE_SYNC_BOOST, VERDICT_VALID, "sync-boost", "sync boost in 3 of 40 samples"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        device(2)->throttles[cases[i].throttle].samples = 3;
        expect_fault(cases[i].verdict, cases[i].id, cases[i].fault);
        again();
    }
}

Test(device_check, finds_errors_and_links_that_are_down)
{
    static const struct {
        enum counter counter;
        double       before, after;
        enum verdict verdict;
        const char  *id, *fault;
    } cases[] = {
        {COUNTER_ECC_UNCORRECTED, 1, 3, VERDICT_DEGRADED, "ecc-uncorrected",
         "2 ECC errors not corrected during the run"},
        {COUNTER_ECC_UNCORRECTED_EVER, 7, 8, VERDICT_DEGRADED, "ecc-uncorrected",
         "1 ECC errors not corrected during the run"},
        {COUNTER_ROWS_PENDING, 0, 1, VERDICT_DEGRADED, "row-remap-pending",
         "a memory row waits for a reset to be remapped"},
        {COUNTER_ROWS_PENDING, 1, 1, VERDICT_DEGRADED, "row-remap-pending",
         "a memory row waits for a reset to be remapped"},
        {COUNTER_ROWS_FAILED, 1, 1, VERDICT_DEGRADED, "row-remap-failed", "a memory row could not be remapped"},
        {COUNTER_LINKS_ACTIVE, 17, 17, VERDICT_DEGRADED, "nvlink-inactive",
         "17 of 18 NVLinks active, its peers have 18"},
        {COUNTER_LINKS_ACTIVE, 18, 16, VERDICT_DEGRADED, "nvlink-inactive",
         "16 of 18 NVLinks active after the run, 18 before it"},
        {COUNTER_ECC_CORRECTED, 5, 9, VERDICT_VALID, "ecc-corrected", "4 ECC errors corrected during the run"},
        {COUNTER_LINK_REPLAYS, 10, 17, VERDICT_VALID, "nvlink-replays", "7 NVLink replays during the run"},
        {COUNTER_LINK_RECOVERIES, 0, 1, VERDICT_VALID, "nvlink-recoveries", "1 NVLink recoveries during the run"},
        {COUNTER_LINK_CRC, 2, 4, VERDICT_VALID, "nvlink-crc", "2 NVLink CRC errors during the run"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        raise(2, cases[i].counter, cases[i].before, cases[i].after);
        expect_fault(cases[i].verdict, cases[i].id, cases[i].fault);
        again();
    }
}

Test(device_check, takes_no_slowdown_for_one_that_was_over_or_came_later)
{
    device(2)->throttles[THROTTLE_HARDWARE]         = (struct throttle_values){1, 0, 0};
    device(2)->throttles[THROTTLE_HARDWARE_THERMAL] = (struct throttle_values){0, 0, 1};
    expect_nothing();
}

Test(device_check, says_once_what_two_counters_count)
{
    raise(2, COUNTER_ECC_UNCORRECTED, 1, 3);
    raise(2, COUNTER_ECC_UNCORRECTED_EVER, 7, 9);
    expect_fault(VERDICT_DEGRADED, "ecc-uncorrected", "2 ECC errors not corrected during the run");
}

Test(device_check, leaves_old_errors_alone)
{
    raise(2, COUNTER_ECC_UNCORRECTED, 3, 3);
    raise(2, COUNTER_ECC_UNCORRECTED_EVER, 9, 9);
    raise(2, COUNTER_ROWS_UNCORRECTED, 2, 2);
    expect_nothing();
}

// A device without active links is no fault if all devices of its model have none, such as boards without NVLink
// bridges.
Test(device_check, leaves_links_alone_that_no_other_of_its_kind_has)
{
    for (int rank = 0; rank < 4; rank++) {
        raise(rank, COUNTER_LINKS_ACTIVE, 0, 0);
    }
    raise(3, COUNTER_LINKS_ACTIVE, 4, 4);
    strcpy(device(3)->name, "NVIDIA H100 NVL");
    expect_nothing();
}

// Other devices have 1755 MHz and 700 W, so the limits are 0.95 x 1755 = 1667.25 and 0.95 x 700 = 665.
Test(device_check, finds_a_gauge_more_than_5_percent_below_the_median)
{
    static const struct {
        enum gauge  gauge;
        double      value;
        const char *id, *fault;
    } cases[] = {
        {GAUGE_SM_CLOCK, 1668, NULL, NULL},
        {GAUGE_SM_CLOCK, 1667, "sm-clock-low", "SM clock 1667 MHz, 5.0 % below 1755, the median of 4 ranks"},
        {GAUGE_POWER_LIMIT, 665, NULL, NULL},
        {GAUGE_POWER_LIMIT, 664, "power-limit-low", "power limit 664 W, 5.1 % below 700, the median of 4 ranks"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        again();
        device(2)->gauges[cases[i].gauge].median = cases[i].value;
        if (cases[i].id == NULL) {
            expect_nothing();
        } else {
            expect_fault(VERDICT_DEGRADED, cases[i].id, cases[i].fault);
        }
    }
}

Test(device_check, compares_clocks_of_one_kind_only)
{
    strcpy(device(2)->name, "NVIDIA A100-SXM4-80GB");
    device(2)->gauges[GAUGE_SM_CLOCK].median = 1410;
    expect_nothing();
}

Test(device_check, knows_nothing_of_what_was_not_observed)
{
    int64_t rank = device(2)->rank;
    observation_init(device(2), "libnvidia-ml.so.1 does not open");
    device(2)->rank = rank;
    expect_reason(VERDICT_VALID, "not-observed", "rank 2 (dgx-02): not observed: libnvidia-ml.so.1 does not open");
    cr_expect(isnan(result.figures.joules_per_step) && isnan(result.figures.tokens_per_joule));
}

Test(device_check, says_nothing_of_a_library_that_nobody_has)
{
    for (int rank = 0; rank < 4; rank++) {
        observation_init(device(rank), "libnvidia-ml.so.1 does not open");
        device(rank)->rank = rank;
    }
    expect_nothing();
}

Test(device_check, notes_a_device_that_was_lost)
{
    strcpy(device(2)->missing, "GPU is lost");
    expect_fault(VERDICT_VALID, "not-observed", "observed for 40 samples only: GPU is lost");
}

Test(device_check, names_eight_ranks_and_counts_the_others)
{
    fixture_observe(&result, 12);
    for (int rank = 1; rank < 12; rank++) {
        device(rank)->throttles[THROTTLE_HARDWARE].samples = rank;
    }
    result_check(&result);
    cr_assert_eq(result.reason_count, 8);
    cr_expect_str_eq(result.reasons[0].message, "rank 1 (dgx-01, NVIDIA H100 80GB HBM3 at 00000000:02:00.0): hardware "
                                                "slowdown in 1 of 40 samples");
    cr_expect_str_eq(result.reasons[7].message, "rank 8 (dgx-05, NVIDIA H100 80GB HBM3 at 00000000:09:00.0): hardware "
                                                "slowdown in 8 of 40 samples; also on 3 more");
}

Test(device_check, notes_once_what_all_ranks_show)
{
    for (int rank = 0; rank < 4; rank++) {
        device(rank)->throttles[THROTTLE_POWER_CAP].samples = 40;
    }
    result_check(&result);
    cr_assert_eq(result.reason_count, 1);
    cr_expect_str_eq(result.reasons[0].message, "rank 0 (dgx-01, NVIDIA H100 80GB HBM3 at 00000000:01:00.0): power cap "
                                                "in 40 of 40 samples, which is normal at full load; also on 3 more");
}

Test(device_check, leaves_a_graver_verdict_as_it_is)
{
    device(2)->throttles[THROTTLE_HARDWARE].samples = 12;
    result.steps[3].loss                            = NAN;
    result_check(&result);
    cr_expect_eq(result.verdict, VERDICT_INVALID);
    cr_expect_eq(result.reason_count, 2);
}

// Each of 4 ranks uses 8000 J in 40 steps. A step has 128 sequences of 4096 tokens.
Test(device_check, derives_the_energy_of_a_step)
{
    result_derive(&result);
    cr_expect_eq(result.figures.joules_per_step, 800.0);
    cr_expect_eq(result.figures.tokens_per_joule, 655.36);
}

static void expect_no_energy(void)
{
    result_derive(&result);
    cr_expect(isnan(result.figures.joules_per_step) && isnan(result.figures.tokens_per_joule));
}

Test(device_check, derives_no_energy_where_a_rank_or_measured_steps_are_missing)
{
    device(3)->energy_joules = NAN;
    expect_no_energy();

    device(3)->energy_joules = 8000;
    result.observation_count = 3;
    expect_no_energy();

    result.observation_count = 4;
    result.step_count        = 10;
    expect_no_energy();
}

TestSuite(rank_check, .init = open_result, .fini = close_result);

// Only rank 1 is slow. Its compute time exceeds the median by the fraction `excess`, which has the lower confidence
// bound `low`. `percent` is the number in the expected reason.
Test(rank_check, notes_three_percent_and_degrades_from_five_on)
{
    static const struct {
        double       excess, low;
        enum verdict verdict;
        const char  *percent;    // NULL: no reason
    } cases[] = {
        {0.0299, 0.02, VERDICT_VALID, NULL},   {0.03, 0.02, VERDICT_VALID, "3.0"}, {0.0499, 0.02, VERDICT_VALID, "5.0"},
        {0.05, 0.02, VERDICT_DEGRADED, "5.0"}, {0.5, 0.01, VERDICT_VALID, NULL},   {0.5, NAN, VERDICT_VALID, NULL},
        {NAN, NAN, VERDICT_VALID, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *message =
            line_of("rank 1 (dgx-02) computes %s %% longer than the median of the 2 ranks with the same work, at least "
                    "2.0 %%",
                    cases[i].percent != NULL ? cases[i].percent : "");
        reopen_result();
        result.ranks[1].excess     = cases[i].excess;
        result.ranks[1].excess_low = cases[i].low;
        expect_reason(cases[i].verdict, cases[i].percent != NULL ? "slow-rank" : NULL, message);
        cr_expect(cases[i].percent == NULL || result.reasons[0].rank == 1);
    }
}

Test(rank_check, names_the_slowest_eight_with_their_devices)
{
    fixture_observe(&result, 12);
    for (int i = 0; i < 12; i++) {
        result.ranks[i].class      = i == 11 ? 11 : 0;
        result.ranks[i].excess     = 0.06 + 0.01 * i;
        result.ranks[i].excess_low = 0.05;
    }
    result_check(&result);

    cr_assert_eq(result.reason_count, 8);
    cr_expect_str_eq(result.reasons[0].message, "rank 11 (dgx-06, GPU-11) computes 17.0 % longer than the median of "
                                                "the 1 ranks with the same work, at least 5.0 %");
    cr_expect_str_eq(result.reasons[7].message, "rank 4 (dgx-03, GPU-4) computes 10.0 % longer than the median of the "
                                                "11 ranks with the same work, at least 5.0 %; 4 more are slow");
}

// Ranks with an injected fault, a profiler or checks are slow for a known reason, so they get no reason.
Test(rank_check, leaves_out_runs_that_were_looked_into)
{
    struct result_reason reason = {.verdict = VERDICT_VALID, .id = RESULT_PROFILED, .rank = -1, .step = -1};
    result.ranks[1].excess = result.ranks[1].excess_low = 0.5;
    result_add_reason(&result, &reason);
    result_check(&result);
    cr_expect_eq(result.reason_count, 1);
    strcpy(result.reasons[0].id, RESULT_FAULT);
    result_check(&result);
    cr_expect_eq(result.reason_count, 2);
}

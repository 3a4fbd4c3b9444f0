// SPDX-License-Identifier: MIT
// Tests costs of collectives within a node: from the table of measured times, and from the model of NCCL where the
// table has none.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/statistics.h"
#include "collective_time.h"

static const double mebibyte = 1048576.0;

// The table has these times for an all-gather over 8 ranks on H100 with NCCL 2.29.2: 10.4 us for 1 KiB, 44.86 us for 8
// MiB, 125.5 us for 32 MiB, 728.8 us for 256 MiB and 1,402 us for 512 MiB.
Test(cost_collectives, interpolates_the_measured_times_by_size)
{
    config = read_machine("h100-sxm");
    expect_time(OP_ALL_GATHER, 8, 1, 64, 10.4e-6);
    expect_time(OP_ALL_GATHER, 8, 1, 1024, 10.4e-6);
    expect_time(OP_ALL_GATHER, 8, 1, 8 * mebibyte, 44.86e-6);
    expect_time(OP_ALL_GATHER, 8, 1, 384 * mebibyte, (728.8 + 1402) / 2 * 1e-6);
    expect_time(OP_ALL_GATHER, 8, 1, 32 * mebibyte, 125.5e-6);
    expect_time(OP_ALL_GATHER, 8, 1, 1024 * mebibyte, (1402 + 2 * (1402 - 728.8)) * 1e-6);
    expect_time(OP_ALL_REDUCE_MAXIMUM, 8, 1, 512 * mebibyte, 2111e-6);
    expect_time(OP_ALL_TO_ALL, 2, 4, 4 * mebibyte, 21.16e-6);
}

// Table values for 8 H100. A reduce-scatter takes 69.67 us at 16 MiB, where the all-gather is missing; both have times
// at 4 MiB (29.88 and 33.41 us) and 32 MiB (111.3 and 125.5 us). All-reduces take 78.91, 121.9 and 324.5 us at 8, 16
// and 64 MiB, all-gathers 44.86 and 208.1 us at 8 and 64 MiB.
Test(cost_collectives, borrows_a_missing_size_from_a_related_collective)
{
    config        = read_machine("h100-sxm");
    double gather = 69.67e-6 * pow(33.41 / 29.88, 1.0 / 3) * pow(125.5 / 111.3, 2.0 / 3);
    expect_time(OP_ALL_GATHER, 8, 1, 16 * mebibyte, gather);
    expect_time(OP_ALL_GATHER, 8, 1, 12 * mebibyte, (44.86e-6 + gather) / 2);
    expect_time(OP_ALL_GATHER, 8, 1, 24 * mebibyte, (125.5e-6 + gather) / 2);
    double sum = 125.5 * pow(78.91 / 44.86, 1.0 / 3) * pow(324.5 / 208.1, 2.0 / 3), line = 121.9 + (324.5 - 121.9) / 3;
    expect_time(OP_ALL_REDUCE, 8, 1, 32 * mebibyte, sqrt(sum * line) * 1e-6);
}

// A reduce-scatter of 4 B200 takes 24.42 us at 4 MiB with the protocol LL, and 70.04 us at 32 MiB and 107.5 us at 64
// MiB with Simple. NCCL uses Simple from 6.4 MiB on, so the time at 8 MiB must be extrapolated from the two times with
// Simple. The test removes the measured 48.05 us.
Test(cost_collectives, extends_the_times_of_the_protocol_that_nccl_chooses)
{
    config                                                = read_machine("b200");
    double(*seconds)[COLLECTIVE_GROUPS][COLLECTIVE_SIZES] = config.hardware.collective_times.seconds;
    memset(seconds[COLLECTIVE_ALL_GATHER], 0, sizeof(seconds[COLLECTIVE_ALL_GATHER]));
    seconds[COLLECTIVE_REDUCE_SCATTER][1][14] = 0.0;
    expect_time(OP_REDUCE_SCATTER, 4, 1, 8 * mebibyte, (70.04 - (107.5 - 70.04) * 24 / 32) * 1e-6);
}

// An all-gather takes 20 us at 2 MiB and 100 us at 16 MiB. The two sizes between them come from the reduce-scatter: 30
// us at 4 MiB and 80 us at 8 MiB. So 3 MiB take 25 us and 6 MiB 55 us.
Test(cost_collectives, interpolates_between_two_missing_sizes)
{
    config                                                = read_machine("h100-sxm");
    double(*seconds)[COLLECTIVE_GROUPS][COLLECTIVE_SIZES] = config.hardware.collective_times.seconds;
    const double gathers[] = {20e-6, 0.0, 0.0, 100e-6}, reductions[] = {20e-6, 30e-6, 80e-6, 100e-6};
    memcpy(&seconds[COLLECTIVE_ALL_GATHER][2][12], gathers, sizeof(gathers));
    memcpy(&seconds[COLLECTIVE_REDUCE_SCATTER][2][12], reductions, sizeof(reductions));
    expect_time(OP_ALL_GATHER, 8, 1, 3 * mebibyte, 25e-6);
    expect_time(OP_ALL_GATHER, 8, 1, 6 * mebibyte, 55e-6);
}

// Measured times with NCCL releases that the table does not have (H100 2.27.3, H200 2.26.2, B200 2.28.9, B300 and GB300
// 2.27), from the source of the table. A hash chose 40 rows from 1 MiB on. Messages have 2^power MiB; times are in us.
Test(cost_collectives, predicts_other_releases_of_nccl)
{
    static const struct {
        const char  *profile;
        enum op_kind kind;
        int          ranks, power;
        double       us;
    } rows[] = {{"b200", OP_ALL_GATHER, 4, 0, 15.16},         {"b200", OP_ALL_REDUCE, 8, 0, 31.33},
                {"b200", OP_ALL_REDUCE, 8, 6, 277.1},         {"b200", OP_ALL_TO_ALL, 4, 1, 22.62},
                {"b200", OP_ALL_TO_ALL, 4, 9, 876.5},         {"b300", OP_ALL_GATHER, 2, 7, 167.3},
                {"b300", OP_ALL_GATHER, 4, 4, 56.44},         {"b300", OP_ALL_GATHER, 8, 0, 18.77},
                {"b300", OP_ALL_GATHER, 8, 9, 755.9},         {"b300", OP_ALL_TO_ALL, 8, 5, 80.84},
                {"b300", OP_ALL_TO_ALL, 8, 6, 129.7},         {"b300", OP_REDUCE_SCATTER, 2, 6, 97.54},
                {"b300", OP_REDUCE_SCATTER, 2, 7, 183.1},     {"b300", OP_REDUCE_SCATTER, 2, 9, 643.9},
                {"gb300", OP_ALL_GATHER, 2, 2, 22.88},        {"gb300", OP_ALL_GATHER, 4, 4, 57.89},
                {"gb300", OP_ALL_GATHER, 4, 9, 703.5},        {"gb300", OP_ALL_TO_ALL, 2, 8, 401.9},
                {"gb300", OP_ALL_TO_ALL, 4, 1, 18.32},        {"gb300", OP_REDUCE_SCATTER, 2, 0, 11.88},
                {"h100-sxm", OP_ALL_GATHER, 8, 8, 730.4},     {"h100-sxm", OP_ALL_REDUCE, 2, 2, 32.89},
                {"h100-sxm", OP_ALL_REDUCE, 2, 6, 252.7},     {"h100-sxm", OP_ALL_REDUCE, 4, 2, 41.45},
                {"h100-sxm", OP_ALL_REDUCE, 8, 6, 322.9},     {"h100-sxm", OP_ALL_TO_ALL, 4, 1, 17.07},
                {"h100-sxm", OP_ALL_TO_ALL, 8, 5, 125.7},     {"h100-sxm", OP_ALL_TO_ALL, 8, 8, 764.2},
                {"h100-sxm", OP_REDUCE_SCATTER, 2, 3, 32.17}, {"h100-sxm", OP_REDUCE_SCATTER, 4, 2, 33.02},
                {"h200", OP_ALL_GATHER, 4, 7, 344.7},         {"h200", OP_ALL_GATHER, 8, 5, 121.4},
                {"h200", OP_ALL_GATHER, 8, 6, 206},           {"h200", OP_ALL_GATHER, 8, 8, 721.3},
                {"h200", OP_ALL_REDUCE, 2, 0, 14.15},         {"h200", OP_ALL_REDUCE, 8, 3, 78.54},
                {"h200", OP_ALL_TO_ALL, 4, 6, 181.3},         {"h200", OP_ALL_TO_ALL, 4, 9, 1202},
                {"h200", OP_ALL_TO_ALL, 8, 9, 1463},          {"h200", OP_REDUCE_SCATTER, 8, 4, 68.88}};
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    double errors[ROWS];
    for (int i = 0; i < ROWS; i++) {
        config       = read_machine(rows[i].profile);
        double bytes = mebibyte * (double)(1 << rows[i].power);
        errors[i]    = fabs(1e6 * group_seconds(rows[i].kind, rows[i].ranks, 1, bytes) / rows[i].us - 1.0);
    }
    statistics_sort(errors, ROWS);
    cr_expect_lt(errors[ROWS / 2], 0.02, "median %g", errors[ROWS / 2]);
    cr_expect_lt(errors[ROWS * 9 / 10], 0.08, "90th percentile %g", errors[ROWS * 9 / 10]);
}

// Leaves out one size of a series at a time, from 1 MiB on, and predicts it from the others. The largest size is kept,
// since it would be extrapolated. Appends one error per size, and returns the new number of errors.
static int leave_sizes_out(double seconds[COLLECTIVE_SIZES], enum op_kind kind, int ranks, double *errors, int count)
{
    int last = COLLECTIVE_SIZES - 1;
    while (seconds[last] == 0.0) {
        last--;
    }
    for (int i = 0; i < last; i++) {
        double bytes = COLLECTIVE_SMALLEST * (double)(1 << i), measured = seconds[i];
        if (measured > 0.0 && bytes >= mebibyte) {
            seconds[i]      = 0.0;
            errors[count++] = fabs(group_seconds(kind, ranks, 1, bytes) / measured - 1.0);
            seconds[i]      = measured;
        }
    }
    return count;
}

static const char *const  profiles[]         = {"a100-80gb", "h100-sxm", "h200", "b200", "b300", "gb200", "gb300"};
static const enum op_kind kinds[COLLECTIVES] = {OP_ALL_GATHER, OP_REDUCE_SCATTER, OP_ALL_REDUCE, OP_ALL_TO_ALL};

// The nearest known sizes are half and twice the size, then a quarter and four times.
Test(cost_collectives, predicts_sizes_that_are_left_out)
{
    enum { SERIES = COLLECTIVES * COLLECTIVE_GROUPS, ERRORS = 7 * SERIES * COLLECTIVE_SIZES };
    double errors[ERRORS];
    int    count = 0;
    for (int i = 0; i < 7; i++) {
        config = read_machine(profiles[i]);
        for (int series = 0; series < SERIES; series++) {
            int     collective = series / COLLECTIVE_GROUPS, group = series % COLLECTIVE_GROUPS;
            double *seconds = config.hardware.collective_times.seconds[collective][group];
            if (2 << group <= config.hardware.gpus_per_node) {
                count = leave_sizes_out(seconds, kinds[collective], 2 << group, errors, count);
            }
        }
    }
    statistics_sort(errors, count);
    cr_expect_eq(count, 430, "%d", count);
    cr_expect_lt(errors[count / 2], 0.034, "median %g", errors[count / 2]);
    cr_expect_lt(errors[count * 9 / 10], 0.112, "90th percentile %g", errors[count * 9 / 10]);
}

// From 1 MiB to 8 GiB in eight sizes per octave. Smaller messages all take about the same time, with noise, so they are
// left out.
Test(cost_collectives, takes_longer_for_more_bytes)
{
    for (int i = 0; i < 7 * COLLECTIVES; i++) {
        config = read_machine(profiles[i / COLLECTIVES]);
        for (int ranks = 2; ranks <= config.hardware.gpus_per_node && ranks <= 8; ranks *= 2) {
            double before = 0.0;
            for (int eighths = 0; eighths <= 8 * 13; eighths++) {
                double seconds = group_seconds(kinds[i % COLLECTIVES], ranks, 1, mebibyte * exp2(eighths / 8.0));
                cr_expect_geq(seconds, before, "%s %d %d: %g", profiles[i / COLLECTIVES], ranks, eighths, seconds);
                before = seconds;
            }
        }
    }
}

// The table has no groups of three. A ring of three ranks starts in 5 us and sends at 0.78 x 450e9 bytes/s, as does a
// ring over links that the user configures. An all-reduce of 8 ranks without NVLS has 14 hops.
Test(cost_collectives, leaves_what_was_not_measured_to_the_model)
{
    config             = read_machine("h100-sxm");
    const double bytes = 1e10, start = 5e-6, hop = 3.4e-6, rate = 351e9;
    expect_time(OP_ALL_GATHER, 3, 1, bytes, start + 2 * hop + bytes * 2 / 3 / rate);
    expect_time(OP_BROADCAST, 8, 1, bytes, start + 7 * hop + bytes * 7 / 8 / rate);
    double beside = group_seconds(OP_ALL_GATHER, 2, 8, bytes);
    expect_seconds(beside, 15e-6 + 14e-6 + bytes / 2 / 42.5e9);
    config.software.nvls = false;
    expect_time(OP_ALL_REDUCE, 8, 1, bytes, start + 14 * hop + 2 * bytes * 7 / 8 / rate);
    config.hardware.node_bandwidth = (struct quantity){.value = 200e9};
    expect_time(OP_ALL_GATHER, 8, 1, bytes, start + 7 * hop + bytes * 7 / 8 / 156e9);
}

// 8 ranks gather 256 MiB in 728.8 us with all their SMs. Two SMs move only 2 x 36.7e9 bytes/s.
Test(cost_collectives, is_slower_with_fewer_processors)
{
    config             = read_machine("h100-sxm");
    machine.sm_margin  = 2;
    const double bytes = 256 * mebibyte;
    expect_time(OP_ALL_GATHER, 8, 1, bytes, 5e-6 + 7 * 3.4e-6 + bytes * 7 / 8 / 73.4e9);
    machine.sm_margin = 16;
    expect_time(OP_ALL_GATHER, 8, 1, bytes, 728.8e-6);
    machine.sm_margin = 0;
    machine.zero_cta  = true;    // copy engines use no SMs
    expect_time(OP_ALL_GATHER, 8, 1, bytes, 5e-6 + 7 * 3.4e-6 + bytes * 7 / 8 / 351e9);
}

Test(cost_collectives, names_a_gpu_that_the_table_lacks)
{
    struct text_buffer    errors      = {0};
    const char *const     overrides[] = {"hardware.collectives=h101"};
    struct config_request request     = {
            .name = GSWBENCH_SOURCE_DIR "/configs/tiny-llama.ini", .overrides = overrides, .override_count = 1};
    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
    status result = config_read(&config, &request, &errors);
    cr_expect(failed(&result));
    cr_expect_not_null(strstr(errors.text, "[hardware] collectives = h101: "), "%s", errors.text);
    cr_expect_not_null(strstr(errors.text, "collectives.csv has no such GPU"), "%s", errors.text);
    text_free(&errors);
}

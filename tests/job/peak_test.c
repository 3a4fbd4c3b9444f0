// SPDX-License-Identifier: MIT
// Tests whose peak FLOP/s MFU is relative to: the peak of the GPU that ran, or of the machine that is predicted. Also
// tests which model, layout and precision `gswbench init` chooses for a machine.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/job.h"
#include "gswbench/peak.h"

static const struct hardware_config imaginary = {
    .profile = "mine", .device = "NVIDIA H100 80GB HBM3", .peak[RATE_BF16] = {.value = 900e12}};

static void find_configs(void)
{
    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
}

static void expect_peak(struct peak peak, double flops, const char *source)
{
    cr_expect(isnan(flops) ? isnan(peak.flops) : peak.flops == flops, "%g instead of %g", peak.flops, flops);
    cr_expect_str_eq(peak.source, source);
}

Test(peak, is_that_of_the_machine_by_precision)
{
    const struct hardware_config h100 = {
        .profile = "h100", .peak[RATE_BF16] = {.value = 989e12}, .peak[RATE_FP8] = {.value = 1979e12}};
    expect_peak(peak_of_hardware(&h100, RATE_BF16), 989e12, "hardware profile h100, bf16");
    expect_peak(peak_of_hardware(&h100, RATE_FP8), 1979e12, "hardware profile h100, fp8");
    expect_peak(peak_of_hardware(&h100, RATE_FP32), NAN, "hardware profile h100 has no peak for fp32");
    expect_peak(peak_of_hardware(&imaginary, RATE_FP8), NAN, "hardware profile mine has no peak for fp8");
}

Test(peak, is_that_of_the_device_that_ran, .init = find_configs)
{
    static const struct {
        const char *device;
        enum rate   rate;
        double      flops;
        const char *source;
    } cases[] = {
        {"NVIDIA H100 80GB HBM3", RATE_BF16, 900e12, "hardware profile mine, bf16"},
        {"NVIDIA H200", RATE_BF16, 989e12, "hardware profile h200, bf16"},
        {"NVIDIA B200", RATE_FP8, 4500e12, "hardware profile b200, fp8"},
        {"NVIDIA A100-SXM4-80GB", RATE_BF16, 312e12, "hardware profile a100-80gb, bf16"},
        {"NVIDIA A100-SXM4-80GB", RATE_FP8, NAN, "hardware profile a100-80gb has no peak for fp8"},
        {"NVIDIA H100 PCIe", RATE_BF16, NAN,
         "no hardware profile for device NVIDIA H100 PCIe: set [hardware] device and peaks"},
        {"emulated GPU", RATE_BF16, NAN,
         "no hardware profile for device emulated GPU: set [hardware] device and peaks"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[1][DEVICE_NAME_BYTES];
        strcpy(name[0], cases[i].device);
        expect_peak(peak_of_devices((const char(*)[DEVICE_NAME_BYTES])name, 1, &imaginary, cases[i].rate),
                    cases[i].flops, cases[i].source);
    }
}

Test(peak, is_one_of_several_devices_only_where_theirs_agree, .init = find_configs)
{
    const struct hardware_config none                         = {.profile = "none"};
    const char                   alike[][DEVICE_NAME_BYTES]   = {"NVIDIA H200", "NVIDIA H100 80GB HBM3"};
    const char                   other[][DEVICE_NAME_BYTES]   = {"NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA B200"};
    const char                   unknown[][DEVICE_NAME_BYTES] = {"NVIDIA H200", "emulated GPU"};
    expect_peak(peak_of_devices(alike, 2, &none, RATE_BF16), 989e12, "hardware profile h200, bf16");
    expect_peak(peak_of_devices(other, 3, &none, RATE_BF16), NAN, "NVIDIA H200 and NVIDIA B200 have different peaks");
    expect_peak(peak_of_devices(unknown, 2, &none, RATE_BF16), NAN,
                "no hardware profile for device emulated GPU: set [hardware] device and peaks");
}

Test(peak, of_a_table_counts_for_its_own_convention_and_device)
{
    const struct published_config table = {.peak[RATE_BF16] = 989.5e12};
    cr_expect_eq(peak_published(&table, RATE_BF16), 989.5e12);
    cr_expect(isnan(peak_published(&table, RATE_FP8)));
    cr_expect_eq(peak_for_convention(FLOPS_PUBLISHED, 989e12, 989.5e12), 989.5e12);
    cr_expect_eq(peak_for_convention(FLOPS_FULL, 989e12, 989.5e12), 989e12);
    cr_expect_eq(peak_for_convention(FLOPS_PUBLISHED, 2250e12, 989.5e12), 2250e12);
    cr_expect_eq(peak_for_convention(FLOPS_PUBLISHED, 989e12, NAN), 989e12);
    cr_expect(isnan(peak_for_convention(FLOPS_PUBLISHED, NAN, 989e12)));
}

Test(peak, has_no_share_above_it)
{
    cr_expect_eq(peak_share(1.0, 2.0), 0.5);
    cr_expect_eq(peak_share(2.0, 2.0), 1.0);
    cr_expect(isnan(peak_share(2.001, 2.0)));
    cr_expect(isnan(peak_share(NAN, 2.0)));
}

static struct config choose(const struct job_machine *machine, int64_t ranks, int64_t expected_ranks)
{
    struct config        config;
    struct text_buffer   errors    = {.text = NULL};
    struct job_selection selection = {.ranks = ranks, .errors = &errors};
    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
    status chosen = job_choose(&config, &selection, machine);
    cr_assert_str_empty(chosen.text, "%s", errors.text);
    cr_expect_eq(selection.ranks, expected_ranks);
    return config;
}

Test(choose, takes_all_devices_and_the_layers_that_they_hold)
{
    struct job_machine machine = {
        .devices = 8, .device = "NVIDIA H100 80GB HBM3", .device_bytes = 80000000000, .cores = 96};
    struct config config = choose(&machine, 0, 8);
    cr_expect_eq(config.model.layers, 32);
    cr_expect_eq(config.model.hidden, 4096);
    cr_expect_str_eq(config.hardware.profile, "h100-sxm");

    machine.devices = 1;
    config          = choose(&machine, 0, 1);
    cr_expect_eq(config.model.layers, 8);
    machine.device_bytes = 150000000000;
    config               = choose(&machine, 0, 1);
    cr_expect_eq(config.model.layers, 16);
    config = choose(&machine, 2, 2);
    cr_expect_eq(config.model.layers, 32);
}

Test(choose, takes_a_small_model_for_devices_without_room)
{
    struct job_machine machine = {.devices = 8, .device = "NVIDIA Imaginary", .device_bytes = 1 << 30};
    struct config      config  = choose(&machine, 0, 4);
    cr_expect_eq(config.model.hidden, 128);
}

Test(choose, knows_no_profile_of_a_device_without_one)
{
    struct job_machine machine = {.devices = 4, .device = "NVIDIA Imaginary", .device_bytes = 200000000000};
    struct config      config  = choose(&machine, 0, 4);
    cr_expect_str_eq(config.hardware.profile, "none");
}

Test(choose, takes_a_small_model_and_few_ranks_for_cores)
{
    struct job_machine machine = {.cores = 96};
    struct config      config  = choose(&machine, 0, 4);
    cr_expect_eq(config.model.hidden, 128);
    machine.cores = 3;
    choose(&machine, 0, 2);
    machine.cores = 1;
    choose(&machine, 0, 1);
    choose(&machine, 2, 2);
}

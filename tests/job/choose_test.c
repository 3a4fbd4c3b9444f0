// SPDX-License-Identifier: MIT
// Tests which model, layout and precision `gswbench init` chooses for a machine.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "gswbench/job.h"

static struct config choose(const struct job_machine *machine, int64_t ranks, int64_t expected_ranks)
{
    struct config        config;
    struct text_buffer   errors    = {.text = NULL};
    struct job_selection selection = {.ranks = ranks};
    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
    status chosen = job_choose(&config, &selection, machine, &errors);
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

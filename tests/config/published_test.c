// SPDX-License-Identifier: MIT
// Tests which published step time a run is compared with, and which machine profile matches a GPU.
#include "gswbench/config.h"

#include <criterion/criterion.h>

#include "config_folder.h"

// Installs machine profiles in the test's own folder.
static void install_machines(void)
{
    install();
    write_text("hardware/broken.ini", "[hardware]\ndevice = Broken\npeak = 989e12\n");
    write_text("hardware/hopper.ini", "[hardware]\ndevice = Hopper\npeak_bf16 = 989e12 spec\n[measured]\nx = 1\n");
    write_text("hardware/blackwell.ini", "[hardware]\ndevice = Blackwell\npeak_bf16 = 2250e12 spec\n");
    write_text("mine.ini", "[hardware]\ndevice = Hopper\npeak_bf16 = 900e12 measured 1%\n");
}

TestSuite(published, .init = install_machines, .fini = remove_folder);

// Returns the published step time that applies if the configuration is read for this number of ranks with these
// overrides.
static double published_seconds(const char *text, int64_t ranks, const char *overrides)
{
    return read_text(text, ranks, overrides).published.step_seconds;
}

Test(published, is_compared_on_its_own_machine_only)
{
    const char *own = "[hardware]\nprofile = hopper\n[when ranks=64]\npublished.step_seconds = 7\n";
    const char *row = "[hardware]\nprofile = hopper\n[when ranks=64]\npublished.step_seconds = 7\n"
                      "published.device = Blackwell\n";
    cr_expect_eq(published_seconds(own, 64, ""), 7.0);
    cr_expect_eq(published_seconds(own, 64, "hardware.profile=blackwell"), 0.0);
    cr_expect_eq(published_seconds(own, 64, "hardware.profile=none"), 0.0);
    cr_expect_eq(published_seconds(own, 64, "hardware.profile=./mine.ini"), 7.0);
    cr_expect_eq(published_seconds(own, 64, "hardware.peak_bf16=2250e12"), 0.0);
    cr_expect_eq(published_seconds(own, 64, "hardware.jitter=0.5"), 7.0);
    cr_expect_eq(published_seconds(row, 64, ""), 0.0);
    cr_expect_eq(published_seconds(row, 64, "hardware.profile=blackwell"), 7.0);
}

Test(published, is_compared_at_its_own_ranks_and_precision_only)
{
    const char *ranks = "[parallel]\nfsdp = auto\n[when ranks=64]\npublished.step_seconds = 7\n";
    const char *open  = "[parallel]\nfsdp = auto\n[published]\nstep_seconds = 7\n";
    const char *fixed = "[parallel]\nfsdp = 8\n[published]\nstep_seconds = 7\n";
    const char *both  = "[when ranks=64 precision=fp8]\npublished.step_seconds = 7\n";
    cr_expect_eq(published_seconds(ranks, 64, ""), 7.0);
    cr_expect_eq(published_seconds(ranks, 32, ""), 0.0);
    cr_expect_eq(published_seconds(ranks, 64, "precision.compute=fp8"), 0.0);
    cr_expect_eq(published_seconds(open, 64, ""), 0.0);
    cr_expect_eq(published_seconds(fixed, 8, ""), 7.0);
    cr_expect_eq(published_seconds(both, 64, ""), 0.0);
    cr_expect_eq(published_seconds(both, 64, "precision.compute=fp8"), 7.0);
    cr_expect_eq(published_seconds(both, 64, "precision.compute=fp8|published.step_seconds=5"), 5.0);
}

Test(published, finds_the_installed_machine_of_a_device)
{
    struct hardware_config machine = {.gpus_per_node = 3};
    cr_expect(config_find_hardware(&machine, "Hopper"));
    cr_expect_str_eq(machine.profile, "hopper");
    cr_expect_eq(machine.peak[RATE_BF16].value, 989e12);
    machine.gpus_per_node = 3;
    cr_expect_not(config_find_hardware(&machine, "Hopp"));
    cr_expect_not(config_find_hardware(&machine, "Broken"));
    cr_expect_not(config_find_hardware(&machine, ""));
    cr_expect_eq(machine.gpus_per_node, 3);
}

// SPDX-License-Identifier: MIT
// Tests values that a configuration derives from others, and the files that it names. Also tests which published step
// time a run is compared with, and which machine profile matches a GPU.
#include <criterion/criterion.h>

#include "config_folder.h"
#include "gswbench/config.h"
#include "line.h"

TestSuite(config_follow, .init = install, .fini = remove_folder);

Test(config_follow, lets_an_unset_warmup_follow_the_steps)
{
    static const struct {
        const char *steps;
        int64_t     warmup;
    } cases[] = {{"run.steps=1", 0},  {"run.steps=4", 0},   {"run.steps=5", 1},    {"run.steps=20", 4},
                 {"run.steps=49", 9}, {"run.steps=50", 10}, {"run.steps=1000", 10}};
    for (int i = 0; i < LENGTH(cases); i++) {
        struct config config = read_text("", 0, cases[i].steps);
        cr_expect_eq(config.run.warmup, cases[i].warmup, "%s", cases[i].steps);
    }
    cr_expect_eq(read_text("", 0, "run.steps=20|run.warmup=0").run.warmup, 0);
    cr_expect_eq(read_text("[run]\nwarmup = 7\n", 0, "run.steps=20").run.warmup, 7);
    cr_expect_eq(read_text("[run]\nwarmup = 7\n", 0, "run.warmup=auto").run.warmup, 10);
}

Test(config_follow, lets_the_batch_size_that_no_override_sets_follow_from_the_others)
{
    static const struct {
        const char *overrides;
        int64_t     micro_batch, accumulation, global_batch;    // 0: derived from the other two
    } cases[] = {
        {"run.seed=2", 2, 4, 64},
        {"train.global_batch=64", 2, 4, 64},
        {"train.global_batch=256", 2, 0, 256},
        {"train.micro_batch=1", 1, 0, 64},
        {"train.accumulation=8", 2, 8, 0},
        {"train.micro_batch=1|train.global_batch=64", 1, 0, 64},
        {"train.micro_batch=1|train.accumulation=2", 1, 2, 0},
        {"train.accumulation=2|train.global_batch=256", 0, 2, 256},
        {"train.micro_batch=1|train.accumulation=2|train.global_batch=256", 1, 2, 256},
    };
    for (int i = 0; i < LENGTH(cases); i++) {
        const char   *text   = "[train]\nmicro_batch = 2\naccumulation = 4\n[when ranks=8]\ntrain.global_batch = 64\n";
        struct config config = read_text(text, 8, cases[i].overrides);
        cr_expect_eq(config.train.micro_batch, cases[i].micro_batch, "case %d", i);
        cr_expect_eq(config.train.accumulation, cases[i].accumulation, "case %d", i);
        cr_expect_eq(config.train.global_batch, cases[i].global_batch, "case %d", i);
    }
    struct config open = read_text("[train]\nmicro_batch = 2\naccumulation = 4\n", 8, "train.micro_batch=1");
    cr_expect(open.train.accumulation == 4 && open.train.global_batch == 0, "nothing contradicts it");
}

Test(config_follow, finds_files_that_a_file_names_from_that_file_and_those_of_overrides_from_here)
{
    const char *const overrides[] = {"hardware.profile=./machine.ini"};
    char              path[256];
    mkdir("sub", 0700);
    write_text("sub/machine.ini", "[hardware]\ngpus_per_node = 3\n");
    write_text("sub/shape.ini", "[model]\nlayers = 7\n");
    write_text("sub/job.ini", "[model]\npreset = ./shape.ini\n[when ranks=1]\nhardware.profile = ../sub/machine.ini\n");
    write_text("machine.ini", "[hardware]\ngpus_per_node = 5\n");
    struct config_request request = {.name = "sub/job.ini", .ranks = 1};

    struct config config = read_request(&request, NULL);
    cr_expect_eq(config.model.layers, 7);
    cr_expect_eq(config.hardware.gpus_per_node, 3);
    cr_expect_str_eq(config.model.preset, "sub/shape.ini");
    cr_expect(config_find_profile(&config, path, sizeof(path)));
    cr_expect_str_eq(path, "sub/../sub/machine.ini");

    request.overrides      = overrides;
    request.override_count = 1;
    cr_expect_eq(read_request(&request, NULL).hardware.gpus_per_node, 5);
}

Test(config_follow, reads_the_software_profiles_that_a_profile_inherits_from)
{
    static const struct {
        const char *profile;
        double      memory_bytes, loss_bytes, gemm_share;
        int64_t     kernels;
    } cases[] = {{"first", 2.0, 4.0, 1.0, 3}, {"second", 1.5, 3.0, 0.5, 3}, {"third", 1.5, 3.0, 0.25, 5}};
    mkdir("software", 0700);
    write_text("software/first.ini",
               "[software]\nmemory_bytes = 1.5\nloss_bytes = 3\nrouter_kernels = 3\n[fit]\nmemory_bytes = 2\n"
               "loss_bytes = 4\n");
    write_text("software/second.ini", "[software]\nprofile = first\n[fit]\ngemm_share = 0.5\n");
    write_text("software/third.ini", "[software]\nrouter_kernels = 5\ngemm_share = 0.25\nprofile = second\n");
    for (int i = 0; i < LENGTH(cases); i++) {
        struct config config = read_text(line_of("[software]\nprofile = %s\n", cases[i].profile), 0, "");
        cr_expect_str_eq(config.software.profile, cases[i].profile);
        cr_expect_eq(config.software.memory_bytes.value, cases[i].memory_bytes, "%s", cases[i].profile);
        cr_expect_eq(config.software.loss_bytes.value, cases[i].loss_bytes, "%s", cases[i].profile);
        cr_expect_eq(config.software.gemm_share.value, cases[i].gemm_share, "%s", cases[i].profile);
        cr_expect_eq(config.software.router_kernels, cases[i].kernels, "%s", cases[i].profile);
    }
}

Test(config_follow, is_written_so_that_it_can_be_read_from_another_folder)
{
    write_text("machine.ini", "[hardware]\ngpus_per_node = 5\n");
    struct config config = read_text("[model]\npreset = small\n", 0, "hardware.profile=./machine.ini");
    mkdir("sub", 0700);
    FILE *file = fopen("sub/merged.ini", "w");
    config_write(&config, file);
    fclose(file);

    config = read_request(&(struct config_request){.name = "sub/merged.ini"}, NULL);

    cr_expect_str_eq(config.hardware.profile, line_of("%s/./machine.ini", folder));
    cr_expect_str_eq(config.model.preset, "small");
}

Test(config_follow, replaces_the_layers_of_a_proxy)
{
    cr_assert_eq(read_text("[model]\npreset = small\n", 0, "run.layers=2").model.layers, 2);
}

Test(config_follow, calls_no_whole_model_a_proxy)
{
    struct config config = read_text("[model]\nlayers = 4\n", 0, "run.layers=4");
    cr_expect_eq(config.model.layers, 4);
    cr_expect_eq(config.run.layers, 0);
}

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

// SPDX-License-Identifier: MIT
// Tests configuration files that cannot be read. Checks the full text of every message, and exit code 3.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "gswbench/config.h"
#include "line.h"

static void install(void)
{
    enter_folder();
    setenv("GSWBENCH_CONFIGS", folder, 1);
}

TestSuite(bad_config_file, .init = install, .fini = remove_folder, .timeout = 10);

static void make_file(const char *path, const char *text, off_t bytes)
{
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    cr_assert_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert(bytes == 0 || ftruncate(file, bytes) == 0);
    close(file);
}

// Reads a configuration by its file name, which is relative to the test's own folder, and expects these errors.
static void check_file(const char *name, const char *expected)
{
    struct config         config;
    struct text_buffer    errors  = {0};
    struct config_request request = {.name = name};
    status                result  = config_read(&config, &request, &errors);
    cr_expect_eq(result.exit_code, EXIT_CONFIG);
    cr_expect_str_eq(errors.length > 0 ? errors.text : "", expected);
    text_free(&errors);
}

Test(bad_config_file, refuses_what_is_no_file)
{
    cr_assert_eq(mkdir("folder.d", 0700), 0);
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    cr_assert_eq(symlink("loop", "loop"), 0);
    check_file("./missing.ini", "E-CONFIG ./missing.ini: cannot be opened: No such file or directory\n");
    check_file("./folder.d", "E-CONFIG ./folder.d: is a directory, not a file\n");
    check_file("./pipe", "E-CONFIG ./pipe: is a pipe, not a file\n");
    check_file("pipe", "E-CONFIG pipe: is a pipe, not a file\n");
    check_file("./loop", "E-CONFIG ./loop: cannot be opened: Too many levels of symbolic links\n");
    check_file("/dev/zero", "E-CONFIG /dev/zero: is a device, not a file\n");
}

Test(bad_config_file, refuses_huge_files_at_once)
{
    make_file("huge.ini", "[run]\n", 1 << 30);
    make_file("large.ini", "[run]\n", (1 << 20) + 1);
    make_file("full.ini", "[run]\n", 1 << 20);
    check_file("huge.ini", "E-CONFIG huge.ini: has 1073741824 bytes: the limit is 1048576\n");
    check_file("large.ini", "E-CONFIG large.ini: has 1048577 bytes: the limit is 1048576\n");
    check_file("full.ini", "E-CONFIG full.ini:2: a NUL byte: a config must be a text file\n");
}

Test(bad_config_file, refuses_an_unreadable_file)
{
    if (geteuid() == 0) {
        cr_skip_test("root reads everything");
    }
    make_file("secret.ini", "[run]\n", 0);
    chmod("secret.ini", 0);
    check_file("secret.ini", "E-CONFIG secret.ini: cannot be opened: Permission denied\n");
}

Test(bad_config_file, suggests_installed_names)
{
    make_file("llama-8b.ini", "[run]\n", 0);
    mkdir("models", 0700);
    mkdir("hardware", 0700);
    make_file("models/small.ini", "[model]\nlayers = x\npreset = small\n[train]\nsequence = 1\n[when ranks=8]\n", 0);
    make_file("preset.ini", "[model]\npreset = smal\n[hardware]\nprofile = ../preset\n", 0);
    make_file("broken.ini", "[run]\nsteps = x\n[model]\npreset = small\n", 0);

    check_file(
        "lama-8b",
        line_of("E-CONFIG lama-8b: no config with this name, neither in the current folder nor in %s (did you mean "
                "\"llama-8b\"?)\n",
                folder));
    check_file("other",
               line_of("E-CONFIG other: no config with this name, neither in the current folder nor in %s\n", folder));
    check_file(
        "preset.ini",
        line_of("E-CONFIG preset.ini:2: [model] preset = smal: no such file in %s/models (did you mean \"small\"?)\n"
                "E-CONFIG ../preset: cannot be opened: No such file or directory\n",
                folder));
    check_file("broken.ini",
               line_of("E-CONFIG broken.ini:2: [run] steps = x: expected an integer in 1..1000000\n"
                       "E-CONFIG %s/models/small.ini:2: [model] layers = x: expected an integer in 0..4096\n"
                       "E-CONFIG %s/models/small.ini:3: [model] preset = small: cannot be set in a preset file\n"
                       "E-CONFIG %s/models/small.ini:4: [train]: this file may hold [model] only\n"
                       "E-CONFIG %s/models/small.ini:6: [when ranks=8]: unknown section (gswbench options lists all)\n",
                       folder, folder, folder, folder));
}

Test(bad_config_file, refuses_profiles_that_inherit_from_a_missing_one_or_from_themselves)
{
    mkdir("software", 0700);
    make_file("software/orphan.ini", "[software]\nprofile = titan\n", 0);
    make_file("software/circle.ini", "[software]\nprofile = circle\n", 0);
    make_file("orphan.ini", "[software]\nprofile = orphan\n", 0);
    make_file("circle.ini", "[software]\nprofile = circle\n", 0);
    check_file(
        "./orphan.ini",
        line_of("E-CONFIG %s/software/orphan.ini:2: [software] profile = titan: no such file in %s/software, which has "
                "circle, orphan\n",
                folder, folder));
    check_file(
        "./circle.ini",
        line_of(
            "E-CONFIG %s/software/circle.ini:2: [software] profile = circle: more than 4 profiles inherit from each "
            "other\n",
            folder));
}

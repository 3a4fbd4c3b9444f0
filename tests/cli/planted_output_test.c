// SPDX-License-Identifier: MIT
// Tests every command that writes output while an object (link, folder or pipe) exists at the output path. The command
// must not follow, truncate or replace it, except that it may replace a hard link by a new file.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "whole_run.h"

TestSuite(planted_output, .init = make_folder, .fini = remove_folder, .timeout = 100);

static char target[1100], victim[1100];

static const struct kind {
    const char *name;
    // Error message; NULL: no error, since writing a new file under this name leaves the linked file unchanged.
    const char *reason;
} kinds[] = {
    {"a symbolic link", "it is a symbolic link, not a file"},
    {"a hard link", NULL},
    {"a folder", "it is a directory, not a file"},
    {"a pipe", "it is a pipe, not a file"},
};

// Creates an object of this kind at `target`, the output path. Links point to `victim`, which is a folder if the
// command writes a folder, else a file. If the command writes a folder, two kinds create no object: a hard link, since
// folders cannot have hard links, and a folder, since the output folder may exist.
static void plant(const struct kind *kind, bool is_folder)
{
    int planted = kind == &kinds[0]   ? symlink(victim, target)
                  : kind == &kinds[3] ? mkfifo(target, 0644)
                  : is_folder         ? 0
                  : kind == &kinds[1] ? link(victim, target)
                                      : mkdir(target, 0755);
    cr_assert_eq(planted, 0, "%s", kind->name);
}

// Each command line ends where the output path follows.
static const struct command_line {
    const char *line;
    bool        is_folder, is_slow;    // is_slow: takes long if the output path is accepted
} lines[] = {
    {"data --config tiny-llama --steps 1 -o", false, false},
    {"predict --config llama3.1-8b --ranks 8 --no-range --trace", false, false},
    {"calibrate --config tiny-llama --layers 1 --backend host -o", false, true},
    {"weights --config tiny-llama --layers 1 -o", true, false},
    {TINY " --weights-out", true, false},
};

static void expect_victim(const struct command_line *line, const struct kind *kind)
{
    struct stat about;
    cr_assert_eq(stat(victim, &about), 0);
    if (line->is_folder) {
        cr_expect_eq(rmdir(victim), 0, "%s, %s: something is in the folder", line->line, kind->name);
        return;
    }
    cr_expect_str_eq(text_in(victim), "precious", "%s, %s", line->line, kind->name);
    unlink(victim);
}

static void check(const struct command_line *line, const struct kind *kind)
{
    struct stat before = {.st_mode = 0}, after = {.st_mode = 0};
    if (line->is_folder) {
        cr_assert_eq(mkdir(victim, 0755), 0);
    } else {
        write_text(victim, "precious");
    }
    plant(kind, line->is_folder);
    if (lstat(target, &before) == 0 && !(kind->reason == NULL && line->is_slow)) {
        const char *whole =
            line_of("%s %s%s%s%s", line->line, target, strstr(line->line, "run ") ? " --out " : "",
                    strstr(line->line, "run ") ? folder : "", strstr(line->line, "run ") ? "/results" : "");

        status result = run(whole);

        lstat(target, &after);
        if (kind->reason == NULL) {
            cr_expect_eq(result.exit_code, EXIT_VALID, "%s: %s", whole, result.text);
        } else {
            const char *expected = line_of("cannot write %s: %s", target, kind->reason);
            cr_expect_eq(result.exit_code, EXIT_OUTPUT, "%s: %d %s", whole, result.exit_code, result.text);
            cr_expect_eq(after.st_ino, before.st_ino, "%s: %s is replaced", whole, kind->name);
            cr_expect(line->is_folder || strcmp(result.text, expected) == 0, "%s: %s", whole, result.text);
        }
    }
    remove(target);
    expect_victim(line, kind);
}

Test(planted_output, is_left_as_it_is)
{
    snprintf(target, sizeof(target), "%s/target", folder);
    snprintf(victim, sizeof(victim), "%s/victim", folder);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            check(&lines[i], &kinds[k]);
        }
    }
}

Test(planted_output, of_a_run_is_found_on_the_way_to_its_folder)
{
    char        link[1100];
    const char *elsewhere = line_of("%s/elsewhere", folder);
    snprintf(link, sizeof(link), "%s/results", folder);
    cr_assert(mkdir(elsewhere, 0755) == 0 && mkdir(link, 0755) == 0);
    snprintf(link, sizeof(link), "%s/results/tiny-llama", folder);
    cr_assert_eq(symlink(elsewhere, link), 0);

    status result = run_here(TINY);

    const char *expected = line_of("cannot open %s: Not a directory", link);
    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_str_eq(result.text, expected);
    cr_expect_str_eq(output, "");
    cr_expect_eq(rmdir(elsewhere), 0, "nothing is written there");
}

// SPDX-License-Identifier: MIT
// Tests that output files are written complete or not at all, and never through a link or pipe that exists at their
// path.
#define _GNU_SOURCE
#include "gswbench/output.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "line.h"
#include "success.h"

static struct output_folder held;

static void open_base(void)
{
    enter_folder();
    REQUIRE(output_open_folder(&held, folder));
}

static void close_base(void)
{
    output_close_folder(&held);
    remove_folder();
}

TestSuite(output, .init = open_base, .fini = close_base);

static void expect_text(const char *name, const char *text)
{
    const char *read = text_in(name);
    cr_expect_str_eq(read, text, "%s has %s", name, read);
}

static int count_entries(const char *path)
{
    int            entries = 0;
    DIR           *listing = opendir(path);
    struct dirent *entry;
    cr_assert_not_null(listing);
    while ((entry = readdir(listing)) != NULL) {
        entries += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(listing);
    return entries;
}

Test(output, replaces_an_older_file_by_path_and_none_in_a_folder)
{
    write_text("old", "older");

    EXPECT_SUCCESS(output_replace("old", "new", 3));
    EXPECT_ERROR(output_write(&held, "old", "newer", 5), EXIT_OUTPUT,
                 line_of("cannot write %s/old: the file exists; delete it or use another name", folder));
    EXPECT_SUCCESS(output_write(&held, "other", "first", 5));
    expect_text("old", "new");
    expect_text("other", "first");
    cr_expect_eq(count_entries("."), 2, "nothing else is left");
}

Test(output, links_a_name_to_the_latest_target_and_replaces_nothing_else)
{
    char target[64] = {0};
    REQUIRE(output_link(folder, "latest", "one"));
    // This link is left by a process with this ID that was killed between symlink and rename.
    cr_assert_eq(symlink("one", line_of(".latest-%d", (int)getpid())), 0);
    REQUIRE(output_link(folder, "latest", "two/three"));
    cr_expect_eq(readlink("latest", target, sizeof(target) - 1), 9);
    cr_expect_str_eq(target, "two/three");
    write_text("file", "mine");
    cr_expect_eq(output_link(folder, "file", "two").exit_code, EXIT_OUTPUT);
    expect_text("file", "mine");
    cr_expect_eq(output_link("/nowhere/at/all", "latest", "two").exit_code, EXIT_OUTPUT);
}

Test(output, gives_a_file_its_name_when_it_is_whole)
{
    struct output output;
    struct stat   about;
    umask(022);

    EXPECT_SUCCESS(output_begin(&output, "file"));
    EXPECT_SUCCESS(output_append(&output, "abc", 3));
    cr_expect(access("file", F_OK) != 0 && count_entries(".") == 1, "the file is there under another name");
    EXPECT_SUCCESS(output_finish(&output));

    expect_text("file", "abc");
    cr_expect(stat("file", &about) == 0 && (about.st_mode & 0777) == 0644);
    cr_expect_eq(count_entries("."), 1);
}

Test(output, neither_follows_nor_replaces_what_is_no_file)
{
    static const struct {
        const char *command, *kind;    // command: creates an object of this kind at the output's path
        mode_t      mode;
    } rows[] = {
        {"ln -s victim target", "a symbolic link", S_IFLNK},
        {"ln -s nothing target", "a symbolic link", S_IFLNK},
        {"mkdir target", "a directory", S_IFDIR},
        {"mkfifo target", "a pipe", S_IFIFO},
    };
    write_text("victim", "precious");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stat about;
        cr_assert_eq(system(rows[i].command), 0);
        int entries = count_entries(".");

        EXPECT_ERROR(output_replace("target", "new", 3), EXIT_OUTPUT,
                     line_of("cannot write target: it is %s, not a file", rows[i].kind));
        EXPECT_ERROR(output_write(&held, "target", "new", 3), EXIT_OUTPUT,
                     line_of("cannot write %s/target: it is %s, not a file", folder, rows[i].kind));
        cr_expect_eq(output_extend("target", "new", 3).exit_code, EXIT_OUTPUT, "%zu", i);
        cr_expect(lstat("target", &about) == 0 && (about.st_mode & S_IFMT) == rows[i].mode, "%zu: still there", i);
        cr_expect_eq(count_entries("."), entries, "%zu: nothing else is left", i);
        cr_expect_eq(remove("target"), 0);
    }
    expect_text("victim", "precious");
    cr_expect_neq(access("nothing", F_OK), 0);
}

Test(output, leaves_what_another_name_of_the_file_shows)
{
    write_text("victim", "precious");
    cr_assert_eq(link("victim", "target"), 0);

    EXPECT_SUCCESS(output_replace("target", "new", 3));
    expect_text("victim", "precious");
    expect_text("target", "new");
}

Test(output, notices_what_takes_its_name_meanwhile)
{
    struct output output;
    EXPECT_SUCCESS(output_begin(&output, "target"));
    output_append(&output, "new", 3);
    write_text("victim", "precious");
    cr_assert_eq(symlink("victim", "target"), 0);

    EXPECT_ERROR(output_finish(&output), EXIT_OUTPUT, "cannot write target: it is a symbolic link, not a file");

    expect_text("victim", "precious");
    cr_expect_eq(count_entries("."), 2, "the link and the victim");
}

Test(output, leaves_the_older_file_when_there_is_no_room_for_the_new_one)
{
    struct rlimit limit = {.rlim_cur = 4, .rlim_max = RLIM_INFINITY};
    write_text("old", "older text");
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);

    EXPECT_ERROR(output_replace("old", "a newer text", 12), EXIT_OUTPUT, "cannot write old: File too large");
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    expect_text("old", "older text");
    cr_expect_eq(count_entries("."), 1);
}

Test(output, asks_for_room_before_it_is_used)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};

    EXPECT_SUCCESS(output_check_space(held.descriptor, "results", 1000, 1000));
    EXPECT_ERROR_WITH(output_check_space(held.descriptor, "results", INT64_MAX, 1000), EXIT_OUTPUT,
                      "cannot write results: No space left on device: it needs 8192.00 PiB, but only ");
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_SUCCESS(output_check_space(held.descriptor, "results", 8192, 4096));
    EXPECT_ERROR(
        output_check_space(held.descriptor, "results", 8192, 4097), EXIT_OUTPUT,
        "cannot write results: File too large: it needs 4.00 KiB, but the limit of a file is 4.00 KiB (ulimit -f)");
}

Test(output, leaves_the_older_file_when_it_is_abandoned)
{
    struct output output;
    write_text("old", "older");
    output_begin(&output, "old");
    output_append(&output, "new", 3);

    output_abandon(&output);
    output_abandon(&output);

    expect_text("old", "older");
    cr_expect_eq(count_entries("."), 1);
}

Test(output, stays_in_the_folder_that_it_holds)
{
    struct output_folder results;
    struct output        output;
    cr_assert(mkdir("results", 0755) == 0 && mkdir("elsewhere", 0755) == 0);
    output_open_folder(&results, "results");
    output_begin_in(&output, &results, "half");
    cr_assert(rename("results", "moved") == 0 && symlink("elsewhere", "results") == 0);

    EXPECT_SUCCESS(output_write(&results, "whole", "abc", 3));
    EXPECT_SUCCESS(output_append(&output, "abc", 3));
    EXPECT_SUCCESS(output_finish(&output));

    expect_text("moved/whole", "abc");
    expect_text("moved/half", "abc");
    cr_expect_eq(count_entries("elsewhere"), 0);
    output_close_folder(&results);
}

Test(output, enters_no_folder_through_a_link)
{
    struct output_folder entered, claimed;
    bool                 is_new;
    cr_assert(mkdir("elsewhere", 0755) == 0 && symlink("elsewhere", "link") == 0);
    output_open_folder(&entered, folder);

    EXPECT_SUCCESS(output_make_folder(&entered, "link", &is_new));
    cr_expect_not(is_new);
    EXPECT_ERROR(output_enter_folder(&entered, "link"), EXIT_OUTPUT,
                 line_of("cannot open %s/link: Not a directory", folder));
    EXPECT_ERROR(output_claim_folder(&claimed, "link"), EXIT_OUTPUT, "cannot open link: Not a directory");
    cr_expect_str_eq(entered.path, folder, "and stays where it was");
    output_close_folder(&entered);
}

Test(output, claims_new_and_empty_folders_only)
{
    struct output_folder claimed;
    cr_assert_eq(mkdir("full", 0755), 0);
    write_text("full/file", "");

    for (int is_empty = 0; is_empty < 2; is_empty++) {
        EXPECT_SUCCESS(output_claim_folder(&claimed, "new"));
        output_close_folder(&claimed);
    }
    EXPECT_ERROR(output_claim_folder(&claimed, "full"), EXIT_OUTPUT, "full: is not empty: name a new folder");
    EXPECT_ERROR(output_claim_folder(&claimed, "full/file"), EXIT_OUTPUT, "cannot open full/file: Not a directory");
    EXPECT_ERROR(output_claim_folder(&claimed, "no/such"), EXIT_OUTPUT,
                 "cannot create no/such: No such file or directory");
}

Test(output, adds_to_the_end_of_a_log)
{
    EXPECT_SUCCESS(output_extend("log", "one\n", 4));
    EXPECT_SUCCESS(output_extend("log", "two\n", 4));
    expect_text("log", "one\ntwo\n");
}

Test(output, refuses_names_that_are_too_long)
{
    char name[400];
    memset(name, 'x', sizeof(name));
    name[300] = '\0';

    EXPECT_ERROR_WITH(output_replace(name, "new", 3), EXIT_OUTPUT, "File name too long");
    name[250] = '\0';
    EXPECT_SUCCESS(output_replace(name, "new", 3));
    cr_expect_eq(count_entries("."), 1);
}

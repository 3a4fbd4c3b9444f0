// SPDX-License-Identifier: MIT
// Tests how the journal of a run is read when it is complete or damaged.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "gswbench/result.h"
#include "line.h"
#include "result_fixture.h"

enum { KEPT = 12 };

static char          path[128];
static struct result written, read_back;

static void write_journal(void)
{
    struct output_folder output  = {0};
    struct journal       journal = {0};
    make_folder();
    snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, folder);
    fixture_open(&written);
    read_back          = (struct result){0};
    written.step_count = written.rank_count = 0;
    cr_assert_str_empty(output_open_folder(&output, folder).text);
    cr_assert_str_empty(journal_open(&journal, &output, &written).text);
    for (int i = 0; i < KEPT; i++) {
        written.step_count++;
        cr_assert_str_empty(journal_add_step(&journal, &written).text);
    }
    journal_close(&journal);
    output_close_folder(&output);
}

static void remove_journal(void)
{
    remove_folder();
    result_free(&written);
    result_free(&read_back);
}

// Damages the journal by a shell command that runs in its folder, and reads it.
static status read_after(const char *command)
{
    cr_assert_eq(system(line_of("cd %s && %s", folder, command)), 0);
    return journal_read(&read_back, path, "the run died", NULL);
}

TestSuite(journal, .init = write_journal, .fini = remove_journal);

Test(journal, gives_every_step_back_in_a_partial_result)
{
    cr_assert_str_empty(read_after("true").text);

    cr_expect_eq(read_back.verdict, VERDICT_PARTIAL);
    cr_expect_eq(read_back.exit_code, EXIT_STOPPED);
    cr_assert_eq(read_back.step_count, KEPT);
    for (int i = 0; i < KEPT; i++) {
        cr_expect_eq(read_back.steps[i].seconds, written.steps[i].seconds);
        cr_expect_eq(read_back.steps[i].loss, written.steps[i].loss);
        cr_expect_eq(read_back.steps[i].slowest_rank, written.steps[i].slowest_rank);
    }
    cr_expect_str_eq(read_back.reasons[0].id, "died");
    cr_expect_str_eq(read_back.reasons[0].message, "the run died; 12 of 50 steps are in its journal");
    cr_expect_str_eq(read_back.config_name, "llama2-70b");
}

Test(journal, ends_at_a_line_that_is_torn_or_changed)
{
    static const struct {
        const char *command;
        int64_t     steps;
    } rows[] = {
        {"truncate -s -20 run.jsonl", 11},                          // the last line
        {"sed -i '5s/warmup/measure/' run.jsonl", 3},               // edits step 3
        {"sed -i '5d' run.jsonl", 3},                               // removes a line
        {"sed -i '5{p}' run.jsonl", 4},                             // duplicates a line
        {"sed -i '2s/\"xxh3\":\"./\"xxh3\":\"g/' run.jsonl", 0},    // malformed checksum
        {"printf 'no line' >> run.jsonl", 12},
        {"head -c 100000 /dev/zero >> run.jsonl", 12},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        remove_journal();
        write_journal();

        cr_expect_str_empty(read_after(rows[i].command).text);

        cr_expect_eq(read_back.step_count, rows[i].steps, "%s: %d", rows[i].command, (int)read_back.step_count);
    }
}

Test(journal, is_refused_where_its_first_line_is_not_whole)
{
    static const char *const commands[] = {"truncate -s 0 run.jsonl", "truncate -s 300 run.jsonl",
                                           "sed -i '1s/llama2/llama3/' run.jsonl", "sed -i 1d run.jsonl"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        remove_journal();
        write_journal();

        status read = read_after(commands[i]);

        cr_expect_not_null(
            strstr(read.text, "run.jsonl: its first line is incomplete: the run died before its first step"), "%s: %s",
            commands[i], read.text);
    }
}

Test(journal, says_where_a_step_cannot_be_written_and_how_to_keep_the_others)
{
    struct output_folder output  = {0};
    struct journal       journal = {0};
    struct rlimit        limit   = {.rlim_max = RLIM_INFINITY};
    struct stat          about;
    cr_assert_eq(unlink(path), 0);
    written.step_count = 0;
    cr_assert_str_empty(output_open_folder(&output, folder).text);
    cr_assert_str_empty(journal_open(&journal, &output, &written).text);
    cr_assert_eq(stat(path, &about), 0);
    limit.rlim_cur = (rlim_t)about.st_size + 20;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);

    written.step_count = 1;
    status added       = journal_add_step(&journal, &written);

    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    const char *expected = line_of(
        "cannot write %s: File too large: gswbench report --recover %s writes a partial result from the steps before",
        path, folder);
    cr_expect_str_eq(added.text, expected);
    cr_expect_eq(added.exit_code, EXIT_OUTPUT);
    journal_close(&journal);
    output_close_folder(&output);
    cr_expect_str_empty(read_after("true").text);
    cr_expect_eq(read_back.step_count, 0, "half a line is no step");
}

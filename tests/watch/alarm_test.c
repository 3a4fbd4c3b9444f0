// SPDX-License-Identifier: MIT
// Tests the alarm of a stalled rank and of the leader of its host, which are two processes with shared memory. Also
// tests that the watchdogs of several hosts open or fail together.
#define _DEFAULT_SOURCE    // MAP_ANONYMOUS
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gswbench/clock.h"
#include "meshes.h"
#include "ranks.h"
#include "watch/internal.h"

enum { RANKS = 3, LEADER = 1, OTHER = 2, MOMENT_NS = 100000000 };
enum { RANKS_MAX = DATAGRAM_SLOTS + 3 };    // more ranks than fit into a datagram

static struct segment *segment;
static struct comm     comm;

static void make_segment(void)
{
    size_t bytes  = sizeof(*segment) + RANKS_MAX * sizeof(*segment->ranks);
    segment       = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    comm.topology = (struct comm_topology){.ranks = RANKS, .local_ranks = RANKS, .nodes = 1};
    for (int i = 0; i < RANKS_MAX; i++) {
        segment->ranks[i].rank  = i;
        segment->ranks[i].pid   = getpid();
        segment->ranks[i].phase = WATCH_FILES;
    }
}

TestSuite(alarm, .init = make_segment, .timeout = 60);

static struct watch watch_of(int rank)
{
    struct watch watch = {.setup = {.comm = &comm}, .segment = segment, .shown = &segment->ranks[rank], .limit = 6};
    comm.topology.rank = rank;
    comm.topology.local_rank = rank;
    return watch;
}

static void pause_for_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
}

// Starts a process that raises the alarm. It exits with 0 if the alarm returns.
static pid_t call_alarm(int rank)
{
    pid_t child = fork();
    if (child == 0) {
        struct watch watch = watch_of(rank);
        struct plan  plan  = {.mesh = MESH(.dp = comm.topology.ranks)};
        watch.setup.plan   = &plan;
        alarm_end_job(&watch);
        _exit(0);
    }
    pause_for_a_moment();
    return child;
}

static int exit_code_of(pid_t child)
{
    int ended = 0;
    waitpid(child, &ended, 0);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

Test(alarm, goes_on_after_an_extension_though_another_leads_already)
{
    segment->leader = LEADER;
    pid_t waiting   = call_alarm(OTHER);

    segment->extensions++;
    segment->leader = 0;
    segment->leader = LEADER;    // before the waiting process has looked at it

    cr_expect_eq(exit_code_of(waiting), 0);
}

Test(alarm, ends_with_the_verdict_of_another)
{
    segment->leader = LEADER;
    pid_t waiting   = call_alarm(OTHER);

    segment->verdict = 1;

    cr_expect_eq(exit_code_of(waiting), EXIT_HANG);
}

// Rank 0 is writing a file and made progress 13 s ago. The limit for files is 60 s, so rank 0 does not hang. A rank
// that waits for it in a step gets rank 0's deadline instead of the deadline of the step.
Test(alarm, extends_the_deadlines_of_ranks_while_a_file_grows)
{
    double now              = clock_seconds();
    segment->ranks[0].phase = WATCH_FILE;
    segment->ranks[0].moved = now - 13;
    segment->ranks[2].phase = WATCH_STEP;
    segment->ranks[2].moved = now - 100;
    struct watch watch      = watch_of(OTHER);
    double       for_files = watch_limit(&watch, WATCH_FILE), for_steps = watch_limit(&watch, WATCH_STEP);

    alarm_end_job(&watch);

    cr_expect_eq(for_files, 60);
    cr_expect_eq(for_steps, 6);
    cr_expect_eq(watch_limit(&watch, WATCH_FILES), 60);
    cr_expect_float_eq(segment->ranks[1].extended + for_files, now + 47, 1);
    cr_expect_float_eq(segment->ranks[2].extended + for_steps, now + 47, 1);
    cr_expect_eq(segment->extensions, 1);
    cr_expect_eq(segment->leader, 0);
}

// The last rank has died, so the job ends, though the file of rank 0 grows.
Test(alarm, excuses_nobody_after_a_rank_has_died)
{
    pid_t dead = fork();
    if (dead == 0) {
        _exit(0);
    }
    exit_code_of(dead);
    comm.topology.ranks = comm.topology.local_ranks = RANKS_MAX;
    segment->ranks[0].phase                         = WATCH_FILE;
    segment->ranks[0].moved                         = clock_seconds();
    segment->ranks[RANKS_MAX - 1].pid               = dead;

    cr_expect_eq(exit_code_of(call_alarm(OTHER)), EXIT_HANG);
    cr_expect_eq(segment->extensions, 0);
}

Test(alarm, shows_that_a_rank_which_waits_for_the_verdict_still_polls)
{
    segment->leader              = LEADER;
    segment->ranks[OTHER].looked = 1;    // this rank last polled long ago
    pid_t waiting                = call_alarm(OTHER);

    cr_expect_lt(clock_seconds() - segment->ranks[OTHER].looked, 3);

    segment->verdict = 1;
    cr_expect_eq(exit_code_of(waiting), EXIT_HANG);
}

// All processes poll, so none of them is to blame. In the second case, a rank of another host does not answer.
Test(alarm, says_why_no_rank_is_to_blame)
{
    static const char *const expected[] = {" s, and no rank waits; rank 0: ",
                                           " s, and 1 of 4 ranks did not answer; rank 0: "};
    for (int missing = 0; missing < 2; missing++) {
        char  said[400];
        FILE *file = tmpfile();
        dup2(fileno(file), STDERR_FILENO);
        comm.topology.ranks = RANKS + missing;
        segment->leader     = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            segment->ranks[rank].looked = clock_seconds();
        }

        cr_expect_eq(exit_code_of(call_alarm(OTHER)), EXIT_HANG);

        segment->verdict = 0;
        rewind(file);
        said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
        fclose(file);
        cr_expect_not_null(strstr(said, expected[missing]), "%s", said);
    }
}

static int no_signal(void)
{
    return 0;
}

static bool is_never(void)
{
    return false;
}

// Opens the watchdogs of two hosts. On host 1 no rank creates the shared memory, so opening it fails there.
static void open_on_host(struct comm *ranks, void *unused)
{
    struct watch            *watch = NULL;
    struct plan              plan  = {.mesh = MESH(.dp = 2)};
    const struct watch_setup setup = {
        .comm = ranks, .plan = &plan, .caught = no_signal, .is_asked = is_never, .has_lost_launcher = is_never};
    (void)unused;
    ranks->topology.nodes      = 2;
    ranks->topology.node       = ranks->topology.rank;
    ranks->topology.local_rank = ranks->topology.rank;
    status opened              = comm_agree(ranks, watch_open(&watch, &setup));
    cr_expect_eq(opened.exit_code, EXIT_LAUNCH, "rank %d: %s", ranks->topology.rank, opened.text);
    watch_close(watch);
}

Test(watch, fails_on_all_hosts_if_one_has_no_shared_memory, .timeout = 20)
{
    ranks_run(2, open_on_host, NULL);
}

// SPDX-License-Identifier: MIT
// Tests the limits above which the times of a run get a note, or make the result DEGRADED.
#include <math.h>

#include "line.h"
#include "result_suite.h"

TestSuite(quality_check, .init = open_result, .fini = close_result);

// Sets the times of the 40 measured steps: step i takes 7 s x (1 + swing x (-1)^i + rise x i / 39).
static void set_steps(double swing, double rise)
{
    reopen_result();
    strcpy(result.backend, "host");    // the limits from public runs are for GPUs
    for (int i = 0; i < 40; i++) {
        result.steps[10 + i].seconds = 7 * (1 + (i % 2 == 0 ? swing : -swing) + rise * i / 39);
    }
}

// If 40 steps swing by s, their standard deviation is s sqrt(40 / 39). If steps rise, the median is the time in the
// middle of the run.
Test(quality_check, notes_steps_that_vary_or_drift_and_degrades_above_a_second_limit)
{
    static const char unsteady[] = "use a quieter machine, or more steps (--until)";
    static const char drift[]    = "use more warm-up steps (--warmup), or find the cause";
    static const struct {
        double       swing, rise;
        enum verdict verdict;
        const char  *id, *finding, *remedy;
    } cases[] = {
        {0.0197, 0, VERDICT_VALID, NULL, "", ""},
        {0.0198, 0, VERDICT_VALID, "unsteady", "cv 2.01 % of 40 steps, above 2 %", unsteady},
        {0.0987, 0, VERDICT_VALID, "unsteady", "cv 10.00 % of 40 steps, above 2 %", unsteady},
        {0.0988, 0, VERDICT_DEGRADED, "unsteady", "cv 10.01 % of 40 steps, above 10 %", unsteady},
        {0, 0.01, VERDICT_VALID, NULL, "", ""},
        {0, 0.0102, VERDICT_VALID, "drift",
         "steps become slower by at least 1.0 % over the 40 measured ones, above 1 %", drift},
        {0, -0.048, VERDICT_VALID, "drift",
         "steps become faster by at least 4.9 % over the 40 measured ones, above 1 %", drift},
        {0, -0.049, VERDICT_DEGRADED, "drift",
         "steps become faster by at least 5.0 % over the 40 measured ones, above 5 %", drift},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *message = line_of("%s: %s", cases[i].finding, cases[i].remedy);
        set_steps(cases[i].swing, cases[i].rise);
        expect_reason(cases[i].verdict, cases[i].id, message);
    }
}

// Three of 40 steps are slow, so the 95th percentile is a slow step. In public runs it is at most 1.04 % above the
// median on up to 512 GPUs, and at most 2.6 % on up to 2,048 GPUs.
Test(quality_check, notes_steps_that_vary_more_than_in_any_public_run_of_that_size)
{
    static const struct {
        double      slow;
        int64_t     ranks;
        const char *found, *largest, *typical;    // percent; NULL: no note
    } cases[] = {{0.0103, 512, NULL, NULL, NULL},
                 {0.011, 512, "1.1", "1.0", "0.6"},
                 {0.011, 513, NULL, NULL, NULL},
                 {0.0270, 2048, "2.7", "2.6", "0.7"},
                 {0.0270, 4096, NULL, NULL, NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *message = "";
        if (cases[i].found != NULL) {
            message = line_of(
                "p95 of the steps is %s %% above the median; in public runs of this size at most %s %%, mostly %s "
                "%%: compare the slow steps with the network and the input",
                cases[i].found, cases[i].largest, cases[i].typical);
        }
        set_steps(0, 0);
        strcpy(result.backend, "cuda");
        result.mesh.world = cases[i].ranks;
        for (int step = 12; step < result.step_count; step += 13) {
            result.steps[step].seconds *= 1 + cases[i].slow;
        }
        expect_reason(VERDICT_VALID, cases[i].found != NULL ? "uneven" : NULL, message);
    }
}

Test(quality_check, degrades_nine_steps_without_judging_their_spread)
{
    set_steps(0.3, 0);
    result.step_count = result.planned_steps = 19;
    expect_reason(VERDICT_DEGRADED, "few-steps",
                  "9 measured steps: too few to judge their spread; measure 10 or more (--steps)");

    set_steps(0.3, 0);
    result.step_count = result.planned_steps = 20;
    expect_reason(VERDICT_DEGRADED, "unsteady",
                  "cv 31.62 % of 10 steps, above 10 %: use a quieter machine, or more steps (--until)");
}

static void set_foreign(double first, double second)
{
    reopen_result();
    result.ranks[0].foreign = first;
    result.ranks[1].foreign = second;
}

// The host has 64 cores. Other processes are noted from 2 % (1.28 cores) on, and the run is DEGRADED from 10 % (6.4
// cores) on.
Test(quality_check, names_the_host_where_others_took_most)
{
    set_foreign(1.2, NAN);
    expect_reason(VERDICT_VALID, NULL, NULL);
    set_foreign(1.3, 6.3);
    expect_reason(VERDICT_VALID, "foreign-load",
                  "dgx-02: other processes used 6.30 of 64 cores during the measured steps (9.8 %), above 2 %: stop "
                  "them, or use other cores");
    cr_expect_eq(result.reasons[0].rank, 1);
    set_foreign(6.5, 1.3);
    expect_reason(VERDICT_DEGRADED, "foreign-load",
                  "dgx-01: other processes used 6.50 of 64 cores during the measured steps (10.2 %), above 10 %: stop "
                  "them, or use other cores");
    cr_expect_eq(result.reasons[0].rank, 0);
}

// All ranks of a host report the same load of other processes, so only the first rank of each host counts.
Test(quality_check, asks_the_first_rank_of_a_host)
{
    set_foreign(0, 32);
    result.ranks[1].local_rank = 1;
    expect_reason(VERDICT_VALID, NULL, NULL);
}

Test(quality_check, says_nothing_of_a_run_that_was_slowed_down_on_purpose)
{
    set_steps(0.3, 0);
    result_add_reason(&result, &(struct result_reason){.verdict = VERDICT_VALID, .id = RESULT_FAULT});
    result_check(&result);
    cr_expect_eq(result.verdict, VERDICT_VALID);
    cr_expect_eq(result.reason_count, 1);
}

Test(quality_check, leaves_a_wrong_result_with_what_is_wrong)
{
    set_steps(0.3, 0);
    result.step_allocations = 1;
    result_check(&result);
    cr_expect_eq(result.verdict, VERDICT_INVALID);
    cr_assert_eq(result.reason_count, 1);
    cr_expect_str_eq(result.reasons[0].id, "allocation");
}

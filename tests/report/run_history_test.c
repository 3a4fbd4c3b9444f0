// SPDX-License-Identifier: MIT
// Tests the history of a job: its runs by date, each with the change from the run before.
#include "gswbench/comparison.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"
#include "result_fixture.h"

static struct history history;

// Adds a run on this date. Its step times are the fixture's (median 6.999 s) times `factor`.
static void add(const char *started, double factor, int64_t ranks, const char *driver)
{
    struct result      result;
    struct statistics *step = &result.figures.step;
    fixture_open(&result);
    text_copy(result.started, sizeof(result.started), started);
    snprintf(result.run_id, sizeof(result.run_id), "run-%s", started);
    result.figures.tokens_per_step *= (double)ranks / (double)result.mesh.world;
    result.mesh.world = ranks;
    step->median *= factor;
    step->low *= factor;
    step->high *= factor;
    result_add_entry(&result.environment, &result.environment_count, "driver of the test", driver);
    history_add(&history, &result);
}

static void expect_row(int64_t index, const char *started, double change, const char *verdict, const char *settings)
{
    const struct history_row *row = &history.rows[index];
    cr_expect_str_eq(row->started, started);
    cr_expect_str_eq(row->change_verdict, verdict, "%s", row->change_verdict);
    cr_expect_str_eq(row->changed_settings, settings, "%s", row->changed_settings);
    cr_expect(isnan(change) ? isnan(row->change) : fabs(row->change - change) < 1e-12, "%g", row->change);
}

static void close(void)
{
    history_free(&history);
}

TestSuite(run_history, .fini = close);

Test(run_history, compares_each_run_with_the_one_before_it)
{
    add("3", 1.05, 64, "2");
    add("1", 1.00, 64, "1");
    add("4", 0.84, 64, "2");
    add("2", 1.00, 64, "1");
    add("5", 1.00, 32, "2");
    history_finish(&history);

    cr_assert_eq(history.row_count, 5);
    expect_row(0, "5", NAN, "first", "");    // a run on fewer ranks is another job
    expect_row(1, "1", NAN, "first", "");
    expect_row(2, "2", 0.0, "same", "");
    expect_row(3, "3", 0.05, "slower", "driver of the test 2");
    expect_row(4, "4", -0.2, "faster", "");
    cr_expect(history.rows[3].change_low <= 0.05 && history.rows[3].change_low > 0.04, "%g",
              history.rows[3].change_low);
    cr_expect(history.rows[3].change_high >= 0.05 && history.rows[3].change_high < 0.06, "%g",
              history.rows[3].change_high);
}

Test(run_history, compares_doubtful_runs_only_by_force)
{
    struct result_reason reason = {.verdict = VERDICT_DEGRADED, .id = "foreign-load", .rank = -1, .step = -1};
    for (int i = 0; i < 2; i++) {
        add("1", 1.0, 64, "1");
        add("2", 1.05, 64, "1");
        result_add_reason(&history.results[1], &reason);
        history.force = i == 1;
        history_finish(&history);
        expect_row(1, "2", i == 1 ? 0.05 : NAN, i == 1 ? "slower" : "not comparable", "");
        history_free(&history);
    }
}

Test(run_history, begins_its_page_with_the_latest_change)
{
    struct text_stream stream;
    add("1", 1.00, 64, "1");
    add("2", 1.05, 64, "2");
    add("3", 1.05, 64, "2");
    add("4", 1.00, 32, "2");
    add("5", 1.05, 32, "2");    // the latest change, but in the first job of the table
    history_finish(&history);
    text_stream_open(&stream);
    history_write_html(&history, stream.file);
    text_stream_close(&stream);
    cr_expect_not_null(strstr(stream.data,
                              "<h2>2 changes of the step time; the latest: llama2-70b, run run-5, is 5.00 % "
                              "slower</h2>"),
                       "%s", stream.data);
    free(stream.data);
}

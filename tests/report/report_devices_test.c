// SPDX-License-Identifier: MIT
// Tests how devices are shown in the text report and on the page.
#include <math.h>

#include "observation_fixture.h"
#include "result_suite.h"

static char *text;

static void close_text(void)
{
    close_result();
    free(text);
}

TestSuite(report_devices, .init = open_result, .fini = close_text);

static void render(report_writer *write)
{
    free(text);
    text = fixture_render(write, &result);
}

static void expect_line(const char *line)
{
    const char *found = strstr(text, "\ngpus: ");
    cr_assert_not_null(found, "%s", text);
    cr_expect(strncmp(found + 1, line, strlen(line)) == 0 && found[1 + strlen(line)] == '\n', "%s", found);
}

static int count_in(const char *part)
{
    int count = 0;
    for (const char *found = strstr(text, part); found != NULL; found = strstr(found + 1, part)) {
        count++;
    }
    return count;
}

Test(report_devices, of_a_processor_are_not_there)
{
    render(report_write_result);
    cr_expect_eq(count_in("gpus:"), 0);
    render(report_write_html);
    cr_expect_eq(count_in("Devices"), 0);
}

Test(report_devices, are_a_line_of_text)
{
    fixture_observe(&result, 4);
    result.observations[1].gauges[GAUGE_SM_CLOCK].median         = 1740;
    result.observations[2].gauges[GAUGE_SM_CLOCK].median         = 1770;
    result.observations[3].gauges[GAUGE_TEMPERATURE].maximum     = 74;
    result.observations[3].throttles[THROTTLE_IDLE].samples      = 4;
    result.observations[0].throttles[THROTTLE_POWER_CAP].samples = 40;
    result.observations[3].throttles[THROTTLE_POWER_CAP].samples = 1;
    render(report_write_result);
    expect_line("gpus: 4 of 4 observed  SM clock 1755 MHz (1740 to 1770)  power 690 W (690 to 690)  at most 74 C  "
                "power cap 2/4  energy 800 J/step, 655.4 tokens/J");
}

Test(report_devices, are_a_line_that_says_what_is_not_known)
{
    fixture_observe(&result, 2);
    for (int rank = 0; rank < 2; rank++) {
        struct observation *observation = &result.observations[rank];
        observation_init(observation, "");
        observation->rank                          = rank;
        observation->samples                       = 3;
        observation->gauges[GAUGE_SM_CLOCK].median = rank == 0 ? 1755 : NAN;
    }
    result_derive(&result);
    render(report_write_result);
    expect_line("gpus: 2 of 2 observed  SM clock 1755 MHz");
}

Test(report_devices, that_nobody_observed_are_a_reason)
{
    fixture_observe(&result, 2);
    observation_init(&result.observations[0], "libnvidia-ml.so.1 does not open");
    observation_init(&result.observations[1], "libnvidia-ml.so.1 does not open");
    render(report_write_result);
    expect_line("gpus: not observed: libnvidia-ml.so.1 does not open");
    render(report_write_html);
    cr_expect_eq(count_in("<td class=text>libnvidia-ml.so.1 does not open</td>"), 2);
    cr_expect_eq(count_in("Errors and links"), 0);
}

Test(report_devices, are_a_row_of_tables_each)
{
    fixture_observe(&result, 2);
    result.observations[1].counters[COUNTER_ECC_CORRECTED]       = (struct counter_values){5, 9, 4};
    result.observations[1].throttles[THROTTLE_HARDWARE].samples  = 12;
    result.observations[1].throttles[THROTTLE_POWER_CAP].samples = 40;
    render(report_write_html);
    cr_expect_eq(count_in("<th class=n>SM clock, MHz</th>"), 1);
    cr_expect_eq(count_in("<th class=n>power limit, W</th>"), 1);
    cr_expect_eq(count_in("<td>GPU-1</td>"), 1);
    cr_expect_eq(count_in("<td class=n title=\"before 345, after 1980\">1755 <span class=soft>1740&ndash;1980</span>"),
                 2);
    cr_expect_eq(count_in("<td class=n title=\"before 700, after 700\">700</td>"), 2);
    cr_expect_eq(count_in("<td class=text>power cap 40/40, hardware slowdown 12/40</td>"), 1);
    cr_expect_eq(count_in("<td class=n>9 <span class=soft>+4</span></td>"), 1);
    cr_expect_eq(count_in("<th class=n>NVLinks active</th>"), 1);
    cr_expect_eq(count_in("<td class=n>8000</td>"), 2);
}

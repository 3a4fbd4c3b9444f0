// SPDX-License-Identifier: MIT
// Writes the recorded GPU values: a text line over all ranks, and a table with a row per rank.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/statistics.h"
#include "internal.h"

#define NAME_ROW(key, bytes, words) {words, offsetof(struct observation, key)},
static const struct name_row {
    const char *words;
    size_t      offset;
} name_rows[] = {OBSERVATION_NAMES(NAME_ROW)};

// Prints a clock or power as a whole number.
static void write_number(double value, FILE *file)
{
    fprintf(file, isnan(value) ? "?" : "%.0f", value);
}

// Writes a gauge as "SM clock 1755 MHz (1740 to 1770)": median, minimum and maximum over the ranks.
static void write_gauge(const struct result *result, enum gauge gauge, FILE *file)
{
    double *medians = memory_allocate((size_t)result->observation_count * sizeof(*medians));
    double  lowest = NAN, highest = NAN;
    int64_t count = 0;
    for (int64_t i = 0; i < result->observation_count; i++) {
        double median = result->observations[i].gauges[gauge].median;
        if (!isnan(median)) {
            medians[count++] = median;
            lowest           = fmin(lowest, median);
            highest          = fmax(highest, median);
        }
    }
    if (count > 0) {
        fprintf(file, "  %s %.0f %s", gauge_labels[gauge].words, statistics_median(medians, count),
                gauge_labels[gauge].unit);
    }
    if (count > 1) {
        fprintf(file, " (%.0f to %.0f)", lowest, highest);
    }
    free(medians);
}

// Writes a throttle reason as "power cap 64/64": 64 of the 64 ranks with samples had a GPU that was throttled for this
// reason. The reason "idle" is skipped, because an idle GPU is not throttled.
static void write_throttle(const struct result *result, enum throttle throttle, FILE *file)
{
    int64_t count = 0, known = 0;
    for (int64_t i = 0; i < result->observation_count; i++) {
        double samples = result->observations[i].throttles[throttle].samples;
        count += samples > 0;
        known += !isnan(samples);
    }
    if (count > 0 && throttle != THROTTLE_IDLE) {
        fprintf(file, "  %s %" PRId64 "/%" PRId64, throttle_labels[throttle].words, count, known);
    }
}

static double hottest(const struct result *result)
{
    double celsius = NAN;
    for (int64_t i = 0; i < result->observation_count; i++) {
        celsius = fmax(celsius, result->observations[i].gauges[GAUGE_TEMPERATURE].maximum);
    }
    return celsius;
}

static int64_t count_observed(const struct result *result)
{
    int64_t count = 0;
    for (int64_t i = 0; i < result->observation_count; i++) {
        count += result->observations[i].missing[0] == '\0' || result->observations[i].samples > 0;
    }
    return count;
}

void report_write_devices(const struct result *result, FILE *file)
{
    int64_t observed = count_observed(result);
    if (result->observation_count == 0) {
        return;
    }
    if (observed == 0) {
        fprintf(file, "gpus: not observed: %s\n", report_safe(result->observations[0].missing));
        return;
    }
    fprintf(file, "gpus: %" PRId64 " of %" PRId64 " observed", observed, result->observation_count);
    write_gauge(result, GAUGE_SM_CLOCK, file);
    write_gauge(result, GAUGE_POWER, file);
    if (!isnan(hottest(result))) {
        fprintf(file, "  at most %.0f C", hottest(result));
    }
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        write_throttle(result, (enum throttle)throttle, file);
    }
    if (!isnan(result->figures.joules_per_step)) {
        fprintf(file, "  energy %.6g J/step, %.4g tokens/J", result->figures.joules_per_step,
                result->figures.tokens_per_joule);
    }
    fputc('\n', file);
}

static void write_head(const struct device_label *row, FILE *file)
{
    html_print(file, "<th class=n>%s%s%s</th>", row->words, row->unit[0] != '\0' ? ", " : "", row->unit);
}

static void begin_table(const char *summary, const struct result *result, FILE *file)
{
    fprintf(file,
            "<section class=\"card devices\"><details%s><summary>%s</summary><div class=scroll><table><tr><th>rank</th>"
            "<th>host</th>",
            result->observation_count <= 16 ? " open" : "", summary);
}

static void begin_row(const struct result *result, const struct observation *observation, FILE *file)
{
    bool has_host = observation->rank >= 0 && observation->rank < result->rank_count;
    html_print(file, "<tr><td>%" PRId64 "</td><td>%s</td>", observation->rank,
               has_host ? result->ranks[observation->rank].host : "");
}

// Writes a table cell with the median and range of a gauge's samples. Its tooltip has the values before and after the
// run.
static void write_gauge_cell(const struct gauge_values *gauge, FILE *file)
{
    if (isnan(gauge->before) && isnan(gauge->median)) {
        fprintf(file, "<td class=n>&ndash;</td>");
        return;
    }
    fprintf(file, "<td class=n title=\"before ");
    write_number(gauge->before, file);
    fprintf(file, ", after ");
    write_number(gauge->after, file);
    fprintf(file, "\">");
    write_number(gauge->median, file);
    if (gauge->minimum < gauge->maximum) {
        fprintf(file, " <span class=soft>%.0f&ndash;%.0f</span>", gauge->minimum, gauge->maximum);
    }
    fprintf(file, "</td>");
}

static void write_throttles_cell(const struct observation *observation, FILE *file)
{
    bool is_first = true;
    fprintf(file, "<td class=text>");
    for (int i = 0; i < THROTTLE_COUNT; i++) {
        if (observation->throttles[i].samples > 0) {
            fprintf(file, "%s%s %.0f/%" PRId64, is_first ? "" : ", ", throttle_labels[i].words,
                    observation->throttles[i].samples, observation->samples);
            is_first = false;
        }
    }
    if (isnan(observation->throttles[0].samples)) {
        fprintf(file, "&ndash;");
    }
    fprintf(file, "</td>");
}

static void write_states(const struct result *result, FILE *file)
{
    begin_table("Devices during the measured steps: median, minimum and maximum of the samples", result, file);
    for (size_t i = 0; i < sizeof(name_rows) / sizeof(name_rows[0]); i++) {
        fprintf(file, "<th>%s</th>", name_rows[i].words);
    }
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        write_head(&gauge_labels[gauge], file);
    }
    fprintf(file, "<th>throttled by, samples</th><th class=n>energy, J</th><th>not observed</th></tr>\n");
    for (int64_t rank = 0; rank < result->observation_count; rank++) {
        const struct observation *observation = &result->observations[rank];
        begin_row(result, observation, file);
        for (size_t i = 0; i < sizeof(name_rows) / sizeof(name_rows[0]); i++) {
            html_print(file, "<td>%s</td>", (const char *)observation + name_rows[i].offset);
        }
        for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
            write_gauge_cell(&observation->gauges[gauge], file);
        }
        write_throttles_cell(observation, file);
        html_write_number(file, NULL, "%.6g", observation->energy_joules);
        html_print(file, "<td class=text>%s</td></tr>\n", observation->missing);
    }
    fprintf(file, "</table></div></details></section>\n");
}

// Writes a table cell with the last known value of a counter and its growth during the run.
static void write_counter_cell(const struct counter_values *counter, FILE *file)
{
    double value = isnan(counter->after) ? counter->before : counter->after;
    if (!isnan(value) && counter->growth != 0 && !isnan(counter->growth)) {
        fprintf(file, "<td class=n>%.0f <span class=soft>%+.0f</span></td>", value, counter->growth);
    } else {
        html_write_number(file, NULL, "%.0f", value);
    }
}

static void write_counters(const struct result *result, FILE *file)
{
    begin_table("Errors and links of the devices: after the run, and change during it", result, file);
    for (int counter = 0; counter < COUNTER_COUNT; counter++) {
        write_head(&counter_labels[counter], file);
    }
    fprintf(file, "</tr>\n");
    for (int64_t i = 0; i < result->observation_count; i++) {
        begin_row(result, &result->observations[i], file);
        for (int counter = 0; counter < COUNTER_COUNT; counter++) {
            write_counter_cell(&result->observations[i].counters[counter], file);
        }
        fprintf(file, "</tr>\n");
    }
    fprintf(file, "</table></div></details></section>\n");
}

void html_write_devices(const struct result *result, FILE *file)
{
    if (result->observation_count > 0) {
        write_states(result, file);
    }
    if (count_observed(result) > 0) {
        write_counters(result, file);
    }
}

// SPDX-License-Identifier: MIT
// Writes the communication ops of the traced step as text and as a table of report.html, sorted by total time.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "internal.h"

enum { TEXT_ROWS = 8 };

static double total_seconds(const struct result_communication_time *time)
{
    return (double)time->count * time->seconds;
}

static int compare(const void *a, const void *b)
{
    const struct result_communication_time *const *left = a, *const *right = b;
    double                                         first = total_seconds(*left), second = total_seconds(*right);
    return first != second ? (first < second) - (first > second) : (*left > *right) - (*left < *right);
}

// Returns pointers to the communication ops, sorted by total time; the caller frees the array.
static const struct result_communication_time **sort(const struct result *result)
{
    const struct result_communication_time **times =
        memory_allocate((size_t)result->communication_time_count * sizeof(*times));
    for (int64_t i = 0; i < result->communication_time_count; i++) {
        times[i] = &result->communication_times[i];
    }
    qsort(times, (size_t)result->communication_time_count, sizeof(*times), compare);
    return times;
}

static const double GIGABYTE = 1e9, MICROSECOND = 1e-6;

// The numbers of a table row as text; "-" if unknown.
struct numbers {
    char seconds[32], moving[32], bandwidth[32], alone[32], alone_bandwidth[32], predicted[32], by[96], late[256];
};

static void name_number(char text[32], double value, double unit)
{
    snprintf(text, 32, isfinite(value) ? "%.*f" : "-", value / unit < 100 ? 2 : 0, value / unit);
}

// Formats the numbers of a row. by: NCCL's algorithm, protocol and channels, "RING LL x 4". late: the rank that arrives
// last most often, the share of the ops in which it is last, and how long the first rank to arrive then waits, "rank 3
// (host), last in 62 %, 12.3 us".
static void name_numbers(const struct result *result, const struct result_communication_time *time,
                         struct numbers *text)
{
    char channels[32] = "", name[128], wait[32];
    name_number(text->seconds, time->seconds, MICROSECOND);
    name_number(text->moving, time->moving_seconds, MICROSECOND);
    name_number(text->bandwidth, time->bandwidth, GIGABYTE);
    name_number(text->alone, time->alone_seconds, MICROSECOND);
    name_number(text->alone_bandwidth, time->alone_bandwidth, GIGABYTE);
    name_number(text->predicted, time->predicted_seconds, MICROSECOND);
    if (time->channels > 0) {
        snprintf(channels, sizeof(channels), " x %" PRId64, time->channels);
    }
    snprintf(text->by, sizeof(text->by), "%.36s%s%.20s%s", report_safe(time->algorithm),
             time->protocol[0] != '\0' ? " " : "", report_safe(time->protocol), channels);
    snprintf(text->late, sizeof(text->late), "-");
    if (time->late_rank >= 0 && isfinite(time->wait_seconds)) {
        name_number(wait, time->wait_seconds, MICROSECOND);
        snprintf(text->late, sizeof(text->late), "%s, last in %.0f %%, %s us",
                 result_name_rank(result, time->late_rank, name, sizeof(name)), 100 * time->late_share, wait);
    }
}

// Sums over the communication ops whose groups span the same axes of the mesh, such as tp.
struct axes_sum {
    const char *axes;
    double      count, bytes, seconds, moving_seconds, bus_bytes;    // bus_bytes: bus bandwidth times moving_seconds
};
enum { SUMS = 16 };

static int sum_axes(const struct result *result, struct axes_sum sums[SUMS])
{
    int count = 0;
    for (int64_t i = 0; i < result->communication_time_count; i++) {
        const struct result_communication_time *time   = &result->communication_times[i];
        double                                  number = (double)time->count;
        int                                     at     = 0;
        while (at < count && strcmp(sums[at].axes, time->axes) != 0) {
            at++;
        }
        if (at == SUMS) {
            continue;    // `sums` has no room for further combinations of axes
        }
        if (at == count) {
            sums[count++] = (struct axes_sum){.axes = time->axes};
        }
        sums[at].count += number;
        sums[at].bytes += number * time->bytes;
        sums[at].seconds += number * time->seconds;
        sums[at].moving_seconds += number * time->moving_seconds;
        sums[at].bus_bytes += number * time->moving_seconds * time->bandwidth;
    }
    return count;
}

static void name_sum(const struct axes_sum *sum, struct numbers *text)
{
    name_number(text->seconds, sum->seconds, MICROSECOND);
    name_number(text->moving, sum->moving_seconds, MICROSECOND);
    name_number(text->bandwidth, sum->bus_bytes / sum->moving_seconds, GIGABYTE);
}

void report_write_communications(const struct result *result, FILE *file)
{
    if (result->communication_time_count == 0) {
        return;
    }
    const struct result_communication_time **times = sort(result);
    fprintf(file,
            "collectives of that step, times in us, bus bandwidth in GB/s\n  %-18s %-10s %5s %5s %10s %9s %9s %8s %9s "
            "%8s %9s  %s\n",
            "kind", "axes", "ranks", "count", "size", "time", "moving", "bus", "alone", "bus", "predicted",
            "waited for");
    for (int64_t i = 0; i < result->communication_time_count && i < TEXT_ROWS; i++) {
        struct numbers text;
        name_numbers(result, times[i], &text);
        fprintf(file, "  %-18s %-10s %5" PRId64 " %5" PRId64 " %10s %9s %9s %8s %9s %8s %9s  %s\n",
                report_safe(times[i]->kind), report_safe(times[i]->axes), times[i]->group_size, times[i]->count,
                report_bytes(times[i]->bytes), text.seconds, text.moving, text.bandwidth, text.alone,
                text.alone_bandwidth, text.predicted, report_safe(text.late));
        if (text.by[0] != '\0') {
            fprintf(file, "    by %s\n", text.by);
        }
    }
    if (result->communication_time_count > TEXT_ROWS) {
        fprintf(file, "  and %" PRId64 " more, in report.html and result.json\n",
                result->communication_time_count - TEXT_ROWS);
    }
    struct axes_sum sums[SUMS];
    int             count = sum_axes(result, sums);
    for (int i = 0; i < count; i++) {
        struct numbers text;
        name_sum(&sums[i], &text);
        fprintf(file, "  %-18s %-10s %5s %5.0f %10s %9s %9s %8s\n", "all over", report_safe(sums[i].axes), "",
                sums[i].count, report_bytes(sums[i].bytes), text.seconds, text.moving, text.bandwidth);
    }
    free(times);
}

static void html_write_sums(const struct result *result, FILE *file)
{
    struct axes_sum sums[SUMS];
    int             count = sum_axes(result, sums);
    fprintf(file, "<div class=scroll><table><tr><th>axes</th><th class=n>count</th><th class=n>size</th>"
                  "<th class=n>time, &micro;s</th><th class=n>moving, &micro;s</th><th class=n>bus, GB/s</th></tr>\n");
    for (int i = 0; i < count; i++) {
        struct numbers text;
        name_sum(&sums[i], &text);
        html_print(file,
                   "<tr><td>%s</td><td class=n>%.0f</td><td class=n>%s</td><td class=n>%s</td><td class=n>%s"
                   "</td><td class=n>%s</td></tr>\n",
                   sums[i].axes, sums[i].count, report_bytes(sums[i].bytes), text.seconds, text.moving, text.bandwidth);
    }
    fprintf(file, "</table></div>");
}

void html_write_communication_times(const struct result *result, FILE *file)
{
    if (result->communication_time_count == 0) {
        return;
    }
    const struct result_communication_time **times = sort(result);
    fprintf(file, "<section class=card><h2>Collectives <span class=soft>of the traced step, and alone</span></h2>"
                  "<div class=scroll><table><tr><th>kind</th><th>axes</th><th class=n>ranks</th><th class=n>count</th>"
                  "<th class=n>size</th><th class=n>time, &micro;s</th><th class=n>moving, &micro;s</th>"
                  "<th class=n>bus, GB/s</th><th class=n>alone, &micro;s</th><th class=n>bus, GB/s</th>"
                  "<th class=n>predicted, &micro;s</th><th>by</th><th>waited for</th></tr>\n");
    for (int64_t i = 0; i < result->communication_time_count; i++) {
        struct numbers text;
        name_numbers(result, times[i], &text);
        html_print(file,
                   "<tr><td>%s</td><td>%s</td><td class=n>%" PRId64 "</td><td class=n>%" PRId64
                   "</td><td class=n>%s</td><td class=n>%s</td><td class=n>%s</td><td class=n>%s</td><td class=n>%s"
                   "</td><td class=n>%s</td><td class=n>%s</td><td>%s</td><td class=text>%s</td></tr>\n",
                   times[i]->kind, times[i]->axes, times[i]->group_size, times[i]->count, report_bytes(times[i]->bytes),
                   text.seconds, text.moving, text.bandwidth, text.alone, text.alone_bandwidth, text.predicted, text.by,
                   text.late);
    }
    fprintf(file, "</table></div>");
    html_write_sums(result, file);
    fprintf(file,
            "<p class=soft>Sums by axes are of the rank with the longest time; transfers/RANK.csv lists every "
            "collective of a rank. Moving: after the last rank of the group has arrived. Slower than alone: other "
            "communication or compute slows it. Alone slower than predicted: the network is slow.</p></section>\n");
    free(times);
}

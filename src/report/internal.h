// SPDX-License-Identifier: MIT
// What the renderers of a result share.
#ifndef GSWBENCH_REPORT_INTERNAL_H
#define GSWBENCH_REPORT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "gswbench/result.h"

// Foreign text made printable; returns text.
const char *report_safe(char *text, size_t bytes, const char *from);

// Seconds with enough digits to tell steps apart; returns text.
const char *report_seconds(char *text, size_t bytes, double seconds);

// By what a device's ops were timed, behind other words: ", ops timed by events"; "" on the host.
const char *report_name_timing(const struct result_trace *trace);

// A word in capitals.
#define REPORT_VERDICT_PREFIX "RESULT "
void report_write_upper(const char *word, FILE *file);

// "precision bf16  sequence 128 ...", a line.
void report_write_layout(const struct result *result, FILE *file);

// Bytes of all storages.
double report_total_bytes(const struct result *result);

// report_devices.c: what was observed of the ranks' devices, as a line, and as tables; nothing where ranks have none.
void report_write_devices(const struct result *result, FILE *file);
void html_write_devices(const struct result *result, FILE *file);

// report_compute_times.c: a map of ranks and steps; nothing where it is not known.
void html_write_compute_times(const struct result *result, FILE *file);

// report_expectation.c: what the step should take beside what it takes, a line; nothing where nothing is said of it.
// And the parts of the one that is expected; NULL: there is none.
void                    report_write_expectation(const struct result *result, FILE *file);
const struct waterfall *report_expected_parts(const struct result *result);

// report_connections.c: which of the library's younger functions connections use, a line; nothing without NCCL.
void report_write_connections(const struct result *result, FILE *file);

// report_verification.c: before the steps, and after them.
void report_write_verification_ahead(const struct result *result, FILE *file);
void report_write_verification(const struct result *result, FILE *file);

// report_transfers.c: of the traced step, as lines and as a table; nothing where it has none.
void report_write_transfers(const struct result *result, FILE *file);
void html_write_transfer_times(const struct result *result, FILE *file);

// comparison.c: a setting of the configuration, "section.key"; "" where there is none of that name.
const char *report_find_setting(const struct result *result, const char *name);

// comparison_parts.c: "norm" of norm_forward and norm_backward; whether ops of that name compute: of a file's words
// only those that this version knows.
void report_name_family(const char *kind, char *name, size_t bytes);
bool report_computes(const char *kind);

// Sets parts, families and pace.
struct comparison;
void comparison_explain(struct comparison *comparison);

// comparison_text.c: what tells a side's columns from the other's.
const char *comparison_label(const struct comparison *comparison, bool is_second);

// comparison_why.c: where the step goes in both, and what keeps the second from the pace of its GEMMs.
void comparison_write_parts(const struct comparison *comparison, FILE *file);

// report_acceptance.c: the verdict on the machine, where the run has one.
void html_write_acceptance(const struct result *result, FILE *file);

// Memory, work, transfers, ranks, environment, configuration, and how to read them.
void html_write_tables(const struct result *result, FILE *file);

// Where the time of the traced step goes; there is one.
void html_write_waterfall(const struct result *result, FILE *file);

// Its parts in one bar, by what they are.
void html_write_stack(const struct result *result, double longest, FILE *file);

// report_list.c: a table of results.
struct report_listed;
void html_write_list(const struct report_listed *rows, int64_t count, FILE *file);

// report_utilization.c: MFU beside what is expected and what is published; nothing where there is nothing beside it.
void html_write_utilization(const struct result *result, FILE *file);

// report_course.c: memory and the turns of pipeline stages in the course of the traced step.
void html_write_course(const struct result *result, FILE *file);

// report_roofline.c: what ops reach of what the machine allows.
void html_write_roofline(const struct result *result, FILE *file);

// A series over the steps, drawn as SVG. Steps before `warmup` are shaded. With a median, the vertical range is that of
// the measured steps and what lies beyond it is drawn at the edge; low and high are NaN without an interval.
struct chart {
    const char   *title, *unit;
    const double *values;    // [count]; NaN: a gap
    const bool   *marks;     // [count], drawn as outliers; NULL: none
    int64_t       count, warmup;
    double        median, low, high;
};
void chart_write(const struct chart *chart, FILE *file);

// report.css: the style sheet of report.html.
extern const char report_style[];

#endif

// SPDX-License-Identifier: MIT
// Shared by the files that print results, comparisons and tables.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "gswbench/result.h"

// report_value.c: values as text, valid until the thread calls these functions 15 more times. report_safe replaces
// control characters in text from files; report_seconds has enough digits to tell steps apart.
const char *report_safe(const char *from);
const char *report_seconds(double seconds);

// For HTML pages: report_digits prints seconds with four significant digits, and report_decimals returns how many
// decimals that takes. All times of a table have as many decimals as its step time.
const char *report_digits(double seconds);
int         report_decimals(double seconds);

// Memory of a device by [hardware] memory_gb; 0: unknown.
double report_device_bytes(const struct result *result);

// Text after a published time: whether constants of the predictor were fitted to this time. Empty for a run.
const char *report_error_status(const struct result *result);
const char *report_real(double value);
const char *report_percent(double share);
const char *report_upper(const char *word);
const char *report_grouped(double value, char separator);

// Suffix that says how device ops were timed: ", ops timed by events"; "" on the host.
const char *report_name_timing(const struct result_trace *trace);

// report_files.c: whether the folder at path has the journal of a run.
bool report_has_journal(const char *path);

#define REPORT_VERDICT_PREFIX "RESULT "

// Writes the axes of the layout with more than one rank: "  fsdp 64  tp 2" with before = "  " and between = " ".
void report_write_axes(const struct result *result, const char *before, const char *between, FILE *file);

// Writes the line "precision bf16  sequence 128 ...".
void report_write_layout(const struct result *result, FILE *file);

// Returns the sum of the storages' bytes.
double report_total_bytes(const struct result *result);

// report_devices.c: recorded GPU values as a text line and as tables; nothing without GPUs.
void report_write_devices(const struct result *result, FILE *file);
void html_write_devices(const struct result *result, FILE *file);

// report_compute_times.c: heat map of ranks by steps; nothing if compute times are unknown.
void html_write_compute_times(const struct result *result, FILE *file);

// report_end.c: the end of a run with every reason, each in one line.
void report_write_whole_end(const struct result *result, FILE *file);

// report_text.c: the rank whose compute time is furthest above the median of the ranks with the same work, and the
// predicted waterfall. NULL: unknown.
const struct result_rank *report_longest_rank(const struct result *result);
const struct waterfall   *report_expected_parts(const struct result *result);

// report_communication.c: communication ops of the traced step as text and as a table; nothing without a trace.
void report_write_communications(const struct result *result, FILE *file);
void html_write_communication_times(const struct result *result, FILE *file);

// comparison.c: returns the value of the setting "section.key", or "" if it does not exist.
const char *report_find_setting(const struct result *result, const char *name);

// Dollars for a million tokens; NaN without [hardware] gpu_hour_dollars.
double report_token_dollars(const struct result *result);

// comparison.c: the family of an op kind ("norm" for norm_forward), and whether the kind is a compute op. kind
// may come from a file; unknown kinds are not compute ops.
void report_name_family(const char *kind, char *name, size_t bytes);
bool report_computes(const char *kind);

// comparison_text.c: the verdict in words.
struct comparison;
const char *comparison_verdict(const struct comparison *comparison);
bool        comparison_shares_errors(const struct comparison *comparison);    // two predictions with the same profiles

// report_tables.c: memory, work, communication, ranks, environment, configuration, and how to read them.
void html_write_tables(const struct result *result, FILE *file);

// report_traced.c: the waterfall of the traced step. The result must have one.
void html_write_waterfall(const struct result *result, FILE *file);

// A table cell with one stacked bar of the waterfall, relative to the longest step.
void html_write_stack(const struct result *result, double longest, FILE *file);

// report_list.c: a table of results.
struct report_listed;
void html_write_list(const struct report_listed *rows, int64_t count, FILE *file);

// report_traced.c: timeline of memory and pipeline actions in the traced step.
void html_write_timeline(const struct result *result, FILE *file);

// report_roofline.c: roofline plot of the op families.
void html_write_roofline(const struct result *result, FILE *file);

// page.c: shared parts of the HTML pages.

// Bar colours, as numbered in report.css.
enum { BAR_COMPUTE = 0, BAR_IDEAL = 1, BAR_REST = 2, BAR_IDLE = 3 };

// An HTML page begins with html_write_head, then the text of its subtitle, then html_write_badge (word NULL: no badge).
// The caller opens <footer>, and html_write_foot closes it.
void html_write_head(const char *title, FILE *file);
void html_write_badge(const char *class, const char *word, FILE *file);
void html_write_foot(FILE *file);

// Writes text from outside the program, escaped for HTML. html_print prints like fprintf and escapes every %s. Its
// numbers are int, int64_t and double; only doubles have flags, a width or a precision.
void html_write_text(const char *from, FILE *file);
void html_print(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Writes a numeric cell, with a dash for NaN. title: name of its column, which narrow pages show beside it; NULL: none.
void html_write_number(FILE *file, const char *title, const char *format, double value)
    __attribute__((format(printf, 3, 0)));

// Writes a box with a figure.
void html_write_figure(FILE *file, const char *value, const char *unit, const char *label, const char *note, ...)
    __attribute__((format(printf, 5, 6)));

// Writes a cell with a bar that begins at the fraction `from` of the width.
void html_write_bar(int colour, double from, double share, FILE *file);

// A legend entry.
struct page_key {
    int         colour;
    const char *meaning;
};
void html_write_keys(const struct page_key *keys, int count, FILE *file);

// report_traced.c: legend of the waterfall's four colours.
extern const struct page_key page_waterfall_keys[];

// Writes a horizontal line of a drawing's grid with its label, and the time axis below a drawing.
void html_write_gridline(double y, const char *label, FILE *file);
void html_write_seconds_axis(double seconds, double y, FILE *file);

// A series over the steps, drawn as SVG. The first `warmup` steps are shaded. With a median, the vertical range is the
// range of the measured steps, and values outside it are drawn at the edge. low and high are NaN without an interval.
struct chart {
    const char   *title, *unit;
    const double *values;    // [count]; NaN: a gap
    const bool   *marks;     // [count], drawn as outliers; NULL: none
    int64_t       count, warmup;
    double        median, low, high;
};
void chart_write(const struct chart *chart, FILE *file);
void chart_write_histogram(const double *values, int64_t count, FILE *file);

// report.css: the style sheet of report.html.
extern const char report_style[];

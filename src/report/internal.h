// SPDX-License-Identifier: MIT
// Declares functions that several files of src/report share to print results, comparisons and tables.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/report.h"

// Format values as text (report_value.c). The text is valid for the next 15 calls. report_safe returns text from a file
// with control characters replaced. For HTML pages, report_digits prints seconds with four significant digits, and
// report_decimals returns how many decimals these are. All times of a table get the decimals of the step time in it.
const char *report_safe(const char *from);
const char *report_digits(double seconds);
int         report_decimals(double seconds);
const char *report_real(double value);
const char *report_percent(double share);
const char *report_upper(const char *word);
const char *report_grouped(double value, char separator);

// Returns the memory of a device in bytes, from [hardware] memory_gb; 0: unknown.
double report_device_bytes(const struct result *result);
// Returns the text that follows the published step time of a prediction. It says whether constants of the cost model
// were fitted to this time. The text is empty for a run.
const char *report_error_status(const struct result *result);
// Returns the source of the peak that MFU divides by.
const char *report_peak_source(const struct result *result);
// Say where the times of the traced step come from, and how ops on the device were timed: ", ops timed by events"; ""
// without a device.
const char *report_name_source(const struct result_trace *trace);
const char *report_name_timing(const struct result_trace *trace);

// Returns whether the folder at path has the journal of a run, run.jsonl (report_files.c).
bool report_has_journal(const char *path);

#define REPORT_VERDICT_PREFIX "RESULT "

// Writes the axes of the layout with more than one rank: "  fsdp 64  tp 2" with before = "  " and between = " ".
void report_write_axes(const struct result *result, const char *before, const char *between, FILE *file);

report_writer report_write_batch;             // "sequence 128  micro batch 2 ..."
report_writer report_write_layout;            // the line "ranks 64  fsdp 64"
report_writer report_write_devices;           // recorded GPU values; without GPUs nothing (report_devices.c)
report_writer report_write_whole_end;         // end of a run with all reasons, each in one line (report_end.c)
report_writer report_write_communications;    // of the traced step; without one nothing (report_communication.c)

// report_longest_rank returns the rank with the largest excess of compute time over the median of the ranks with the
// same work; NULL: unknown. report_expected_parts returns the waterfall that was predicted for a run; NULL: unknown, or
// the result is itself a prediction (report_text.c).
const struct result_rank *report_longest_rank(const struct result *result);
const struct waterfall   *report_expected_parts(const struct result *result);

// Returns the value of the setting "section.key", or "" if it does not exist (comparison.c).
const char *report_find_setting(const struct result *result, const char *name);

// Returns the dollars for a million tokens; NaN without [hardware] gpu_hour_dollars.
double report_token_dollars(const struct result *result);

// report_name_family names the family of an op kind: "norm" for norm_forward. report_computes returns whether the kind
// is a compute op. `kind` may come from a file; an unknown kind is not a compute op (comparison.c).
void report_name_family(const char *kind, char *name, size_t bytes);
bool report_computes(const char *kind);

// comparison_verdict returns the verdict about the step time in words. comparison_interval names the source of the
// speed-up's interval, or the reason why there is none (comparison_text.c).
struct comparison;
const char *comparison_verdict(const struct comparison *comparison);
const char *comparison_interval(const struct comparison *comparison);
// Lists the settings of the job that differ, with the values of the second result: "parallel.tp 8, ranks 16". With
// has_machine, lists versions and facts of the machine, too. A list that does not fit ends with "..." (comparison.c).
void comparison_list_settings(const struct comparison *comparison, bool has_machine, char *text, size_t bytes);
// Returns whether both results are predictions with the same profiles, whose errors mostly cancel in a comparison.
bool comparison_shares_errors(const struct comparison *comparison);

// Parts of report.html, in report_devices.c, report_compute_times.c, report_communication.c, report_tables.c,
// report_roofline.c and report_traced.c. They write nothing if their values are unknown, except html_write_tables.
// html_write_waterfall needs a traced step.
report_writer html_write_devices, html_write_compute_times, html_write_communication_times, html_write_tables;
report_writer html_write_roofline;
report_writer html_write_waterfall, html_write_timeline;    // of the traced step (report_traced.c)

// Writes a table cell with the waterfall as one stacked bar. `longest` is the step time of a full-width bar.
void html_write_stack(const struct result *result, double longest, FILE *file);

// Writes a table with a row per result (report_list.c).
void html_write_list(const struct report_listed *rows, int64_t count, FILE *file);

// The following functions write the parts that all HTML pages share (page.c).

// Bar colours, as numbered in report.css.
enum { BAR_COMPUTE = 0, BAR_IDEAL = 1, BAR_REST = 2, BAR_IDLE = 3 };

// An HTML page begins with html_write_head, then the text of its subtitle, then html_write_badge (word NULL: no badge).
// It ends with html_write_foot, which prints text after "gswbench " like html_print.
void html_write_head(const char *title, FILE *file);
void html_write_badge(const char *class, const char *word, FILE *file);
void html_write_foot(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Writes text from outside the program, escaped for HTML. html_print prints like fprintf and escapes every %s. It
// accepts numbers of type int, int64_t and double; only a double may have flags, a width or a precision, but no "*".
void html_write_text(const char *from, FILE *file);
void html_print(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Writes a numeric cell, with a dash for NaN. title: name of its column, which narrow pages show next to the number;
// NULL: none.
void html_write_number(FILE *file, const char *title, const char *format, double value)
    __attribute__((format(printf, 3, 0)));

// Writes a box with a value in large type, its unit, a label and a note.
void html_write_figure(FILE *file, const char *value, const char *unit, const char *label, const char *note, ...)
    __attribute__((format(printf, 5, 6)));

// Writes a cell with a bar. from and share: start and length of the bar, as fractions of the width of the cell.
void html_write_bar(int colour, double from, double share, FILE *file);

struct page_key {
    int         colour;
    const char *meaning;
};
void html_write_keys(const struct page_key *keys, int count, FILE *file);

// Legend of the waterfall's four colours (report_traced.c).
extern const struct page_key page_waterfall_keys[];

// Writes a horizontal line of a drawing's grid with its label, and the time axis below a drawing.
void html_write_gridline(double y, const char *label, FILE *file);
void html_write_seconds_axis(double seconds, double y, FILE *file);

// A chart of a value over the steps. Warm-up steps are shaded; a NaN is a gap. With a median, the chart covers the
// values of the measured steps, and draws other values at its edge. low and high are the interval of the median; NaN:
// none.
struct chart {
    const struct result *result;
    const char          *title, *unit;
    size_t               offset;            // offset of the value (a double) in struct result_step
    bool                 marks_outliers;    // marks the steps whose time is an outlier
    double               median, low, high;
};
void chart_write(const struct chart *chart, FILE *file);
void chart_write_histogram(const double *values, int64_t count, FILE *file);

// Text of report.css, the style sheet of report.html.
extern const char report_style[];

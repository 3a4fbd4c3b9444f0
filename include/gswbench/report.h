// SPDX-License-Identifier: MIT
// Renders results: lines on stdout, and the files of a run's folder.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "gswbench/output.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// Renders a result; the caller checks the stream for errors.
typedef void report_writer(const struct result *result, FILE *file);

report_writer report_write_header;    // facts of the run, one per line, after "# "
report_writer report_write_end;       // verdict, figures if they may be shown, and reasons: 80 columns
report_writer report_write_result;    // verdict, figures and reasons with all details

// Writes one line that compares the median step time with the median of an earlier run.
void report_write_baseline(const struct result *earlier, const struct result *result, FILE *file);

// Returns the function that writes the end of a run's output.
report_writer *report_of_run(bool is_json, bool is_verbose);

// The formats of a result. report_write_NAME renders the format NAME. The second value is the file that a run writes in
// this format (NULL: none).
#define REPORT_FORMATS(ROW)                                                                                            \
    ROW(text, NULL)                                                                                                    \
    ROW(csv, "steps.csv")                                                                                              \
    ROW(csv_ranks, "ranks.csv")                                                                                        \
    ROW(csv_compute_times, "compute_times.csv")                                                                        \
    ROW(html, "report.html") /* self-contained: no scripts, nothing from a network */                                  \
    ROW(json, "result.json") /* written last: a folder with it is complete */

#define REPORT_DECLARE_WRITER(name, file) report_writer report_write_##name;
REPORT_FORMATS(REPORT_DECLARE_WRITER)

struct report_format {
    const char    *name, *file;
    report_writer *write;
};
extern const struct report_format report_formats[];    // ends with a NULL name

#define REPORT_BAR_AND_NAME(name, file) "|" #name
#define REPORT_FORMAT_NAMES             (&(REPORT_FORMATS(REPORT_BAR_AND_NAME))[1])

// Returns the format with this name; NULL: there is none.
const struct report_format *report_find_format(const char *name);

// A page with a list of results, such as the best layouts of a sweep (report_list.c). A row may link to a separate page
// (link NULL: no link). A speed-up of NaN is unknown.
struct report_listed {
    const char          *name, *link;
    const struct result *result;
    double               speedup;
};
struct report_fact {
    int64_t     value;
    const char *name, *note;
};
struct report_list {
    const char                 *title, *subtitle, *heading, *answer, *remark;    // remark: "": none
    const struct report_fact   *facts;
    int                         fact_count;
    const struct report_listed *rows;
    int64_t                     count;
};
void report_write_list(const struct report_list *list, FILE *file);

// Format values as text (report_value.c). The text stays valid during the next 15 calls of these functions by the
// thread. report_number prints a real by a printf format, or "-" for NaN. report_seconds prints enough digits to tell
// two steps apart.
const char *report_bytes(double bytes);
const char *report_count(double count);
const char *report_seconds(double seconds);
const char *report_number(const char *format, double value) __attribute__((format(printf, 1, 0)));

// Write one CSV cell. Text is quoted; a number that is not finite gives an empty cell.
void csv_write_text(const char *from, FILE *file);
void csv_write_real(double value, FILE *file);

// Writes the line of a step: "completed step: 0, seconds: 1.234, ...".
void report_write_step(const struct result *result, const struct result_step *step, FILE *file);

// Write a log line about a loaded checkpoint, and about a checkpoint saved after a step. step: step number over all
// runs that continued the checkpoint. began: wall-clock time at which the load or save began.
void report_write_load(const struct result *result, double began, FILE *file);
void report_write_save(const struct result *result, int64_t step, double began, FILE *file);

// Writes the line of a step in the log format of a framework. style: enum log_style.
void report_write_styled_step(const struct result *result, const struct result_step *step, int64_t style,
                              double learning_rate, FILE *file);

// Creates OUTPUT/<config>/<precision>/<ranks>/<run id>/ and keeps it open. If the run id already exists, the result
// gets the next one. This function and the next ones fail with EXIT_OUTPUT, path and reason.
status report_create_folder(struct output_folder *folder, struct result *result, const char *output);

// Prints to stdout and flushes.
status report_print(report_writer *write, const struct result *result);

// Builds a partial result from the journal of a run, and writes its files. They replace the files that the run left,
// which must not be a complete result. why says how the run ended: "the run died". further: another reason, worse than
// PARTIAL; NULL: none.
status report_recover(struct result *result, const char *path, const char *why, const struct result_reason *further);

// report_read_result reads a result.json; path is this file or the folder of a run. report_result_file sets `file` to
// the path of result.json, and returns whether path is a folder (report_files.c).
status report_read_result(struct result *result, const char *path);
bool   report_result_file(const char *path, char *file, size_t bytes);

// Calls `visit` for a result.json, for the folder of a run, or for all runs below a folder in alphabetical order. Stops
// when a call fails. Returns an error if there is no run.
typedef status result_visitor(void *state, const char *path);
status         report_visit_results(const char *path, result_visitor *visit, void *state);

// Write every format that has a file. report_write_run also points the link "latest" in the output folder to the run.
status report_write_run(const struct output_folder *folder, const struct result *result);
status report_write_files(const struct output_folder *folder, const struct result *result);

// SPDX-License-Identifier: MIT
// A result for people and programs: lines on stdout, and the files of a run's folder.
#ifndef GSWBENCH_REPORT_H
#define GSWBENCH_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include "gswbench/output.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// Renders a result; the caller checks the stream.
typedef void report_writer(const struct result *result, FILE *file);

report_writer report_write_header;    // what runs, one fact a line, each after "# "
report_writer report_write_result;    // the verdict; the figures where they are comparable

// The formats of a whole result: the name, which report_write_NAME renders, and the file that a run writes, if it does.
#define REPORT_FORMATS(ROW)                                                                                            \
    ROW(text, NULL)                                                                                                    \
    ROW(csv, "steps.csv")                                                                                              \
    ROW(csv_ranks, "ranks.csv")                                                                                        \
    ROW(csv_compute_times, "compute_times.csv")                                                                        \
    ROW(prometheus, "metrics.prom")                                                                                    \
    ROW(html, "report.html") /* self-contained: no scripts, nothing from a network */                                  \
    ROW(json, "result.json") /* the last one: a folder that has it is whole */

#define REPORT_DECLARE_WRITER(name, file) report_writer report_write_##name;
REPORT_FORMATS(REPORT_DECLARE_WRITER)

struct report_format {
    const char    *name, *file;
    report_writer *write;
};
extern const struct report_format report_formats[];    // ends with a name of NULL

#define REPORT_BAR_AND_NAME(name, file) "|" #name
#define REPORT_FORMAT_NAMES             (&(REPORT_FORMATS(REPORT_BAR_AND_NAME))[1])

// NULL: there is none of that name.
const struct report_format *report_find_format(const char *name);

// report_list.c: a page of several results, such as the best of a sweep. A row has a link to a page of its own (NULL:
// none); a speed-up of NaN is not known.
struct report_listed {
    const char          *name, *link;
    const struct result *result;
    double               speedup;
};
struct report_list {
    const char *title, *subtitle, *heading, *remark;
    struct report_fact {
        char        value[32];
        const char *name, *note;
    } facts[8];
    int                         fact_count;
    const struct report_listed *rows;
    int64_t                     count;
};
void report_write_list(const struct report_list *list, FILE *file);

// Foreign text as a cell of CSV; a number, an empty cell where it is none.
void csv_write_text(const char *from, FILE *file);
void csv_write_real(double value, FILE *file);

// "completed step: 0, seconds: 1.234, ..."
void report_write_step(const struct result *result, const struct result_step *step, FILE *file);

// Of what a run began with, and of what it saved after that step, counted over all runs; began: by the wall's clock.
void report_write_load(const struct result *result, double began, FILE *file);
void report_write_save(const struct result *result, int64_t step, double began, FILE *file);

// A step as another program prints it; style: enum log_style.
struct report_step_style {
    int64_t style;
    double  learning_rate;
};
void report_write_styled_step(const struct result *result, const struct result_step *step,
                              const struct report_step_style *style, FILE *file);

// Creates OUTPUT/<config>/<precision>/<ranks>/<run id>/, which is new, and holds it open for what follows; where a run
// has that id already, the result gets the next one. Errors here and below are EXIT_OUTPUT and name path and reason.
status report_create_folder(struct output_folder *folder, struct result *result, const char *output);
status report_write_file(const struct output_folder *folder, const char *name, report_writer *write,
                         const struct result *result);

// Prints to stdout, at once.
status report_print(report_writer *write, const struct result *result);

// Makes a partial result of the journal in the folder of a run that has none, and writes it there; why it ended: "the
// run died".
status report_recover(struct result *result, const char *path, const char *why);

// Every format that has a file. Of a run that has ended now, "latest" in the folder of all runs is a link to it.
status report_write_run(const struct output_folder *folder, const struct result *result);
status report_write_files(const struct output_folder *folder, const struct result *result);

#endif

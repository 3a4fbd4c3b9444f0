// SPDX-License-Identifier: MIT
// A result for people and programs: lines on stdout, and the files of a run's folder.
#ifndef GSWBENCH_REPORT_H
#define GSWBENCH_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include "gswbench/result.h"
#include "gswbench/status.h"

// Renders a result; the caller checks the stream.
typedef void report_writer(const struct result *result, FILE *file);

report_writer report_write_header;    // what runs, one fact a line, each after "# "
report_writer report_write_result;    // the verdict; the figures where they are comparable
report_writer report_write_json;
report_writer report_write_steps;    // steps.csv
report_writer report_write_ranks;    // ranks.csv
report_writer report_write_html;     // self-contained: no scripts, nothing from a network

// "completed step: 0, seconds: 1.234, ..."
void report_write_step(const struct result *result, const struct result_step *step, FILE *file);

// Creates OUTPUT/<config>/<precision>/<ranks>/<run id>/ and names it in folder. The folder is new: nothing is ever
// overwritten. Errors here and below are EXIT_OUTPUT and name path and reason.
status report_create_folder(const struct result *result, const char *output, char *folder, size_t bytes);

// Writes a whole file under a temporary name, then renames it: a file under its final name is complete.
status report_write_bytes(const char *folder, const char *name, const void *data, size_t bytes);
status report_write_file(const char *folder, const char *name, report_writer *write, const struct result *result);

// Prints to stdout, at once.
status report_print(report_writer *write, const struct result *result);

// result.json, steps.csv, ranks.csv, report.html
status report_write_files(const char *folder, const struct result *result);

#endif

// SPDX-License-Identifier: MIT
// Runs command lines of gswbench in the test's own process.
#ifndef GSWBENCH_COMMAND_H
#define GSWBENCH_COMMAND_H

#include "gswbench/cli.h"

// The shipped configurations, and what the latest command printed.
extern const char        *configs;
extern char               output[1 << 20];
extern struct text_buffer errors;

// Runs "gswbench LINE"; what it prints is in output and errors.
status run(const char *line);
void   expect_output(const char *part);
void   expect_success(const char *line);
void   expect_error(const char *line, int exit_code, const char *text);

#endif

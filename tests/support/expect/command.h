// SPDX-License-Identifier: MIT
// Runs gswbench command lines in the process of the test.
#pragma once

#include "gswbench/cli.h"
#include "line.h"

// configs is the folder of the shipped configurations. output and errors have the text of the latest command.
extern const char        *configs;
extern char               output[1 << 20];
extern struct text_buffer errors;

// Runs "gswbench LINE" and captures its output and errors.
status run(const char *line);
void   expect_output(const char *part);    // joins the lines of wrapped rows
void   expect_80_columns(void);            // lines with a path may be longer
void   expect_success(const char *line);
void   expect_error(const char *line, int exit_code, const char *text);

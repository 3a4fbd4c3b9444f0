// SPDX-License-Identifier: MIT
// Runs the command line: finds the command, parses its flags, runs it.
#pragma once

#include "gswbench/status.h"
#include "gswbench/text.h"

// Runs the command in argv; output goes to stdout. If a configuration has several errors, `errors` receives the lines
// to print before the text of the returned status. The caller prints both and frees `errors`.
status cli_run(int argc, char *const argv[], struct text_buffer *errors);

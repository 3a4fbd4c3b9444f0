// SPDX-License-Identifier: MIT
// The command line: finds the command, parses its flags, runs it.
#ifndef GSWBENCH_CLI_H
#define GSWBENCH_CLI_H

#include "gswbench/status.h"
#include "gswbench/text.h"

// Runs the command that argv names; results go to stdout. errors receives the lines that belong before the returned
// status: a config may have more errors than a status holds. The caller prints both and frees errors.
status cli_run(int argc, char *const argv[], struct text_buffer *errors);

#endif

// SPDX-License-Identifier: MIT
// predict --sweep.
#ifndef GSWBENCH_CLI_SWEEP_H
#define GSWBENCH_CLI_SWEEP_H

#include "internal.h"

// output: folder for the predictions and sweep.html; NULL: none.
status sweep_print(const struct job_selection *arguments, const char *output, bool json, struct text_buffer *errors);

#endif

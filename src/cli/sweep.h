// SPDX-License-Identifier: MIT
// Output of predict --sweep.
#ifndef GSWBENCH_CLI_SWEEP_H
#define GSWBENCH_CLI_SWEEP_H

#include "gswbench/sweep.h"
#include "internal.h"

// output: folder for the predictions and sweep.html; NULL: none.
status sweep_print(const struct job_selection *arguments, const char *output, bool json, struct text_buffer *errors);

// Returns the job with a layout of the sweep, or its own (SWEEP_OWN).
enum { SWEEP_OWN = -1 };
struct job sweep_job(const struct job *own, const struct sweep *sweep, int64_t layout);

// sweep_page.c: writes the predictions of the best layouts and of the job's own layout, each to its folder, and
// sweep.html. The best is written last, so that "latest" points to it.
status sweep_write(const char *output, const struct job *job, const struct sweep *sweep, const char *advice,
                   bool has_own);

#endif

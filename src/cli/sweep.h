// SPDX-License-Identifier: MIT
// What predict --sweep prints.
#ifndef GSWBENCH_CLI_SWEEP_H
#define GSWBENCH_CLI_SWEEP_H

#include "gswbench/sweep.h"
#include "internal.h"

// output: the folder for each layout's prediction and for the page of all, sweep.html; NULL: none.
status sweep_print(const struct job_selection *arguments, const char *output, bool json, struct text_buffer *errors);

// The job with a layout of the sweep, or its own.
enum { SWEEP_OWN = -1 };
struct job sweep_job(const struct job *own, const struct sweep *sweep, int64_t layout);

// sweep_page.c: a prediction of each of the best, and of the job's own layout where it has one, in folders of their
// own; and sweep.html. The best comes last, so that it is the latest.
status sweep_write(const char *output, const struct job *job, const struct sweep *sweep, const char *advice,
                   bool has_own);

#endif

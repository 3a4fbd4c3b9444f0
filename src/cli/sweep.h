// SPDX-License-Identifier: MIT
// What predict --sweep prints.
#ifndef GSWBENCH_CLI_SWEEP_H
#define GSWBENCH_CLI_SWEEP_H

#include "gswbench/sweep.h"
#include "internal.h"

status sweep_print(const struct job_selection *arguments, bool json, struct text_buffer *errors);

#endif

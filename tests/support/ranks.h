// SPDX-License-Identifier: MIT
// Jobs whose ranks are threads of the test, and ranks that report what this one does.
#pragma once

#include "gswbench/comm.h"

// Runs a function on every rank of a job, at most 16.
typedef void rank_function(struct comm *comm, void *context);
void         ranks_run(int ranks, rank_function *run, void *context);

// gather_all of a job in which every rank reports the same.
void ranks_report_the_same(struct comm *comm, const void *in, void *out, int64_t bytes);

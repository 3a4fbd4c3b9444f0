// SPDX-License-Identifier: MIT
// Runs jobs whose ranks are threads of the test, and imitates ranks that report the same as this one.
#pragma once

#include "gswbench/comm.h"

// Runs a function on each rank of a job of at most 16 ranks.
typedef void rank_function(struct comm *comm, void *context);
void         ranks_run(int ranks, rank_function *run, void *context);

// A gather_all for jobs in which every rank reports the same.
void ranks_report_the_same(struct comm *comm, const void *in, void *out, int64_t bytes);

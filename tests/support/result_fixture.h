// SPDX-License-Identifier: MIT
// A made-up run of 64 ranks whose figures are those of a published table.
#ifndef GSWBENCH_RESULT_FIXTURE_H
#define GSWBENCH_RESULT_FIXTURE_H

#include "gswbench/report.h"

void fixture_open(struct result *result);

// Texts that break out of JSON, CSV, HTML or a terminal where they are not made safe.
void fixture_poison(struct result *result);

// What a format makes of a result. The caller frees.
char *fixture_render(report_writer *write, const struct result *result);

#endif

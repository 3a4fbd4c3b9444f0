// SPDX-License-Identifier: MIT
// Makes the result of a synthetic run of 64 ranks, with the numbers of a published table.
#pragma once

#include "gswbench/report.h"

void fixture_open(struct result *result);

// Texts that break out of JSON, CSV, HTML or a terminal unless they are escaped.
void fixture_poison(struct result *result);

// Renders a result in a format. The caller frees the text.
char *fixture_render(report_writer *write, const struct result *result);

// Returns the result as result.json has it. The caller owns the reference.
json_t *fixture_json(const struct result *result);

// Gives the result this number of ranks, two per host. Each has an H100 that was observed in 40 samples: SM clock 1755
// MHz, 690 of 700 W, 18 NVLinks, 8000 J. Rank r has PCI bus r + 1.
void fixture_observe(struct result *result, int64_t ranks);

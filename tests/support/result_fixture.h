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

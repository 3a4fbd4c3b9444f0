// SPDX-License-Identifier: MIT
// Filter for published rows.
#ifndef GSWBENCH_CLI_ROW_FILTER_H
#define GSWBENCH_CLI_ROW_FILTER_H

#include <stdbool.h>

#include "internal.h"

// clang-format off
#define FILTER_FLAGS(owner, field) \
    TEXT_FLAG    (owner, field.gpu, "--gpu", "NAME", "only rows for GPUs whose name starts with NAME, e.g. b200"), \
    TEXT_FLAG    (owner, field.model, "--model", "NAME", "only rows of models whose name contains NAME, e.g. llama3"), \
    TEXT_FLAG    (owner, field.precision, "--precision", "TYPE", "only rows in bf16, fp8 or fp32"), \
    TEXT_FLAG    (owner, field.software, "--software", "NAME", "only rows of software whose name contains NAME, e.g. nemo")
// clang-format on

// NULL: no restriction.
struct row_filter {
    const char *gpu, *model, *precision, *software;
};

// folder.c
bool cli_wants_row(const struct row_filter *filter, const struct config *config);

#endif

// SPDX-License-Identifier: MIT
// Output of predict beyond its table.
#ifndef GSWBENCH_CLI_PREDICT_H
#define GSWBENCH_CLI_PREDICT_H

#include "gswbench/predict_row.h"
#include "internal.h"

// predict_values.c: values that a prediction uses, and the effect of each spread on the step.
void predict_print_values(const struct config *config, const struct predict_range *range);

// predict_json.c: a predicted row, and the document of several rows.
json_t *predict_describe(const struct predict_row *row);
void    predict_print_json(json_t *list);

#endif

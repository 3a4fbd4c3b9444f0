// SPDX-License-Identifier: MIT
// What predict prints besides its lines.
#ifndef GSWBENCH_CLI_PREDICT_H
#define GSWBENCH_CLI_PREDICT_H

#include "gswbench/predict_row.h"
#include "internal.h"

// predict_values.c: the values that the prediction rests on, and what the spread of each makes of the step.
void predict_print_values(const struct config *config, const struct predict_range *range);

// predict_json.c: a predicted row for programs, and the document of several.
json_t *predict_describe(const struct predict_row *row);
void    predict_print_json(json_t *list);

#endif

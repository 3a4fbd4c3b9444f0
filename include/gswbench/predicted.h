// SPDX-License-Identifier: MIT
// Turns a prediction into a result, so that report, list and compare treat it as a run.
#pragma once

#include <stdbool.h>

#include "gswbench/output.h"
#include "gswbench/predict.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// Predicts the job of a row and fills a zeroed result. The row's visitor is called for each pipeline stage. Returns
// row->support if the job cannot be predicted.
status predicted_compute(struct result *result, struct predict_row *row, bool wants_range);

// Writes the result and the job's configuration into a new folder below output, with the file names of a run.
status predicted_write(struct output_folder *folder, struct result *result, const struct job *job, const char *output);

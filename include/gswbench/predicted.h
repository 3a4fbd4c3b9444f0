// SPDX-License-Identifier: MIT
// A prediction as a result, which is compared, listed and shown like that of a run.
#ifndef GSWBENCH_PREDICTED_H
#define GSWBENCH_PREDICTED_H

#include <stdbool.h>

#include "gswbench/output.h"
#include "gswbench/predict_row.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// Computes the row, whose visitor sees the stages, and fills a zeroed result of it. Where the row cannot be predicted,
// its support says why, and so does this.
status predicted_compute(struct result *result, struct predict_row *row, bool wants_range);

// Writes it into a folder of its own below output, as a run does, with the job's configuration.
status predicted_write(struct output_folder *folder, struct result *result, const struct job *job, const char *output);

#endif

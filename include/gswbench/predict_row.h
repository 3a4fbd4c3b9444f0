// SPDX-License-Identifier: MIT
// A job's prediction beside what was published of it.
#ifndef GSWBENCH_PREDICT_ROW_H
#define GSWBENCH_PREDICT_ROW_H

#include <stdbool.h>

#include "gswbench/job.h"
#include "gswbench/predict.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

struct predict_row {
    struct job           job;
    status               support;    // why there is no prediction
    struct prediction    prediction;
    struct predict_range range;    // percent is NaN: not asked for
    struct text_buffer   warnings;
    double               tokens_per_second, mfu;
    double               published_seconds, error_percent;      // NaN: not published
    double               memory_bytes, memory_error_percent;    // as the published figure counts; NaN: none

    struct predict_explanation explanation;    // its visit is the caller's
    char                       layout[256];
    bool                       fits;    // the device's memory
};

// Predicts the row's job, which is read already. The caller frees the warnings.
void predict_row_compute(struct predict_row *row, bool wants_range);

#endif

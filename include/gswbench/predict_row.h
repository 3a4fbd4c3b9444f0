// SPDX-License-Identifier: MIT
// Predicts a job and compares it with its published result.
#pragma once

#include <stdbool.h>

#include "gswbench/job.h"
#include "gswbench/predict.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

struct predict_row {
    struct job           job;
    status               support;    // why the job cannot be predicted
    struct prediction    prediction;
    struct predict_range range;    // percent is NaN if not requested
    struct text_buffer   warnings;
    double               tokens_per_second, mfu;
    double               published_seconds, error_percent;      // NaN: not published
    double               memory_bytes, memory_error_percent;    // allocated or reserved, as published; NaN: none

    struct predict_explanation explanation;    // the caller may set visit
    char                       layout[256];
    bool                       fits;    // gswbench's plan fits the device
    bool                       is_program_fit;
    const bool                *program_fits;    // is_program_fit; NULL: the program's memory is not modelled
};

// Predicts row->job, which the caller has read. The caller frees row->warnings.
void predict_row_compute(struct predict_row *row, bool wants_range);

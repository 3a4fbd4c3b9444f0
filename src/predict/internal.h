// SPDX-License-Identifier: MIT
// A simulated job and what is said of it.
#ifndef GSWBENCH_PREDICT_INTERNAL_H
#define GSWBENCH_PREDICT_INTERNAL_H

#include "gswbench/job.h"
#include "gswbench/measured.h"
#include "gswbench/predict.h"
#include "gswbench/text.h"

// explain.c: fills the explanation's waterfall, and writes its timeline of every stage's first rank.
struct explained {
    const struct machine          *machine;
    const struct predict_pipeline *pipeline;
    const struct actor_time       *times;    // with tasks
};
void explain_pipeline(struct predict_explanation *explanation, const struct prediction *prediction,
                      const struct explained *explained);

// warnings.c: a line for each thing that makes the prediction doubtful or the job slow.
void predict_warn(const struct job *job, const struct prediction *prediction, const struct measured_ops *measured,
                  struct text_buffer *warnings);

#endif

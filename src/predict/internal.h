// SPDX-License-Identifier: MIT
// A simulated job and what is said of it.
#ifndef GSWBENCH_PREDICT_INTERNAL_H
#define GSWBENCH_PREDICT_INTERNAL_H

#include "gswbench/predict.h"

// explain.c: fills the explanation's waterfall, and writes its timeline of every stage's first rank.
struct explained {
    const struct machine     *machine;
    const struct predict_job *job;
    const struct actor_time  *times;    // with tasks
};
void explain_job(struct predict_explanation *explanation, const struct prediction *prediction,
                 const struct explained *explained);

#endif

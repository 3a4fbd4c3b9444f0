// SPDX-License-Identifier: MIT
// Selects the cuDNN plan of an attention op. A finalized plan may still fail to execute, so plans are tried.
#ifndef GSWBENCH_CUDA_ATTENTION_TRIAL_H
#define GSWBENCH_CUDA_ATTENTION_TRIAL_H

#include "cudnn_attention.h"
#include "internal.h"

// Runs the plans on scratch operands and selects the fastest, timed now or in an earlier run. In deterministic mode it
// selects the first one that runs. Fails if none does; EXIT_MEMORY or EXIT_OUTPUT mean that plans could not be tried.
status attention_trial(struct cuda *cuda, struct cudnn_attention *cudnn, struct cudnn_entry *entry,
                       const struct op *op);

void attention_trial_name(const struct cuda *cuda, struct cudnn_attention *cudnn, const struct op *op,
                          char problem[GEMM_PROBLEM_BYTES]);

#endif

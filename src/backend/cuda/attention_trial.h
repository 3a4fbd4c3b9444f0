// SPDX-License-Identifier: MIT
// Which of cuDNN's plans an attention op is run with: that it was made is no proof that it runs.
#ifndef GSWBENCH_CUDA_ATTENTION_TRIAL_H
#define GSWBENCH_CUDA_ATTENTION_TRIAL_H

#include "cudnn_attention.h"
#include "internal.h"

// Runs the plans on operands of its own and takes the fastest, timed now or in an earlier run; where algorithms are
// taken by rule, the first that runs. Fails when none does; with EXIT_MEMORY or EXIT_OUTPUT when it could not be tried.
status attention_trial(struct cuda *cuda, struct cudnn_attention *cudnn, struct cudnn_entry *entry,
                       const struct op *op);

// What the op is called in the cache.
void attention_trial_name(const struct cuda *cuda, struct cudnn_attention *cudnn, const struct op *op,
                          char problem[GEMM_PROBLEM_BYTES]);

#endif

// SPDX-License-Identifier: MIT
// Pipeline parallelism: runs all microbatches through this rank's chunks.
#ifndef GSWBENCH_BUILD_PIPELINE_H
#define GSWBENCH_BUILD_PIPELINE_H

#include "gswbench/builder.h"

struct schedule_shape pipeline_shape(const struct plan *plan);
int64_t               pipeline_stage(const struct plan *plan);
// Whether the last stage has a copy of the embedding table, because it reads the table and the first stage has it.
bool pipeline_copies_embedding(const struct plan *plan);
void pipeline_append(struct builder *builder);

#endif

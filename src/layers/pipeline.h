// SPDX-License-Identifier: MIT
// The chunks of the model by place, and every microbatch through those of this rank.
#ifndef GSWBENCH_LAYERS_PIPELINE_H
#define GSWBENCH_LAYERS_PIPELINE_H

#include "builder.h"

struct schedule_deal  pipeline_deal(const struct plan *plan);
struct schedule_shape pipeline_shape(const struct plan *plan);
int64_t               pipeline_stage(const struct plan *plan);
void                  pipeline_append(struct builder *builder);

#endif

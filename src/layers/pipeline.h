// SPDX-License-Identifier: MIT
// The chunks of the model by place, and every microbatch through those of this rank.
#ifndef GSWBENCH_LAYERS_PIPELINE_H
#define GSWBENCH_LAYERS_PIPELINE_H

#include "builder.h"

struct schedule_shape pipeline_shape(const struct plan *plan);
int64_t               pipeline_stage(const struct plan *plan);
// Whether the last stage has a copy of the embedding's table: what ends the model reads it, and it is on another stage.
bool pipeline_copies_embedding(const struct plan *plan);
void pipeline_append(struct builder *builder);

#endif

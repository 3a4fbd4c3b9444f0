// SPDX-License-Identifier: MIT
// Rows of the embedding table, for those who read it: the model's beginning, the head where it is tied to it, and
// layers that predict further tokens.
#ifndef GSWBENCH_LAYERS_EMBEDDING_H
#define GSWBENCH_LAYERS_EMBEDDING_H

#include "kind.h"

enum { WEIGHT_TABLE = WEIGHT_OWN, WEIGHT_POSITIONS };

int32_t embedding_table(const struct builder *builder);    // a weight, or its copy on the stage of the head
// The rows [S, hidden] of these tokens, and the gradient of the table from that of the rows.
int32_t embedding_rows(struct builder *builder, int32_t tokens);
void    embedding_gradient(struct builder *builder, int32_t tokens, int32_t gradient);

#endif

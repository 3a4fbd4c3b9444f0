// SPDX-License-Identifier: MIT
// Declares the functions that the files of src/build call in each other.
#pragma once

#include "gswbench/layer_kind.h"

// Determines the sublayers of every block.
void block_describe_all(struct builder *builder);
// Declares the weights of this rank's chunks in units (weights.c).
void weights_declare(struct builder *builder);
// Number of parts of each pass of a block. All but the last end at an expert all-to-all.
int block_parts(const struct builder *builder, int64_t place);
// Appends one part of the forward pass. The last part returns the residual stream, or the normalised stream if the
// block ends in a loss.
struct residual_stream block_forward(struct builder *builder, int64_t place, struct residual_stream in, int part);
// Appends one part of the backward pass. gradient: result of the previous part. The last part returns the gradient of
// the block's input. Gradients of experts are reduced as soon as they are complete, to overlap with the remaining
// parts.
int32_t block_backward(struct builder *builder, int64_t place, int32_t gradient, int part);
// Call around the backward pass. The end reduces the other gradients.
void block_begin_gradients(struct builder *builder, int64_t place);
void block_end_gradients(struct builder *builder, int64_t place);

// The layer kinds, and the sequence of layers in a model.
extern const struct layer_kind *const layer_kinds[];    // NULL-terminated

// Consecutive layers with the same kinds.
struct layer_run {
    int64_t                  layers;
    int32_t                  count;
    const struct layer_kind *kinds[BLOCK_SUBLAYERS];
};

enum { PATTERN_RUNS_MAX = 256 };
struct layer_pattern {
    struct layer_run runs[PATTERN_RUNS_MAX];
    int              count;
    struct layer_run prediction;    // MTP modules, each with the kinds of the last layer
};

// [model] pattern, or the default.
const char *pattern_of(const struct model_config *model);

// Parses the pattern. After an error, pattern is undefined.
status pattern_read(struct layer_pattern *pattern, const struct model_config *model);

// Pipeline parallelism: runs all microbatches through this rank's chunks.
int64_t pipeline_stage(const struct plan *plan);
// Whether the last stage has a copy of the embedding table, because it reads the table and the first stage has it.
bool pipeline_copies_embedding(const struct plan *plan);
void pipeline_append(struct builder *builder);

// End of a step: gradient norm, clipping, optimizer.
void optimizer_append(struct builder *builder);
void muon_append(struct builder *builder, int32_t unit);    // the update of a unit of matrices

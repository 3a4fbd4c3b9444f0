// SPDX-License-Identifier: MIT
// Declares the functions that the files of src/build share.
#pragma once

#include "gswbench/layer_kind.h"

// Sets the sublayers of every block: of each layer and MTP module, the embedding and the head.
void block_describe_all(struct builder *builder);
// Declares the weights of this rank's pipeline chunks, grouped into FSDP units.
void weights_declare(struct builder *builder);
// Returns the number of parts of a block's forward pass; its backward pass has the same number. place: index in
// builder->blocks. Every part except the last ends at an expert all-to-all.
int block_parts(const struct builder *builder, int64_t place);
// Appends one part of a block's forward pass. The last part returns the residual stream or, if the block ends in a
// loss, the normalised input of the output layer.
struct residual_stream block_forward(struct builder *builder, int64_t place, struct residual_stream in, int part);
// Appends one part of a block's backward pass. gradient: result of the previous part. The last part returns the
// gradient of the block's input. Gradients of experts are reduced as soon as they are complete, to overlap with the
// remaining parts.
int32_t block_backward(struct builder *builder, int64_t place, int32_t gradient, int part);
// Call before and after a block's backward pass. block_end_gradients reduces all gradients except the experts'.
void block_begin_gradients(struct builder *builder, int64_t place);
void block_end_gradients(struct builder *builder, int64_t place);

// All layer kinds, such as attention, MLP and experts.
extern const struct layer_kind *const layer_kinds[];    // NULL-terminated

// A run of consecutive layers that have the same sublayers. count: number of sublayers in a layer.
struct layer_run {
    int64_t                  layers;
    int32_t                  count;
    const struct layer_kind *kinds[BLOCK_SUBLAYERS];
};

enum { PATTERN_RUNS_MAX = 256 };
struct layer_pattern {
    struct layer_run runs[PATTERN_RUNS_MAX];
    int              count;
    struct layer_run prediction;    // layers: number of MTP modules; kinds: sublayers of each
};

// Returns the option [model] pattern, or its default if it is empty.
const char *pattern_of(const struct model_config *model);

// Parses the pattern. After an error, pattern is undefined.
status pattern_read(struct layer_pattern *pattern, const struct model_config *model);

// Returns the pipeline stage of the plan's rank.
int64_t pipeline_stage(const struct plan *plan);
// Returns whether the last stage has a copy of the embedding table: it reads the table (tied head or MTP modules), and
// the first stage is another rank.
bool pipeline_copies_embedding(const struct plan *plan);
void pipeline_append(struct builder *builder);

// optimizer_append appends the end of a step: gradient norm, clipping and optimizer. muon_append appends Muon's update
// of the matrices of an FSDP unit.
void optimizer_append(struct builder *builder);
void muon_append(struct builder *builder, int32_t unit);

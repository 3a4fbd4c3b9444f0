// SPDX-License-Identifier: MIT
// The layer kinds, and the sequence of layers in a model.
#ifndef GSWBENCH_BUILD_PATTERN_H
#define GSWBENCH_BUILD_PATTERN_H

#include "gswbench/layer_kind.h"

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

#endif

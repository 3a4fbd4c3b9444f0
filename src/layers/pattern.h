// SPDX-License-Identifier: MIT
// The table of kinds, and which layers of a model are made of which.
#ifndef GSWBENCH_LAYERS_PATTERN_H
#define GSWBENCH_LAYERS_PATTERN_H

#include "kind.h"

extern const struct layer_kind *const layer_kinds[];    // ends with NULL

// Layers of one make that follow one another.
struct layer_run {
    int64_t                  layers;
    int32_t                  count;
    const struct layer_kind *kinds[BLOCK_SUBLAYERS];
};

enum { PATTERN_RUNS_MAX = 256 };
struct layer_pattern {
    struct layer_run runs[PATTERN_RUNS_MAX];
    int              count;
    struct layer_run prediction;    // the layers behind them that predict further tokens: each as the last of them
};

// [model] pattern, or the one that a model without has.
const char *pattern_of(const struct model_config *model);

// The layers of that pattern. What it reads when it fails is not to be used.
status pattern_read(struct layer_pattern *pattern, const struct model_config *model);

#endif

// SPDX-License-Identifier: MIT
// Attention sinks: a trained score per head that joins the softmax and has no value.
#ifndef GSWBENCH_LAYERS_SINK_H
#define GSWBENCH_LAYERS_SINK_H

#include "gswbench/layer_kind.h"

// Append nothing without sinks. sink_forward follows attention and updates its output and statistics. gradient: of the
// output.
void sink_forward(struct sublayer *sublayer);
void sink_backward(struct sublayer *sublayer, int32_t gradient);

#endif

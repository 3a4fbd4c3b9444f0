// SPDX-License-Identifier: MIT
// Sinks of attention: a score of each head that joins the sum of a query's exponentials and has no value.
#ifndef GSWBENCH_LAYERS_SINK_H
#define GSWBENCH_LAYERS_SINK_H

#include "kind.h"

// Both append nothing in a model without sinks. Forward: behind attention, whose output and statistics are the
// sublayer's by then; backward: gradient is that of the output.
void sink_forward(struct sublayer *sublayer);
void sink_backward(struct sublayer *sublayer, int32_t gradient);

#endif

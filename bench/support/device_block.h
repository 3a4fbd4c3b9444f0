// SPDX-License-Identifier: MIT
// Runs a training step of a model with one block and a small vocabulary on a GPU, and measures the times of its parts.
#pragma once

#include "device.h"
#include "gswbench/comm.h"
#include "gswbench/model.h"
#include "gswbench/plan.h"
#include "gswbench/step.h"

struct layer {
    const char *name;
    int64_t     hidden, heads, kv_heads, ffn, sequence, batch;
    double      forward, backward;    // published FLOP/s of attention, cuDNN 9.19 on H200
    double      utilization;          // expected MFU of the block in BF16
    double      fp8_utilization;
};

struct recipe {
    const char            *name;
    enum compute_precision compute;
    enum scaling_recipe    fp8;
};

struct device_block {
    struct device          *device;
    const struct layer     *layer;
    const struct recipe    *recipe;
    char                    name[96];
    struct plan             plan;
    const struct prepared **prepared;    // [plan.op_count]
    struct step            *step;
    struct comm             comm;
    struct local_hub       *hub;
    struct buffer (*buffers)[OP_OPERANDS];    // [plan.op_count]
    int32_t begin[2], end[2];                 // op ranges of the block: forward, backward
};

// Returns whether the op belongs to the block, and not to embedding, loss or optimizer.
bool is_of_block(const struct op *op);

void open_block(struct device_block *bench, struct device *device, const struct layer *layer,
                const struct recipe *recipe);
void close_block(struct device_block *bench);

// Repeats one op of the step, on its operands but without the other ops. Returns the median seconds.
double measure_alone(struct device_block *bench, int32_t index);

// Repeats the step. Sets medians, [count - 1], to the median seconds between one mark and the next. marks are op
// indices in ascending order.
void measure_marks(struct device_block *bench, const int32_t *marks, int32_t count, double *medians);

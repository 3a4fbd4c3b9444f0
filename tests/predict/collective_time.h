// SPDX-License-Identifier: MIT
// Times of collectives on a shipped machine.
#pragma once

#include "round_machine.h"
#include "shipped_machine.h"

static struct config  config;    // of the machine; each test reads it
static struct machine machine = {.hardware = &config.hardware, .software = &config.software};

// Returns the time of a collective in a group of `size` ranks whose numbers differ by `distance`.
static inline double group_seconds(enum op_kind kind, int64_t size, int64_t distance, double bytes)
{
    static int64_t    ranks[16384];
    struct tensor     tensor = {.format = FORMAT_BF16};
    struct plan_group group  = {.size = size, .ranks = ranks};
    struct plan       plan   = {.tensors = &tensor, .groups = &group, .mesh.world = size * distance};
    struct op         op     = {.kind = (uint8_t)kind, .shape.communication = {.elements = (int64_t)(bytes / 2.0)}};
    for (int64_t i = 0; i < size; i++) {
        ranks[i] = i * distance;
    }
    return predict_cost_op(&machine, &plan, &op).seconds;
}

static inline void expect_time(enum op_kind kind, int64_t size, int64_t distance, double bytes, double expected)
{
    expect_seconds(group_seconds(kind, size, distance, bytes), expected);
}

// SPDX-License-Identifier: MIT
// Totals over the ops of a plan: parameters, FLOPs, communication, bytes.
#pragma once

#include <stdint.h>

#include "gswbench/plan.h"

// Communication ops of a step that have the same kind, axes, format and size.
struct plan_communication {
    enum op_kind kind;
    uint32_t     axes;
    enum format  format;
    int64_t      elements;    // per op
    int64_t      group_size;
    int64_t      count;    // per step
};
enum { PLAN_COMMUNICATIONS_MAX = 256 };

struct account {
    int64_t                   parameters;            // of this rank's weights
    double                    flops[PHASE_COUNT];    // executed
    double                    hardware_flops;        // of the mesh per sequence, if all ranks execute these FLOPs
    int64_t                   ops[OP_COUNT];
    int64_t                   quantized_bytes;    // read and written by FP8 quantization
    struct plan_communication communications[PLAN_COMMUNICATIONS_MAX];
    int32_t                   communication_count;
    int64_t                   total_bytes;    // of all storages
};

void    plan_account(const struct plan *plan, struct account *account);
int64_t plan_quantized_bytes(const struct plan *plan);

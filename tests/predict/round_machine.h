// SPDX-License-Identifier: MIT
// A machine of round numbers, for which tests calculate costs by hand.
#pragma once

#include <criterion/criterion.h>

#include "gswbench/predict.h"

// Returns hardware that computes tiles at full rate. Memory has 1e12 bytes/s, links within a node of 8 have 1e11 and
// links between nodes 1e10. Latencies are marked as measured, so collectives have one protocol. There is no NVLS.
static inline struct hardware_config round_machine(void)
{
    struct hardware_config hardware;
    option_set_defaults(hardware_options, &hardware);
    hardware.multiprocessors          = 100;
    hardware.peak[RATE_BF16].value    = 1e15;
    hardware.memory_bandwidth.value   = 1e12;
    hardware.node_bandwidth.value     = 1e11;
    hardware.network_bandwidth.value  = 1e10;
    hardware.gemm_efficiency.value    = 1.0;
    hardware.gemm_prologue.value      = 256.0;
    hardware.gemm_prologue_fp8.value  = 1024.0;
    hardware.gemm_smoothing.value     = 0.5;
    hardware.gemm_smoothing_fp8.value = 0.5;
    hardware.gemm_gap_fp8.value       = 0.0;
    hardware.cast_efficiency.value    = 1.0;
    hardware.scale_efficiency.value   = 1.0;
    hardware.memory_efficiency.value  = 1.0;
    hardware.node_efficiency.value    = 1.0;
    hardware.network_efficiency.value = 1.0;
    hardware.kernel_gap.value         = 0.0;
    hardware.nvls_efficiency.value    = 0.0;
    hardware.node_latency.origin      = QUANTITY_MEASURED;
    return hardware;
}

// The machine with gswbench as its framework, and a plan whose first operands are BF16. The next call of round_new
// overwrites it.
struct round {
    struct tensor          tensors[4];
    struct plan            plan;
    struct hardware_config hardware;
    struct software_config software;
    struct machine         machine;
};

static inline struct round *round_new(void)
{
    static struct round round;
    round = (struct round){.hardware = round_machine(),
                           .plan     = {.tensors = round.tensors, .mesh.etp = 1},
                           .machine  = {.hardware = &round.hardware, .software = &round.software}};
    for (int i = 0; i < 4; i++) {
        round.tensors[i].format = FORMAT_BF16;
    }
    option_set_defaults(software_options, &round.software);
    return &round;
}

static inline double round_seconds(const struct round *round, const struct op *op)
{
    return predict_cost_op(&round->machine, &round->plan, op).seconds;
}

static inline void expect_seconds(double actual, double expected)
{
    cr_expect_float_eq(actual, expected, 1e-9 * expected, "%.12g, not %.12g", actual, expected);
}

static inline void expect_cost(const struct round *round, const struct op *op, double expected)
{
    expect_seconds(round_seconds(round, op), expected);
}

// Returns the time of a collective in a group of `size` ranks whose numbers differ by `distance`.
static inline double group_seconds(const struct machine *machine, enum op_kind kind, int64_t size, int64_t distance,
                                   double bytes)
{
    static int64_t    ranks[16384];
    struct tensor     tensor = {.format = FORMAT_BF16};
    struct plan_group group  = {.size = size, .ranks = ranks};
    struct plan       plan   = {.tensors = &tensor, .groups = &group, .mesh.world = size * distance};
    struct op         op     = {.kind = (uint8_t)kind, .shape.communication = {.elements = (int64_t)(bytes / 2.0)}};
    for (int64_t i = 0; i < size; i++) {
        ranks[i] = i * distance;
    }
    return predict_cost_op(machine, &plan, &op).seconds;
}

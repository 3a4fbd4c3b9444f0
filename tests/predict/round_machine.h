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

// The machine with gswbench as its framework, and a plan whose first operands are BF16: what the cost of an op depends
// on. It is initialised before each test of a suite with .init = init_round.
static struct {
    struct tensor          tensors[4];
    struct plan            plan;
    struct hardware_config hardware;
    struct software_config software;
    struct machine         machine;
} given;

static inline void init_round(void)
{
    given.hardware = round_machine();
    given.plan     = (struct plan){.tensors = given.tensors, .mesh.etp = 1};
    given.machine  = (struct machine){.hardware = &given.hardware, .software = &given.software};
    for (int i = 0; i < 4; i++) {
        given.tensors[i] = (struct tensor){.format = FORMAT_BF16};
    }
    option_set_defaults(software_options, &given.software);
}

static inline struct cost cost_of(const struct op *op)
{
    return predict_cost_op(&given.machine, &given.plan, op);
}

static inline double seconds_of(const struct op *op)
{
    return cost_of(op).seconds;
}

static inline void expect_seconds(double actual, double expected)
{
    cr_expect_float_eq(actual, expected, 1e-9 * expected, "%.12g, not %.12g", actual, expected);
}

static inline void expect_cost(const struct op *op, double expected)
{
    expect_seconds(seconds_of(op), expected);
}

// An op of forward attention.
#define ATTENTION(batch_, sequence_, heads_, kv_heads_, head_dim_, ...)                                                \
    (struct op)                                                                                                        \
    {                                                                                                                  \
        .kind = OP_ATTENTION_FORWARD, .shape.attention = {                                                             \
            .batch    = batch_,                                                                                        \
            .sequence = sequence_,                                                                                     \
            .heads    = heads_,                                                                                        \
            .kv_heads = kv_heads_,                                                                                     \
            .head_dim = head_dim_,                                                                                     \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

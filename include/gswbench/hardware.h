// SPDX-License-Identifier: MIT
// The machine that results are set against: peaks, memory, links.
#ifndef GSWBENCH_HARDWARE_H
#define GSWBENCH_HARDWARE_H

#include <stdint.h>

#include "gswbench/option.h"

// [hardware]
struct hardware_config {
    char    profile[64];    // configs/hardware/NAME.ini, or "none"
    int64_t gpus_per_node;
    double  memory_gb;              // of one device; 0: unknown
    double  peak_bf16, peak_fp8;    // dense FLOP/s of one device; 0: unknown
    // What predictions need besides. Rates of one device in one direction, by the data sheet; 0: unknown.
    int64_t multiprocessors;
    double  memory_bandwidth, node_bandwidth, network_bandwidth;
    // How much of these a step gets, and what it loses besides; docs/method.md says where each is used.
    double gemm_efficiency, gemm_prologue, gemm_accumulate, gemm_smoothing;
    double attention_forward, attention_backward, attention_half_length;
    double memory_efficiency, kernel_gap;
    double node_efficiency, network_efficiency;
    double node_latency, network_latency, collective_latency;
    double contention, jitter, step_overhead;
};
extern const struct option hardware_options[];

#endif

// SPDX-License-Identifier: MIT
// The hardware that results are compared with and predictions are made for: peaks, memory, links.
#ifndef GSWBENCH_HARDWARE_H
#define GSWBENCH_HARDWARE_H

#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/option.h"

// [hardware]
struct hardware_config {
    char    profile[112];                  // configs/hardware/NAME.ini, or a path, or "none"
    char    device[64];                    // as its driver names it; "": that of no device
    int64_t gpus_per_node, link_domain;    // 0: the domain is the node
    // What a data sheet says of one device, 0 where unknown: memory in GB, dense FLOP/s, bytes/s in one direction.
    struct quantity memory_gb;
    struct quantity peak[RATE_COUNT];    // "peak_fp32", ...
    int64_t         multiprocessors;
    struct quantity memory_bandwidth, node_bandwidth, network_bandwidth;
    struct quantity storage_bandwidth;    // of the job
    // How much of these a step gets, and what it loses besides; docs/method.md says where each is used.
    struct quantity power_share, gemm_efficiency, gemm_efficiency_fp8, gemm_prologue, gemm_prologue_fp8,
        gemm_accumulate, gemm_smoothing;
    struct quantity attention_forward, attention_backward, attention_half_length;
    struct quantity attention_fp8_forward, attention_fp8_backward;    // pairs of a query and a key a second
    struct quantity memory_efficiency, kernel_gap, launch_share, launch_alone;
    struct quantity node_efficiency, exchange_efficiency, network_efficiency, channel_bandwidth, nvls_efficiency;
    struct quantity node_latency, network_latency, collective_latency;
    struct quantity contention, jitter, step_overhead;
    // Of ranks that compute on cores.
    int64_t         cores, core_ranks;
    struct quantity transfer_delay;
};
extern const struct option hardware_options[];

// How many consecutive ranks of the job reach each other by node_bandwidth: those of a node, or of its share of a
// domain.
int64_t hardware_domain(const struct hardware_config *hardware, int64_t world);

#endif

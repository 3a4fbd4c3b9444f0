// SPDX-License-Identifier: MIT
// Describes the machine for predictions and comparisons: peaks, memory, links. configs/hardware has the profiles.
#pragma once

#include <math.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/option.h"

// Collectives whose times within a node are measured.
enum node_collective {
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVES
};
enum {
    COLLECTIVE_GROUPS   = 3,     // group sizes: 2, 4 and 8 ranks
    COLLECTIVE_SIZES    = 21,    // message sizes: from COLLECTIVE_SMALLEST bytes on, each twice the one before
    COLLECTIVE_SMALLEST = 512,
};
// Measured seconds of collectives within a node. 0: not measured.
struct collective_times {
    double seconds[COLLECTIVES][COLLECTIVE_GROUPS][COLLECTIVE_SIZES];
};

// [hardware]
struct hardware_config {
    char    profile[1024];                 // configs/hardware/NAME.ini, or a path, or "none"
    char    device[64];                    // the driver's name of the GPU; "": a CPU rank
    int64_t gpus_per_node, link_domain;    // link_domain: GPUs connected by NVLink, also across nodes; 0: gpus_per_node
    // Per device, from the data sheet (except storage_bandwidth and gpu_hour_dollars); 0: unknown. Memory in GB, dense
    // FLOP/s, bandwidths in bytes/s per direction.
    struct quantity memory_gb;
    struct quantity peak[RATE_COUNT];    // by enum rate; options "peak_fp32", ...
    int64_t         multiprocessors;
    struct quantity memory_bandwidth, node_bandwidth, network_bandwidth;
    struct quantity storage_bandwidth;    // bytes/s at which all ranks together save or load a checkpoint
    double          gpu_hour_dollars;     // cost of a device for an hour; 0: unknown
    // Efficiencies and overheads; docs/predictions.md says where each is used.
    struct quantity power_share, gemm_efficiency, gemm_efficiency_fp8, gemm_efficiency_fp4, gemm_prologue,
        gemm_prologue_fp8, gemm_prologue_fp4, gemm_accumulate, gemm_smoothing, gemm_smoothing_fp8, gemm_gap_fp8,
        gemm_split_accumulation, gemm_mxfp8, gemm_tile_traffic, gemm_memory_exposed;
    struct quantity attention_forward, attention_backward, attention_half_length;
    struct quantity attention_heads_64, attention_heads_192, attention_heads_256;    // rate relative to head_dim 128
    struct quantity ampere_share;
    struct quantity attention_fp8_forward, attention_fp8_backward;    // query-key pairs per second
    struct quantity memory_efficiency, general_efficiency, cast_efficiency, scale_efficiency, kernel_gap, launch_share,
        launch_alone;
    struct quantity node_efficiency, exchange_efficiency, network_efficiency, channel_bandwidth, nvls_efficiency;
    struct quantity node_latency, network_latency, collective_latency, node_collective_latency;
    char            collectives[32];    // GPU whose times in configs/hardware/collectives.csv apply, or "none"
    struct quantity contention, jitter;
    // Error of the cost model itself, for models without and with experts: one standard deviation in percent. Its
    // square is added to the squares of the errors that the uncertainties of the values above cause.
    struct quantity prediction_error, expert_prediction_error;
    // CPU ranks: cores that core_ranks ranks share; seconds that a collective takes longer while all of them compute.
    int64_t         cores, core_ranks;
    struct quantity communication_delay;
    // Read from collectives.csv.
    struct collective_times collective_times;
};

// Dollars for a million tokens; NaN if hour_dollars is unknown (0).
static inline double hardware_token_dollars(double hour_dollars, int64_t devices, double tokens_per_second)
{
    return hour_dollars > 0.0 ? hour_dollars / 3600.0 * (double)devices / tokens_per_second * 1e6 : NAN;
}
extern const struct option hardware_options[];

// Returns the size, in ranks, of the groups that communicate at node_bandwidth (NVLink): a node, or if link_domain is
// larger, the largest number of whole nodes within link_domain that divides the job evenly.
int64_t hardware_domain(const struct hardware_config *hardware, int64_t world);
// A CUDA context with all loaded kernels takes 300 MB to 1 GB per process (NAIRR, resource guides).
enum { CUDA_CONTEXT_MIB = 650 };
// Returns the memory of this context on a GPU, 0 on CPUs.
int64_t hardware_context_bytes(const struct hardware_config *hardware);
// Returns whether the device has this much memory; true if [hardware] gives no memory size.
bool hardware_holds(const struct hardware_config *hardware, int64_t bytes);

// SPDX-License-Identifier: MIT
// Describes the modelled framework: how its steps differ from a plan of gswbench. src/predict/cost_software.c applies
// the costs, footprint.c the memory; docs/frameworks.md explains each value.
#pragma once

#include <stdint.h>

#include "gswbench/option.h"

// Which ops of a layer with experts the framework launches as CUDA graphs. ROUTER: the router, the norm before it,
// shared experts and dispatch preprocessing. ATTENTION: all but the all-to-alls of tokens and the routed experts.
enum launch_graphs { LAUNCH_GRAPHS_NONE, LAUNCH_GRAPHS_ROUTER, LAUNCH_GRAPHS_ATTENTION };

// Where a token's gates (router weights) scale the results of its experts. OUTPUT: at the outputs of experts. FUSED,
// SEPARATE: at the outputs of their activation, in the same kernel or in a separate one.
enum expert_gates { EXPERT_GATES_OUTPUT, EXPERT_GATES_FUSED, EXPERT_GATES_SEPARATE };

// Kernels of adapters in addition to their GEMMs. DROPOUT: dropout of the input, and its gradient. SUMS: the scaling
// and the additions, which GEMMs could do.
enum adapter_kernel { ADAPTER_KERNEL_DROPOUT, ADAPTER_KERNEL_SUMS };

// How a framework adds biases of experts, and how it runs the activations and RoPE of models with such biases. PLAN: as
// in the plan. SEPARATE: by general kernels, expert by expert. FUSED: biases by the GEMMs, RoPE by general kernels.
enum expert_biases { EXPERT_BIASES_PLAN, EXPERT_BIASES_SEPARATE, EXPERT_BIASES_FUSED };

// [software]; the defaults describe gswbench. software_options in src/config/software.c explains each option.
struct software_config {
    char profile[1024];    // configs/software/NAME.ini, or a path, or "gswbench"
    // Compute.
    struct quantity memory_bytes, cast_bytes, loss_bytes, optimizer_bytes, gemm_share, gemm_share_fp4, loss_rate,
        scan_rate, attention_forward, attention_backward;
    int64_t scale_kernels, fp8_gathers, fp8_attention, fp8_head, fp8_transposes_once, fp8_transposes, mxfp8_norms,
        frozen_transposes, fp8_activation_inputs, swizzle_kernels, separate_linears, head_norms, text_tokens;
    int64_t adapter_kernels;    // 1 << enum adapter_kernel
    // Collectives, and compute that is split for them.
    struct quantity fsdp_copies, tensor_copies, reduction_parts, fp8_reduction_stall, fp8_synchronization;
    int64_t         gather_blocks, reduce_parts, context_parts, nvls, pat, bucket_elements;
    // Layers with experts.
    struct quantity expert_bytes, expert_copies, expert_gap, expert_bandwidth, expert_exchange, expert_launch;
    int64_t         expert_nodes, expert_serial, expert_groups, router_kernels;
    int64_t         expert_biases, launch_graphs;    // enum expert_biases, enum launch_graphs
    struct quantity step_overhead;
    // How the framework's memory differs from the plan (enum footprint_part in predict.h).
    int64_t caching_allocator, gradient_placeholders, fp32_shards, second_gemms, keeps_unread, gather_pool,
        whole_gradients, pipeline_buffers, unfused_attention, attention_copies, dropout, weights_in_mxfp8,
        offloaded_layers;
    int64_t expert_gates;    // enum expert_gates
    double  logit_copies, parallel_logit_copies, workspace_mib, expert_workspace_mib, fragmentation;
};
extern const struct option software_options[];

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

// [software]; the defaults describe gswbench.
struct software_config {
    char profile[1024];    // configs/software/NAME.ini, or a path, or "gswbench"
    // Factors relative to gswbench: of memory traffic (_bytes), and of the rate of GEMMs: gemm_share, and in FP4
    // gemm_share * gemm_share_fp4.
    struct quantity memory_bytes, cast_bytes, loss_bytes, optimizer_bytes, gemm_share, gemm_share_fp4;
    struct quantity loss_rate;                // upper limit of logits/s for the loss and its gradient, on any device
    struct quantity scan_rate;                // upper limit of FLOP/s of scans, on any device
    int64_t         scale_kernels;            // kernels per FP8 cast that computes its scale first
    int64_t         fp8_gathers;              // casts inputs to FP8 before the all-gather over tp, not after it
    int64_t         fp8_attention;            // attention runs in FP8 if linears do
    int64_t         fp8_head;                 // the head runs in FP8 if linears do
    int64_t         fp8_transposes_once;      // keeps transposed weights in FP8 for all microbatches of a step
    int64_t         fp8_transposes;           // makes transposed FP8 copies also on GPUs that do not need them
    int64_t         mxfp8_norms;              // norms write copies in MXFP8 instead of BF16
    int64_t         frozen_transposes;        // transposes stored frozen weights in each backward pass
    int64_t         fp8_activation_inputs;    // keeps the inputs of MLP activations in FP8, cast by separate kernels
    int64_t         swizzle_kernels;          // separate kernels arrange scales of MXFP8 and NVFP4 for GEMMs
    int64_t         adapter_kernels;          // 1 << enum adapter_kernel
    // With tp_overlap. A GEMM that gathers its input computes the rows of gather_blocks ranks of tp at a time. If a
    // GEMM's output is reduced, the GEMM is split into reduce_parts GEMMs that do not accumulate; 0: as in the plan.
    int64_t         gather_blocks, reduce_parts;
    int64_t         separate_linears;    // q, k and v are separate GEMMs, and so are gate and up of dense MLPs
    struct quantity fsdp_copies, tensor_copies;    // copies of a collective's buffer; compute waits for them
    // Upper limits of the rate of attention, relative to kernels with Ampere's instructions (hardware.ampere_share *
    // peak); 0: none.
    struct quantity attention_forward, attention_backward;
    int64_t         text_tokens;      // a sequence is packed from texts of this length; 0: it is one text
    int64_t         context_parts;    // cp attends to the keys of one rank at a time and merges the parts
    int64_t         nvls, pat;        // whether the framework's NCCL may use NVLS, and PAT
    // Number of collectives that reduce a layer's gradients. FP8 and FP4: part of their latency that stalls compute.
    struct quantity reduction_parts, fp8_reduction_stall;
    int64_t         bucket_elements;    // minimum elements that dp reduces or gathers in one collective
    int64_t         expert_nodes;       // a token crosses the network once per node, not once per expert
    int64_t         expert_serial;      // one all-to-all per layer, and compute waits for it
    int64_t         expert_groups;      // the experts of a rank are launched together
    int64_t         expert_biases;      // enum expert_biases
    int64_t         head_norms;         // separate kernels copy and normalise queries and keys
    int64_t         router_kernels;     // number of kernels of the router; the plan has one
    // Seconds that are not in the plan. Host time per pass of a layer with experts: expert_gap (1 + n) / 2. n: experts
    // per rank, or 1 in BF16 with expert_groups; twice as many in FP8 and FP4 without expert_groups.
    // fp8_synchronization: synchronization of all ranks after each microbatch with FP8.
    struct quantity expert_gap, fp8_synchronization, step_overhead;
    struct quantity expert_bandwidth;    // upper limit of bytes/s that the SMs of dispatch kernels move; 0: none
    struct quantity expert_exchange;     // extra seconds per byte of tokens that a rank receives
    struct quantity expert_launch;       // host time per launch in a layer with experts
    int64_t         launch_graphs;       // enum launch_graphs
    struct quantity expert_bytes;        // bytes of token permutation and unpermutation, relative to gswbench's
    struct quantity expert_copies;       // copies of the experts' rows in each pass, if a rank has several experts
    // How the framework's memory differs from the plan (enum footprint_part in predict.h).
    int64_t caching_allocator;    // allocates and frees memory per tensor, as PyTorch does
    int64_t gradient_placeholders, fp32_shards, second_gemms, keeps_unread, gather_pool, whole_gradients,
        pipeline_buffers, unfused_attention, attention_copies, dropout, weights_in_mxfp8;
    int64_t expert_gates;    // enum expert_gates
    int64_t offloaded_layers;
    double  logit_copies, parallel_logit_copies, workspace_mib, expert_workspace_mib;
    double  fragmentation;    // reserved but unusable memory, as a fraction of the allocator's other memory
};
extern const struct option software_options[];

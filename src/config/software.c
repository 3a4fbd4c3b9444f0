// SPDX-License-Identifier: MIT
// The [software] options.
#include "gswbench/software.h"

static const char *const graph_names[] = {"none", "router", "attention", NULL};

// clang-format off
const struct option software_options[] = {
    TEXT_OPTION    (software_config, profile, "gswbench", "software profile to read first: configs/software/NAME.ini, or a path with a /; gswbench: this program; in a profile, the one that it inherits from, without its [fit]"),
    QUANTITY_OPTION(software_config, memory_bytes, "1", 0.1, 4, "memory traffic of memory-bound ops, relative to gswbench"),
    QUANTITY_OPTION(software_config, cast_bytes, "1", 0, 4, "memory traffic of casts to FP8, relative to gswbench"),
    INTEGER_OPTION (software_config, scale_kernels, "1", 1, 16, "kernels per FP8 cast that computes its scale first"),
    BOOLEAN_OPTION (software_config, fp8_gathers, "no", "tp gathers the inputs of FP8 GEMMs in FP8; no: ranks gather BF16 and then cast"),
    BOOLEAN_OPTION (software_config, fp8_attention, "no", "attention runs in FP8 where GEMMs do, forward and backward; no: in BF16"),
    BOOLEAN_OPTION (software_config, fp8_head, "no", "GEMMs of the output layer run in FP8 where those in blocks do; no: in BF16"),
    BOOLEAN_OPTION (software_config, fp8_transposes_once, "no", "FP8 weights are transposed in the first microbatch of a step; no: in each"),
    QUANTITY_OPTION(software_config, loss_bytes, "1", 0.1, 32, "memory traffic of the loss, relative to gswbench; higher if the program copies logits to fp32"),
    QUANTITY_OPTION(software_config, loss_rate, "0", 0, 1e18, "maximum logits per second of the loss and its gradient on any device; 0: limited by memory only"),
    QUANTITY_OPTION(software_config, optimizer_bytes, "1", 0.1, 32, "memory traffic of the optimizer, relative to gswbench; higher if it runs as several kernels"),
    QUANTITY_OPTION(software_config, gemm_share, "1", 0.1, 2, "GEMM rate of the program's library, relative to the device's rate"),
    QUANTITY_OPTION(software_config, fsdp_copies, "0", 0, 8, "on-device copies of tensors that fsdp gathers or reduces, while compute waits"),
    QUANTITY_OPTION(software_config, tensor_copies, "0", 0, 8, "on-device copies of tensors that tp gathers or reduces in collectives that overlap with no GEMM"),
    QUANTITY_OPTION(software_config, attention_forward, "0", 0, 1e18, "maximum FLOP/s of attention on any device, forward pass; 0: limited by the device only"),
    QUANTITY_OPTION(software_config, attention_backward, "0", 0, 1e18, "maximum FLOP/s of attention on any device, backward pass; 0: limited by the device only"),
    BOOLEAN_OPTION (software_config, context_parts, "no", "context = gather: attention runs on the keys of one rank at a time and merges outputs in fp32; keys and values are sent once per query head, and their gradients go round all ranks in fp32; no: all keys at once, sent once per kv head"),
    BOOLEAN_OPTION (software_config, nvls, "yes", "NVLS reductions are allowed where hardware.nvls_efficiency > 0; NCCL's default, off with NCCL_NVLS_ENABLE=0"),
    BOOLEAN_OPTION (software_config, pat, "yes", "PAT trees are allowed for gathers in groups with one rank per node (NCCL 2.23 and newer)"),
    QUANTITY_OPTION(software_config, reduction_parts, "1", 1, 64, "collectives per layer that reduce gradients"),
    QUANTITY_OPTION(software_config, fp8_reduction_stall, "0", 0, 10, "compute = fp8: share of the latency of gradient reductions for which compute stalls"),
    BOOLEAN_OPTION (software_config, expert_nodes, "no", "a token crosses the network once per target node, and the links once per target rank, as in DeepEP; no: once per expert"),
    BOOLEAN_OPTION (software_config, expert_serial, "no", "one all-to-all per layer, and compute waits for it; no: an expert computes while tokens of others are sent"),
    BOOLEAN_OPTION (software_config, expert_groups, "no", "grouped GEMM for the experts of a rank, so that expert_gap counts once; with FP8, casts still run per expert"),
    BOOLEAN_OPTION (software_config, expert_biases, "no", "experts with biases: biases are multiplied by gates and added in fp32 per expert, then concatenated; clamped activations and RoPE run as general kernels; no: the plan's cost"),
    BOOLEAN_OPTION (software_config, head_norms, "no", "qk_norm = yes: queries and keys are copied out of the qkv output, normalised by separate kernels, then rotated; no: normalised and rotated by one kernel"),
    INTEGER_OPTION (software_config, router_kernels, "1", 1, 256, "kernels of a router in the forward pass"),
    QUANTITY_OPTION(software_config, expert_bytes, "1", 0.1, 32, "memory traffic of token permutation and unpermutation, relative to gswbench"),
    QUANTITY_OPTION(software_config, expert_copies, "0", 0, 32, "copies of the experts' rows per pass of a layer, if a rank has several experts"),
    QUANTITY_OPTION(software_config, expert_gap, "0", 0, 1, "host seconds per pass of a MoE layer with one expert per rank; each further expert adds half of it"),
    QUANTITY_OPTION(software_config, expert_exchange, "0", 0, 1, "expert_nodes = yes: additional seconds of an all-to-all per byte received (each token once), for its metadata and reordering"),
    QUANTITY_OPTION(software_config, expert_launch, "0", 0, 1, "host seconds per launch step in a pass of a MoE layer: a norm, a GEMM with its gradients, or an all-to-all; a cast or a collective of tp or cp is half a step, and work that repeats per expert counts once; an op starts no earlier than its launch"),
    CHOICE_OPTION  (software_config, launch_graphs, "none", graph_names, "work launched as one CUDA graph; router: the router, the norm before it, shared experts and the preparation of the all-to-all; attention: everything whose shape does not depend on tokens per expert"),
    QUANTITY_OPTION(software_config, fp8_synchronization, "0", 0, 1, "compute = fp8: seconds of a synchronization of all ranks after each microbatch; 0: none"),
    BOOLEAN_OPTION (software_config, caching_allocator, "no", "memory is allocated and freed per tensor, as by PyTorch's allocator; no: all before the first step"),
    BOOLEAN_OPTION (software_config, gradient_placeholders, "no", "linears that accumulate gradients elsewhere return a placeholder: one per weight shape, and one for the output layer"),
    BOOLEAN_OPTION (software_config, fp32_shards, "no", "fsdp stores weights in fp32 only and casts them when it gathers"),
    BOOLEAN_OPTION (software_config, second_gemms, "no", "recompute = selective: a block keeps its input, attention and every second GEMM output (q, v, gate, down), whatever recompute_save says"),
    BOOLEAN_OPTION (software_config, keeps_unread, "no", "second_gemms = yes: a block also keeps outputs that the backward pass does not read (down), as code that is not compiled does"),
    BOOLEAN_OPTION (software_config, gather_pool, "no", "fsdp gathers into memory of a separate pool, and the embedding stays gathered with the output layer"),
    BOOLEAN_OPTION (software_config, whole_gradients, "no", "gradients of sharded weights stay unsharded until the last microbatch of a step"),
    BOOLEAN_OPTION (software_config, pipeline_buffers, "no", "a stage has one receive buffer per microbatch, and keeps a sent activation until its gradient arrives"),
    REAL_OPTION    (software_config, logit_copies, "0", 0, 8, "fp32 copies of the logits that the loss and its gradient hold at once, in addition to the logits"),
    REAL_OPTION    (software_config, parallel_logit_copies, "0", 0, 8, "logit_copies where tp shards the logits"),
    REAL_OPTION    (software_config, fragmentation, "0", 0, 1, "memory that the allocator reserves but cannot use, relative to allocated memory"),
    REAL_OPTION    (software_config, workspace_mib, "0", 0, 4096, "workspace of libraries in MiB per device"),
    QUANTITY_OPTION(software_config, residual, "0", 0, 100, "prediction error of models without experts: one standard deviation in percent, in addition to the spread of the values"),
    QUANTITY_OPTION(software_config, expert_residual, "0", 0, 100, "prediction error of models with experts: one standard deviation in percent, in addition to the spread of the values"),
    END_OPTIONS
};
// clang-format on

// SPDX-License-Identifier: MIT
// The program that is predicted, where it is not this one: how its steps differ from our plan.
#ifndef GSWBENCH_SOFTWARE_H
#define GSWBENCH_SOFTWARE_H

#include <stdint.h>

#include "gswbench/option.h"

// What of a layer with experts the host launches as a whole: nothing; the router, with the norm before it, shared
// experts and what prepares the exchange; and attention, too.
enum launch_graphs { LAUNCH_GRAPHS_NONE, LAUNCH_GRAPHS_ROUTER, LAUNCH_GRAPHS_ATTENTION };

// [software]; its defaults are this program.
struct software_config {
    char profile[112];    // configs/software/NAME.ini, or a path, or "gswbench"
    // How its ops differ from those of the plan: bytes as a share of ours, the most FLOP/s that attention reaches (0:
    // what the device allows), transfers in place of one, and the share of their latency for which compute stops with
    // FP8.
    struct quantity memory_bytes, cast_bytes, loss_bytes, optimizer_bytes, gemm_share;
    struct quantity loss_rate;              // logits a second of the loss with its gradient at most, on any device
    int64_t         scale_kernels;          // of a copy in FP8 that finds its scale first
    int64_t         fp8_gathers;            // what tp gathers for products in FP8 is cast before
    int64_t         fp8_attention;          // attention is computed in FP8, with what else is
    int64_t         fp8_head;               // and the head
    int64_t         fp8_transposes_once;    // weights' transposed copies are kept over the microbatches of a step
    struct quantity fsdp_copies, tensor_copies;    // of whole transfers, for which compute stops
    struct quantity attention_forward, attention_backward;
    int64_t         context_parts;    // attention over cp is one part after another, whose results are merged
    int64_t         nvls, pat;        // its NCCL may sum in switches, and gather by trees of one rank a node
    struct quantity reduction_parts, fp8_reduction_stall;
    int64_t         expert_nodes;     // a token crosses the network once for each node, not for each expert
    int64_t         expert_serial;    // a layer's exchange is one transfer, and compute waits for it
    int64_t         expert_groups;    // the experts of a rank are computed together
    int64_t         expert_biases;    // what experts give gets its bias in fp32, expert by expert
    int64_t         head_norms;       // heads are normalised by kernels of their own, which read copies of them
    int64_t         router_kernels;
    // Seconds of what is not in the plan: of the host, in a pass of a layer with one expert on the rank, and half as
    // many for each other one; of all ranks, after each microbatch with FP8.
    struct quantity expert_gap, fp8_synchronization;
    struct quantity expert_exchange;    // for a byte of tokens that a rank gets, besides the exchange
    struct quantity expert_launch;      // of the host, for each step of a pass of a layer with experts
    int64_t         launch_graphs;      // enum launch_graphs
    struct quantity expert_bytes;       // of what sorts rows by experts and back, as a share of ours
    struct quantity expert_copies;      // in a pass, of the rows that several experts of a rank have
    // What it holds of memory otherwise than the plan (footprint.h).
    int64_t caching_allocator;    // memory is taken and given back tensor by tensor
    int64_t gradient_placeholders, fp32_shards, second_products, keeps_unread, gather_pool, whole_gradients,
        pipeline_buffers;
    double          logit_copies, parallel_logit_copies, workspace_mib;
    double          fragmentation;    // as a share of what is given out
    struct quantity residual,
        expert_residual;    // percent that steps are off by besides, of models without and with experts
};
extern const struct option software_options[];

#endif

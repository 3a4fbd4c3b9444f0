// SPDX-License-Identifier: MIT
// The [software] options.
#include "gswbench/software.h"

static const char *const graph_names[] = {"none", "router", "attention", NULL};

// clang-format off
const struct option software_options[] = {
    TEXT_OPTION    (software_config, profile, "gswbench", "program that is predicted, read first, from configs/software/NAME.ini, or a file whose name has a /; gswbench: this one"),
    QUANTITY_OPTION(software_config, memory_bytes, "1", 0.1, 4, "bytes that memory-bound ops move, as a share of this program's"),
    QUANTITY_OPTION(software_config, cast_bytes, "1", 0, 4, "the same for casts to FP8"),
    INTEGER_OPTION (software_config, scale_kernels, "1", 1, 16, "kernels that a copy in FP8 takes which finds its scale first"),
    BOOLEAN_OPTION (software_config, fp8_gathers, "no", "what tp gathers for products in FP8 is cast before, and goes in FP8; no: ranks cast what they have gathered"),
    BOOLEAN_OPTION (software_config, fp8_attention, "no", "attention is computed in FP8 where GEMMs are, forward and backward; no: in BF16"),
    BOOLEAN_OPTION (software_config, fp8_head, "no", "the head's products are in FP8 where those of blocks are; no: in BF16"),
    BOOLEAN_OPTION (software_config, fp8_transposes_once, "no", "transposed copies of weights in FP8 are made in the first microbatch of a step; no: in each"),
    QUANTITY_OPTION(software_config, loss_bytes, "1", 0.1, 32, "the same for the loss, whose logits a program may copy to fp32"),
    QUANTITY_OPTION(software_config, loss_rate, "0", 0, 1e18, "logits a second that the loss and its gradient reach at most on any device; 0: what its memory allows"),
    QUANTITY_OPTION(software_config, optimizer_bytes, "1", 0.1, 32, "the same for the optimizer, which a program may run as several kernels"),
    QUANTITY_OPTION(software_config, gemm_share, "1", 0.1, 2, "share of the device's rate of GEMMs that its library reaches"),
    QUANTITY_OPTION(software_config, fsdp_copies, "0", 0, 8, "times that what fsdp gathers or reduces is copied on the device while compute waits"),
    QUANTITY_OPTION(software_config, tensor_copies, "0", 0, 8, "the same for what tp gathers and reduces beside no GEMM"),
    QUANTITY_OPTION(software_config, attention_forward, "0", 0, 1e18, "FLOP/s that attention reaches at most on any device; 0: what the device allows"),
    QUANTITY_OPTION(software_config, attention_backward, "0", 0, 1e18, "the same for its backward pass"),
    BOOLEAN_OPTION (software_config, context_parts, "no", "with gathered keys of cp, attention is computed for those of one rank after another, and what it gives is merged in fp32; keys and values travel once for each head of queries, and their gradients round all ranks in fp32; no: all at once, and once for each of their own heads"),
    BOOLEAN_OPTION (software_config, nvls, "yes", "sums may be made by the switches of a node, where hardware.nvls_efficiency says that they can, as NCCL does unless NCCL_NVLS_ENABLE is 0"),
    BOOLEAN_OPTION (software_config, pat, "yes", "gathers of groups of one rank a node may go by trees (PAT), which NCCL has since 2.23"),
    QUANTITY_OPTION(software_config, reduction_parts, "1", 1, 64, "transfers in which the gradients of a layer are summed"),
    QUANTITY_OPTION(software_config, fp8_reduction_stall, "0", 0, 10, "share of the latency of these transfers for which compute stands still with FP8"),
    BOOLEAN_OPTION (software_config, expert_nodes, "no", "a token crosses the network once for each node, and within a node the links once for each rank, that has experts for it, as in DeepEP; no: once for each expert"),
    BOOLEAN_OPTION (software_config, expert_serial, "no", "the exchange of a layer's tokens is one transfer, and compute waits for it; no: an expert computes while those of others are on their way"),
    BOOLEAN_OPTION (software_config, expert_groups, "no", "the experts of a rank are computed together, so that expert_gap counts once, but with FP8, where each expert's rows are cast on their own"),
    BOOLEAN_OPTION (software_config, expert_biases, "no", "of models whose experts have biases: these are multiplied by gates and added in fp32, expert by expert, and joined; activations are clamped and queries and keys rotated by general kernels; no: all that costs what the plan says"),
    BOOLEAN_OPTION (software_config, head_norms, "no", "with qk_norm, queries and keys are copied out of the product that gives them, normalised by kernels of their own, and then rotated; no: as they are rotated"),
    INTEGER_OPTION (software_config, router_kernels, "1", 1, 256, "kernels that a layer's router takes in the forward pass"),
    QUANTITY_OPTION(software_config, expert_bytes, "1", 0.1, 32, "bytes of what brings tokens into the order of experts and back, as a share of this program's"),
    QUANTITY_OPTION(software_config, expert_copies, "0", 0, 32, "times that the rows of a rank's experts are copied in each pass of a layer, where they are several"),
    QUANTITY_OPTION(software_config, expert_gap, "0", 0, 1, "host seconds in each pass of a layer with one expert on a rank, and half as much for each further expert"),
    QUANTITY_OPTION(software_config, expert_exchange, "0", 0, 1, "with expert_nodes, seconds that an exchange of tokens takes besides, for each byte that a rank gets, a token once: to say where it goes, and to bring it into place"),
    QUANTITY_OPTION(software_config, expert_launch, "0", 0, 1, "seconds of the host for each step of a pass of a layer with experts: a norm, a product with its gradients, an exchange; a cast, or a transfer of tp or cp, is half a step, and what experts do one after another counts once. An op begins no earlier than the host has launched it"),
    CHOICE_OPTION  (software_config, launch_graphs, "none", graph_names, "steps that the host launches as one: router, the router with the norm before it, shared experts and what prepares the exchange; attention, all but what is done for as many tokens as experts get"),
    QUANTITY_OPTION(software_config, fp8_synchronization, "0", 0, 1, "seconds in which all ranks meet after each microbatch with FP8; 0: they do not"),
    BOOLEAN_OPTION (software_config, caching_allocator, "no", "memory is taken and given back tensor by tensor, as by PyTorch's allocator; no: all is placed before the first step"),
    BOOLEAN_OPTION (software_config, gradient_placeholders, "no", "linears whose gradients are added up elsewhere return a placeholder, one kept for each shape of blocks, and the head one of its own"),
    BOOLEAN_OPTION (software_config, fp32_shards, "no", "fsdp keeps weights in fp32 alone, and casts them as it gathers"),
    BOOLEAN_OPTION (software_config, second_products, "no", "with recompute = selective a block keeps its input, attention, and every second product: q, v, gate and down, whatever recompute_save says"),
    BOOLEAN_OPTION (software_config, keeps_unread, "no", "it keeps of these also what the backward pass does not read (down), as a program that nothing compiles"),
    BOOLEAN_OPTION (software_config, gather_pool, "no", "what fsdp gathers is taken from memory that nothing else uses, and the embedding stays gathered with the head"),
    BOOLEAN_OPTION (software_config, whole_gradients, "no", "sharded weights have their gradients whole until the last microbatch of a step"),
    BOOLEAN_OPTION (software_config, pipeline_buffers, "no", "stages have a buffer for each microbatch that they receive, and keep what they have sent on until its gradient has come"),
    REAL_OPTION    (software_config, logit_copies, "0", 0, 8, "copies of the logits in fp32 that the loss and its gradient hold at a time, beside the logits"),
    REAL_OPTION    (software_config, parallel_logit_copies, "0", 0, 8, "the same where tp shards the logits"),
    REAL_OPTION    (software_config, fragmentation, "0", 0, 1, "what the allocator takes from the device and cannot use, as a share of what it gives out"),
    REAL_OPTION    (software_config, workspace_mib, "0", 0, 4096, "MiB of the device that its libraries take as workspace"),
    QUANTITY_OPTION(software_config, residual, "0", 0, 100, "percent that predictions of models without experts are off by, as one standard deviation, besides what the spreads of values say"),
    QUANTITY_OPTION(software_config, expert_residual, "0", 0, 100, "the same of models with experts"),
    END_OPTIONS
};
// clang-format on

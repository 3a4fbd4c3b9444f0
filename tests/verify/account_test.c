// SPDX-License-Identifier: MIT
// Compares totals over the ops of a plan with closed forms.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/plan_build.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "line.h"

static struct account account_of(const char *row)
{
    struct account account;
    plan_account(tiny_plan_of(row, 0), &account);
    return account;
}

Test(account, counts_the_parameters_of_the_model)
{
    struct account account = account_of("");

    // Embedding and head have 40 x 16 parameters each. A layer has norms 2 x 16, qkv 32 x 16, projection 16 x 16, gate
    // and up 48 x 16, down 16 x 24. The final norm has 16.
    cr_assert_eq(account.parameters, 2 * 640 + 2 * (32 + 512 + 256 + 768 + 384) + 16);
    struct tiny tiny = tiny_of("");
    cr_assert_eq(account.parameters, layers_parameters(&tiny.model));
}

Test(account, counts_two_flops_a_multiply_add_and_the_causal_half_of_attention)
{
    struct account account = account_of("");

    // Each of 16 tokens is multiplied by 512 + 256 + 768 + 384 weights per layer, and by 640 in the head.
    double gemms = 2.0 * 16 * (2 * 1920 + 640);
    // Causal attention of two sequences and four heads: 8 x 9 / 2 pairs of positions, and two GEMMs with head_dim 4 for
    // each.
    double attention = 2.0 * 2 * 4 * 36 * 2 * 2 * 4;
    cr_assert_float_eq(account.flops[PHASE_FORWARD], gemms + attention, 1e-6 * gemms);
    cr_assert_float_eq(account.flops[PHASE_BACKWARD], 2 * gemms + 2.5 * attention, 1e-6 * gemms);
    cr_assert_eq(account.flops[PHASE_RECOMPUTE], 0);
    cr_assert_float_eq(account.hardware_flops, (3 * gemms + 3.5 * attention) / 2, 1e-6 * gemms);
}

Test(account, sums_equal_communications)
{
    struct account account = account_of("dp 4");

    // Collectives reduce the embedding, the head with the final norm, two equal blocks, and the loss.
    int64_t count = 0;
    for (int32_t i = 0; i < account.communication_count; i++) {
        count += account.communications[i].count;
        cr_assert_eq(account.communications[i].kind, OP_ALL_REDUCE);
        cr_assert_eq(account.communications[i].axes, 1u << AXIS_DP);
        cr_assert_eq(account.communications[i].group_size, 4);
    }
    cr_assert_eq(count, 5);
    cr_assert_eq(account.communication_count, 4);
}

// Totals of the collectives of one kind over a group, except for loss and gradient norm.
struct volume {
    int64_t count, elements, bytes;
};

static struct volume volume_of(const struct account *account, enum op_kind kind, uint32_t axes)
{
    struct volume sum = {0};
    for (int32_t i = 0; i < account->communication_count; i++) {
        const struct plan_communication *communication = &account->communications[i];
        if (communication->kind == kind && communication->axes == axes && communication->elements >= 8) {
            sum.count += communication->count;
            sum.elements += communication->count * communication->elements;
            sum.bytes += communication->count * format_bytes(communication->format, communication->elements);
        }
    }
    return sum;
}

static int64_t scalars_of(const struct account *account)
{
    int64_t count = 0;
    for (int32_t i = 0; i < account->communication_count; i++) {
        count += account->communications[i].elements < 8 ? account->communications[i].count : 0;
    }
    return count;
}

static void expect_volume(int row, const char *what, struct volume found, int64_t count, int64_t elements,
                          int64_t width)
{
    cr_expect_eq(found.count, count, "row %d: %d %s, not %d", row, (int)found.count, what, (int)count);
    cr_expect_eq(found.elements, elements, "row %d: %s of %d elements, not %d", row, what, (int)found.elements,
                 (int)elements);
    cr_expect_eq(found.bytes, elements * width, "row %d: %s of %d bytes", row, what, (int)found.bytes);
}

// Returns the account of three layers in BF16 with this number of microbatches.
static struct account account_layers(const char *row, int64_t microbatches)
{
    const char *layers = line_of("layers 3; compute bf16; reduce fp32; accumulation %d; %s", (int)microbatches, row);
    return account_of(layers);
}

// The parameter groups are three layers of 1952 weights, the embedding of 640, and the head with the final norm of 656.
// The head's group is padded to 672 so that four ranks have equal shards. All together have 7168 elements, with BF16
// weights and fp32 gradients.
Test(account, moves_over_data_parallel_ranks_what_the_layout_says)
{
    // clang-format off
    static const struct {
        const char *layout;
        int64_t     microbatches, gathers, gathered, scatters, scattered, reduces, reduced, scalars;
    } rows[] = {
        // FSDP: each microbatch gathers each block in the forward and in the backward pass, embedding and head once,
        // and reduces every gradient.
        {"fsdp 4", 1,                       8, 2 * 5856 + 1312,         5, 7168,        0, 0, 2},
        {"fsdp 4; recompute full", 1,       8, 2 * 5856 + 1312,         5, 7168,        0, 0, 2},
        {"fsdp 4", 3,                      24, 3 * (2 * 5856 + 1312),  15, 3 * 7168,    0, 0, 2},
        // Weights that are never resharded are gathered once. With except-last, all blocks but the last are gathered
        // twice.
        {"fsdp 4; reshard never", 1,        5, 5856 + 1312,             5, 7168,        0, 0, 2},
        {"fsdp 4; reshard except-last", 1,  7, 2 * 5856 - 1952 + 1312,  5, 7168,        0, 0, 2},
        // HSDP: gradients of shards are also reduced over the replicas, once per step.
        {"fsdp 2; dp 2", 1,                 8, 2 * 5856 + 1312,         5, 7168,        5, 3584, 2},
        {"fsdp 2; dp 2", 2,                16, 2 * (2 * 5856 + 1312),  10, 2 * 7168,    5, 3584, 2},
        // dp: gradients are reduced once per step.
        {"dp 4", 1,                         0, 0,                       0, 0,           5, 7168, 1},
        {"dp 4", 3,                         0, 0,                       0, 0,           5, 7168, 1},
        // ZeRO-1: gradients are reduce-scattered and weights gathered once per step.
        {"dp 4; zero 1", 1,                 5, 7168,                    5, 7168,        0, 0, 2},
        {"dp 4; zero 1", 3,                 5, 7168,                    5, 7168,        0, 0, 2},
        // gradient_reduce = microbatch: replicas, ZeRO-1 and HSDP reduce gradients in every microbatch.
        {"dp 4; gradient_reduce microbatch", 1,         0, 0,                      0, 0,         5, 7168, 1},
        {"dp 4; gradient_reduce microbatch", 3,         0, 0,                      0, 0,        15, 3 * 7168, 1},
        {"dp 4; zero 1; gradient_reduce microbatch", 3, 5, 7168,                  15, 3 * 7168,  0, 0, 2},
        {"fsdp 2; dp 2; gradient_reduce microbatch", 2, 16, 2 * (2 * 5856 + 1312), 10, 2 * 7168, 10, 2 * 3584, 2},
    };
    // clang-format on
    for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++) {
        struct account account = account_layers(rows[i].layout, rows[i].microbatches);
        uint32_t       shards  = 1u << (strstr(rows[i].layout, "fsdp") != NULL ? AXIS_FSDP : AXIS_DP);
        expect_volume(i, "gathers", volume_of(&account, OP_ALL_GATHER, shards), rows[i].gathers, rows[i].gathered, 2);
        expect_volume(i, "scatters", volume_of(&account, OP_REDUCE_SCATTER, shards), rows[i].scatters,
                      rows[i].scattered, 4);
        expect_volume(i, "reduces", volume_of(&account, OP_ALL_REDUCE, 1u << AXIS_DP), rows[i].reduces, rows[i].reduced,
                      4);
        // Single numbers are reduced for the loss, and with sharded optimizer state also for the gradient norm.
        cr_expect_eq(scalars_of(&account), rows[i].scalars, "row %d: %d scalars", i, (int)scalars_of(&account));
    }
}

// The residual stream of a microbatch has 16 tokens of 16 elements. Each layer gathers it twice in the forward pass,
// twice in the backward pass and twice for weight gradients, and reduce-scatters it 2 + 2 times. The embedding scatters
// it and the head gathers it, once per pass.
Test(account, moves_the_residual_stream_over_tensor_parallel_ranks)
{
    for (int64_t microbatches = 1; microbatches <= 3; microbatches++) {
        struct account account = account_layers("tp 2", microbatches);
        int64_t        gathers = 0, scatters = 0;
        for (int32_t i = 0; i < account.communication_count; i++) {
            const struct plan_communication *communication = &account.communications[i];
            if (communication->format == FORMAT_BF16) {
                cr_expect_eq(communication->elements, 256);
                cr_expect_eq(communication->axes, 1u << AXIS_TP);
                gathers += communication->kind == OP_ALL_GATHER ? communication->count : 0;
                scatters += communication->kind == OP_REDUCE_SCATTER ? communication->count : 0;
            }
        }
        cr_expect_eq(gathers, microbatches * (6 * 3 + 2));
        cr_expect_eq(scatters, microbatches * (4 * 3 + 2));
    }
}

// Without sequence parallelism, each layer all-reduces the residual stream twice forward and twice backward, the
// embedding once forward and the head once backward. Each rank sees all tokens, so norm gradients need no reduction.
// Other collectives reduce three values per token for the loss, and the squared gradient norm.
Test(account, adds_up_a_residual_stream_that_is_not_shared_out)
{
    for (int64_t microbatches = 1; microbatches <= 3; microbatches++) {
        struct account account = account_layers("tp 2; sequence_parallel no", microbatches);
        int64_t        sums    = microbatches * (4 * 3 + 2);
        expect_volume(0, "sums", volume_of(&account, OP_ALL_REDUCE, 1u << AXIS_TP), sums, sums * 256, 2);
        expect_volume(0, "statistics", volume_of(&account, OP_ALL_GATHER, 1u << AXIS_TP), microbatches,
                      microbatches * 2 * 16 * 3, 4);
        cr_expect_eq(scalars_of(&account), 1);
        cr_expect_eq(account.communication_count, 3);
    }
}

// Two layers and two microbatches dispatch and combine tokens, forward and backward. Each time, 16 tokens of 16 BF16
// elements move to each of 2 chosen experts. Two local experts per rank make two all-to-alls each.
Test(account, moves_each_choice_of_a_token_to_its_expert_and_back)
{
    struct account account = account_of(
        "experts 4; top_k 2; auxiliary_loss 0.05; dp 2; ep 2; accumulation 2; routing balanced; compute bf16");

    struct volume sum = volume_of(&account, OP_ALL_TO_ALL, 1u << AXIS_EP);
    cr_expect_eq(sum.count, 2 * 2 * 4 * 2);
    cr_expect_eq(sum.bytes, 2 * 2 * 4 * (16 * 2 * 16 * 2));
    cr_expect_eq(account.ops[OP_ALL_TO_ALL], sum.count);
}

// Each of two ranks holds two of four experts, and all other weights.
Test(account, counts_the_experts_that_are_here)
{
    struct account account = account_of("experts 4; top_k 2; auxiliary_loss 0.05; dp 2; ep 2");

    cr_expect_eq(account.parameters, 2 * 640 + 2 * (32 + 4 * 16 + 512 + 256 + 2 * (768 + 384)) + 16);
    struct tiny tiny = tiny_of("experts 4; top_k 2");
    cr_expect_eq(layers_parameters(&tiny.model), account.parameters + 2 * 2 * (768 + 384));
}

// A tp rank holds half of each of two experts, or one whole expert (etp 1). Both have the same parameters, FLOPs and
// all-to-all bytes. Halves of experts also gather and reduce rows over tp around their GEMMs: three gathers and two
// reductions for each of two experts.
Test(account, moves_rows_of_whole_experts_to_their_owners_alone)
{
    static const char *const layouts[] = {
        "experts 4; top_k 2; auxiliary_loss 0.05; routing balanced; compute bf16; tp 2; dp 2; ep 2",
        "experts 4; top_k 2; auxiliary_loss 0.05; routing balanced; compute bf16; tp 2; dp 2; ep 4; etp 1"};
    struct account accounts[2];
    int64_t        bytes[2], gathers[2], sums[2];
    for (int i = 0; i < 2; i++) {
        const struct plan *plan = tiny_plan_of(layouts[i], 1);
        plan_account(plan, &accounts[i]);
        struct volume exchanged =
            volume_of(&accounts[i], OP_ALL_TO_ALL, i == 0 ? 1u << AXIS_EP : 1u << AXIS_EP | 1u << AXIS_TP);
        expect_volume(i, "exchanges", exchanged, 2 * 4 * (2 - i), 2 * 4 * (8 * 2 * 16), 2);
        cr_expect_eq(accounts[i].ops[OP_ALL_TO_ALL], exchanged.count);
        gathers[i] = volume_of(&accounts[i], OP_ALL_GATHER, 1u << AXIS_TP).elements;
        sums[i]    = volume_of(&accounts[i], OP_REDUCE_SCATTER, 1u << AXIS_TP).elements;
        bytes[i]   = plan->storage_bytes[STORAGE_WEIGHT];
    }
    cr_expect_eq(accounts[1].parameters, accounts[0].parameters);
    cr_expect_eq(accounts[1].flops[PHASE_FORWARD], accounts[0].flops[PHASE_FORWARD]);
    cr_expect_eq(accounts[1].flops[PHASE_BACKWARD], accounts[0].flops[PHASE_BACKWARD]);
    cr_expect_eq(bytes[1], bytes[0]);
    cr_expect_eq(gathers[0] - gathers[1], 2 * 3 * 2 * (16 * 16));
    cr_expect_eq(sums[0] - sums[1], 2 * 2 * 2 * (16 * 16));
}

Test(account, counts_what_making_fp8_copies_reads_and_writes)
{
    // Quantized elements of the linears in a layer: weights, and inputs and output gradients of 16 tokens.
    int64_t weights = 32 * 16 + 16 * 16 + 48 * 16 + 16 * 24, inputs = 16 * (16 + 16 + 16 + 24);
    int64_t gradients = 16 * (32 + 16 + 48 + 16);
    // Quantizing reads BF16 and writes the quantized tensor, its transpose, and a scale for each.
    int64_t copies = (2 + 1 + 1) * (inputs + gradients) + 2 * 4 * 4;
    cr_assert_eq(account_of("compute fp8; recipe current; fp8_fused no").quantized_bytes,
                 2 * (copies + (2 + 1 + 1) * weights + 4 * 4));

    // Weights are quantized from fp32 masters with an existing scale, and their transposes are made from FP8.
    cr_assert_eq(account_of("compute fp8; recipe current; fp8_fused no; fp8_weights yes").quantized_bytes,
                 2 * (copies + (4 + 1) * weights + 4 * 4 + (1 + 1) * weights));
}

Test(account, spreads_the_updates_of_muon_over_their_owners)
{
    static const char *const layouts[] = {"dp 4; zero 1; layers 3; optimizer muon",
                                          "dp 4; tp 2; zero 1; layers 3; optimizer muon",
                                          "dp 2; cp 2; zero 1; layers 1; optimizer muon", "dp 2; optimizer muon"};
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct account account;
        double         flops = 0.0, batch = 0.0;
        int64_t        ranks = tiny_plan_of(layouts[i], 0)->mesh.world;
        for (int64_t rank = 0; rank < ranks; rank++) {
            struct plan *plan = tiny_plan_of(layouts[i], rank);
            batch             = (double)plan->train.global_batch;
            plan_account(plan, &account);
            for (int phase = 0; phase < PHASE_COUNT; phase++) {
                flops += account.flops[phase];
            }
        }
        for (int64_t rank = 0; rank < ranks; rank++) {
            plan_account(tiny_plan_of(layouts[i], rank), &account);
            cr_expect_float_eq(account.hardware_flops, flops / batch, 1e-9 * flops, "%s, rank %lld", layouts[i],
                               (long long)rank);
        }
    }
}

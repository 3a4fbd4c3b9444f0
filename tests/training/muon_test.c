// SPDX-License-Identifier: MIT
// Tests the Muon optimizer: each layout trains as one rank does, each matrix is updated by one rank, and the model of
// Kimi K2 has the published number of FLOPs. A commit draws half of the layouts; GSWBENCH_ROWS=all trains all.
#include <criterion/criterion.h>
#include <stdio.h>

#include "draw.h"
#include "drawn_layout.h"
#include "layouts.h"
#include "same_training.h"
#include "success.h"

enum { BATCH = 8, STEPS = 5, DRAWS = 100, DRAWS_MIN = 30 };

static const char model[] = "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; "
                            "learning_rate 2e-3; optimizer muon; recompute_every 2; recompute_save qkv";

#define EXPERTS "experts 4; top_k 2; auxiliary_loss 0.05; capacity_scope sequence"
// clang-format off
static const char *const layouts[] = {
    "dp 2",
    "dp 4; zero 1; accumulation 2; tied yes",
    "dp 8; zero 1; zero_gather forward",
    "dp 3; zero 1; zero_gather forward; prefetch 2",
    "tp 2",
    "tp 4; activation gelu; sequence_parallel no; muon_split qkv",
    "dp 2; tp 2; zero 1; muon_split qkv; attention_bias yes; mlp_bias yes",
    "dp 2; cp 2; zero 1; accumulation 4; context ring",
    "dp 2; pp 2; vp 2; zero 1; zero_gather forward; accumulation 4; layers 5; tied yes",
    "dp 2; tp 2; pp 2; zero 1; accumulation 2; layers 4",
    "dp 2; accumulation 2; gradient_reduce microbatch",
    "dp 2; tp 2; zero 1; kv_rank 12; q_rank 10; rope_dim 6; value_dim 5; predicted_tokens 1",
    "dp 4; ep 2; zero 1; accumulation 2; shared_ffn 8; " EXPERTS,
    "dp 2; ep 2; tp 2; zero 1; zero_gather forward; " EXPERTS,
    "dp 2; tp 2; ep 4; etp 1; zero 1; muon_split qkv; " EXPERTS,
    "dp 4; ep 2; pp 2; zero 1; accumulation 2; layers 4; pattern dense, experts; " EXPERTS,
    "dp 2; tp 2; zero 1; compute bf16; reduce bf16",
};
// clang-format on
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

Test(muon, trains_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many = training_of(model, layouts[i], BATCH, STEPS);
        if (is_drawn(i, 2)) {
            expect_proof(&many, layouts[i]);
            expect_as_one_rank(&many, layout_alone, layouts[i]);
        }
    }
}

// Layouts with one expert per token are left out: the gate is constant, so the gradient of the router is only rounding
// error, which Muon enlarges.
static bool draw(struct training *training, uint64_t seed)
{
    struct parallel_config *parallel = &training->tiny.parallel;
    *training                        = drawn_layout(seed);
    training->steps                  = 3;
    training->tiny.train.optimizer   = OPTIMIZER_MUON;
    training->tiny.train.muon_split  = (int64_t)(seed % 2);
    training->ranks /= (int)parallel->fsdp;
    parallel->fsdp                     = 1;
    parallel->shard_over_cp            = 0;
    training->tiny.model.adapters.rank = 0;
    return training->tiny.model.top_k != 1 && drawn_layout_is_planned(training);
}

Test(muon, trains_as_one_rank_does_in_drawn_layouts, .timeout = 600)
{
    static const struct closeness exact = {1e-5, 1e-5, 2e-5};
    int                           count = 0;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        struct training many;
        char            name[32 + LAYOUT_NAME_BYTES];
        if (draw(&many, seed)) {
            struct training one = on_one_rank(&many, layout_alone);
            layout_name(&many.tiny, name + snprintf(name, 32, "draw %d: ", (int)seed));
            expect_proof(&many, name);
            expect_same_training(&many, &one, &exact, name);
            count++;
        }
    }
    cr_expect_geq(count, DRAWS_MIN);
}

// Elements of the matrices that a rank updates, and FLOPs of its optimizer ops.
struct load {
    int64_t elements;
    double  flops;
};

static struct load load_of(const struct plan *plan)
{
    struct load load = {0, 0};
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        load.elements += op->kind == OP_MUON ? op->shape.elements.elements : 0;
        load.flops += op->tag.phase == PHASE_OPTIMIZER ? op_flops(op) : 0;
    }
    return load;
}

// Returns whether this rank updates all elements that the broadcast sends.
static bool is_updated(const struct plan *plan, int32_t broadcast)
{
    const struct tensor *sent  = &plan->tensors[plan->ops[broadcast].operand[COMMUNICATION_OUT]];
    int64_t              bytes = 0;
    for (int32_t i = 0; i < broadcast; i++) {
        if (plan->ops[i].kind == OP_MUON) {
            const struct tensor *weight    = &plan->tensors[plan->ops[i].operand[MUON_WEIGHT]];
            bool                 is_inside = weight->whole == sent->whole && weight->part_offset >= sent->part_offset &&
                             weight->part_offset + weight->bytes <= sent->part_offset + sent->bytes;
            bytes += is_inside ? weight->bytes : 0;
        }
    }
    return bytes > sent->bytes - 64 && bytes <= sent->bytes;    // padding is not updated
}

Test(muon, gives_every_matrix_one_owner_and_the_first_replica_the_most)
{
    enum { RANKS = 4 };
    struct load all = {0, 0}, loads[RANKS];
    for (int rank = 0; rank < RANKS; rank++) {
        const struct plan *plan = tiny_plan_of("dp 4; zero 1; layers 7; optimizer muon", rank);
        loads[rank]             = load_of(plan);
        all.elements += loads[rank].elements;
        all.flops += loads[rank].flops;
        cr_expect_leq(loads[rank].flops, loads[0].flops);
        for (int32_t i = 0; i < plan->op_count; i++) {
            const struct op *op = &plan->ops[i];
            if (op->kind == OP_BROADCAST) {
                cr_expect_eq(is_updated(plan, i), op->shape.communication.peer == rank, "rank %d, op %d", rank, i);
            }
        }
    }
    struct load alone = load_of(tiny_plan_of("layers 7; optimizer muon; micro_batch 8", 0));
    cr_expect_eq(all.elements, alone.elements);
    cr_expect_float_eq(all.flops, alone.flops, 1e-9 * alone.flops);
    cr_expect_lt(loads[0].flops, 1.2 * alone.flops / RANKS);
}

// Kimi K2 has 384 experts in 60 layers with three matrices of m = 2048 by n = 7168 each. A matrix needs 5 (4 m m n + 2
// m m m) FLOPs, all together 4.75e16.
Test(muon, needs_the_published_flops_for_kimi_k2, .timeout = 60)
{
    struct plan_request request =
        layout_request("layers 61; pattern dense, experts; hidden 7168; heads 64; kv_heads 64; head_dim 128; "
                       "kv_rank 512; q_rank 1536; rope_dim 64; value_dim 128; ffn 18432; expert_ffn 2048; "
                       "experts 384; top_k 8; vocab 163840; optimizer muon; dp 64; ep 64; pp 4; zero 1; "
                       "layers_per_chunk_embedding no; last_chunk_layers 13; accumulation 4");
    double sum = 0;
    for (int stage = 0; stage < 4; stage++) {
        struct plan plan;
        request.is_unplaced = true;
        REQUIRE(plan_build_stage(&plan, &request, stage));
        for (int32_t i = 0; i < plan.op_count; i++) {
            const struct op         *op           = &plan.ops[i];
            const struct gemm_shape *shape        = &op->shape.gemm;
            bool                     is_iteration = op->kind == OP_GEMM && op->tag.phase == PHASE_OPTIMIZER;
            bool                     is_square    = shape->m == 2048 && shape->n == 2048;
            bool is_product = (shape->m == 2048 && shape->n == 7168) || (shape->m == 7168 && shape->n == 2048);
            sum += is_iteration && (is_square || is_product) ? 64 * op_flops(op) : 0;
        }
        plan_free(&plan);
    }
    cr_expect_float_eq(sum, 4.75e16, 0.005e16, "%g", sum);
}

Test(muon, refuses_layouts_in_which_no_rank_has_a_whole_gradient)
{
    static const char *const rows[][2] = {
        {"fsdp 2", "[parallel] fsdp > 1: use dp and zero = 1"},
        {"fsdp 2; ep 2; experts 4; top_k 2", "[parallel] fsdp > 1: use dp and zero = 1"},
        {"cp 2; shard_over_cp yes", "[parallel] shard_over_cp = yes: use dp and zero = 1"},
        {"compute fp8; fp8_weights yes", "set fp8_weights = no"},
        {"compute fp8; recipe current", "another recipe"},
        {"rank 4", "set optimizer = adamw"},
        {"experts 4; top_k 2; mlp_bias yes", "set optimizer = adamw"},
        {"tp 4; kv_heads 2", "lower tp"},
        {"dp 2; zero 1; accumulation 2; gradient_reduce microbatch", "use gradient_reduce = step"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_refusal(model, rows[i][0], BATCH, rows[i][1]);
    }
}

// SPDX-License-Identifier: MIT
// Tests pipeline stages: which weights they have, that complete pipelines are verified, and that memory is bounded.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/builder.h"
#include "gswbench/job.h"
#include "gswbench/verify.h"
#include "faulty.h"
#include "layouts.h"
#include "line.h"
#include "success.h"

// The order is: embedding, three layers, head, two MTP modules. Embedding and head have no layer number (-1).
Test(pipeline, finds_each_layer_at_its_place)
{
    static const int64_t      layers[] = {-1, 0, 1, 2, -1, 3, 4};
    const struct model_config model    = {.layers = 3, .predicted_tokens = 2};
    cr_assert_eq(block_places(&model), 7);
    cr_expect_eq(block_head(&model), 4);
    for (int64_t place = 0; place < 7; place++) {
        cr_expect_eq(block_layer(&model, place), layers[place]);
        cr_expect(layers[place] < 0 || block_place(&model, layers[place]) == place);
    }
}

Test(pipeline, gives_each_stage_the_units_of_its_chunks)
{
    static const struct {
        int64_t     rank, place;
        const char *first_weight;
    } expected[] = {
        {0, 0, "embedding table"}, {0, 3, "norm1"}, {0, 4, "norm1"},
        {1, 1, "norm1"},           {1, 2, "norm1"}, {1, 5, "final norm"},
    };
    for (int64_t rank = 0, row = 0; rank < 2; rank++) {
        // The four chunks have 0, 2, 2 and 0 layers.
        const struct plan *plan = tiny_plan_of("pp 2; vp 2; layers 4; layers_per_chunk_embedding yes", rank);
        cr_assert_eq(plan->unit_count, 3);
        for (int32_t unit = 0; unit < 3; unit++, row++) {
            cr_expect_eq(expected[row].rank, rank);
            cr_expect_eq(plan->units[unit].place, expected[row].place);
            cr_expect_str_eq(plan->weights[plan->units[unit].first_weight].name, expected[row].first_weight);
        }
    }
}

// Returns the random stream of the norm of layer 1, which is the first weight of a unit.
static int64_t stream_of(const struct plan *plan, int unit)
{
    const struct weight_part *norm = plan->weights[plan->units[unit].first_weight].part;
    cr_expect_str_eq(norm->name, "model.layers.1.input_layernorm.weight");
    return norm->stream;
}

// In the pipeline, layer 1 is the first layer of stage 1. It must have the name and random numbers that it has without
// a pipeline.
Test(pipeline, keeps_the_streams_and_names_of_global_layers)
{
    int64_t whole = stream_of(tiny_plan_of("layers 4", 0), 2);
    cr_expect_eq(stream_of(tiny_plan_of("layers 4; pp 2; vp 2", 1), 0), whole);
}

Test(pipeline, has_tokens_on_the_first_and_targets_on_the_last_stage)
{
    for (int64_t rank = 0; rank < 3; rank++) {
        const struct plan *plan = tiny_plan_of("pp 3; layers 3; accumulation 2", rank);
        cr_expect_eq(plan->tokens[1] >= 0, rank == 0);
        cr_expect_eq(plan->targets[1] >= 0, rank == 2);
    }
}

// In each direction, a stage sends and receives once per microbatch at each boundary of its chunks.
Test(pipeline, passes_every_boundary_once_each_way_for_each_microbatch)
{
    for (int64_t rank = 0; rank < 3; rank++) {
        const struct plan *plan = tiny_plan_of("pp 3; vp 2; layers 6; accumulation 4", rank);
        // A stage sends forward at the boundary after each of its chunks, and backward at the boundary before. The
        // first and last stage have one boundary less.
        int64_t each_way = rank == 1 ? 4 : 3;
        cr_expect_eq(count_ops(plan, OP_SEND, ANY), 4 * each_way, "rank %d: %d", (int)rank,
                     count_ops(plan, OP_SEND, ANY));
        cr_expect_eq(count_ops(plan, OP_RECEIVE, ANY), 4 * each_way);
        struct account account;
        plan_account(plan, &account);
        for (int32_t i = 0; i < account.communication_count; i++) {
            bool is_pair = account.communications[i].kind == OP_SEND || account.communications[i].kind == OP_RECEIVE;
            cr_expect(!is_pair || account.communications[i].elements == 16 * 16, "tokens times hidden");
        }
    }
}

Test(pipeline, needs_no_more_memory_for_more_microbatches)
{
    for (int chunks = 1; chunks <= 2; chunks++) {
        for (int64_t rank = 0; rank < 3; rank++) {
            int64_t few =
                tiny_plan_of(line_of("pp 3; vp %d; layers 6; accumulation 9", chunks), rank)->activation_live_bytes;
            const struct plan *many = tiny_plan_of(line_of("pp 3; vp %d; layers 6; accumulation 30", chunks), rank);
            cr_expect_eq(many->activation_live_bytes, few, "chunks %d rank %d", chunks, (int)rank);
            cr_expect_lt(many->storage_bytes[STORAGE_ACTIVATION], few * 5 / 4);
        }
    }
}

Test(pipeline, keeps_fewer_activations_on_later_stages)
{
    int64_t before = INT64_MAX;
    for (int64_t rank = 0; rank < 3; rank++) {
        int64_t live = tiny_plan_of("pp 4; layers 8; accumulation 12", rank)->activation_live_bytes;
        cr_expect_lt(live, before);
        before = live;
    }
}

// The embedding table, which the head shares, has 40 rows of 16 elements. The first and the last stage must send each
// other their gradients of it.
Test(pipeline, exchanges_the_gradient_of_a_tied_table_between_its_ends)
{
    for (int64_t stage = 0; stage < 3; stage++) {
        const struct plan *plan = tiny_plan_of("pp 3; layers 3; accumulation 4; tied yes", stage);
        int                sent = 0;
        for (int32_t i = 0; i < plan->op_count; i++) {
            const struct op *op = &plan->ops[i];
            if (strcmp(op->tag.role, "tied gradient send") == 0) {
                cr_expect_eq(op->shape.communication.elements, 640);
                cr_expect_eq(op->shape.communication.peer, 2 - stage);
                sent++;
            }
        }
        cr_expect_eq(sent, stage == 1 ? 0 : 1, "stage %d sends %d", (int)stage, sent);
    }
}

Test(pipeline, executes_what_one_rank_does)
{
    static const char   stages[] = "pp 2; vp 2; layers 5; accumulation 4";
    struct plan_request request  = layout_request(stages);
    struct account      account;
    double              flops;
    plan_account(tiny_plan_of("layers 5; accumulation 4", 0), &account);
    for (request.rank = 0; request.rank < 2; request.rank++) {
        REQUIRE(plan_hardware_flops(tiny_plan_of(stages, request.rank), &request, &flops));
        cr_expect_float_eq(flops, account.hardware_flops, 1e-9 * flops);
    }
}

Test(pipeline, is_sound_as_a_whole, .timeout = 120)
{
    for (int variant = 0; variant < 96; variant++) {
        int           stages = 2 + variant % 4, chunks = 1 + variant / 4 % 3;
        int           dp = 1 + variant / 12 % 2, fsdp = variant % 7 == 0 ? 2 : 1, tp = variant % 11 == 0 ? 2 : 1;
        struct faulty job = faulty_of(line_of("pp %d; vp %d; dp %d; fsdp %d; tp %d; layers %d; accumulation %d", stages,
                                              chunks, dp, fsdp, tp, stages * chunks + variant % 3, 1 + variant % 9));
        struct tiny  *tiny = &job.tiny;
        struct job_proof proof;
        tiny->parallel.layers_per_chunk_embedding = variant / 2 % 2;
        tiny->parallel.zero                       = variant % 7 != 0 && variant % 2;
        tiny->parallel.gradient_reduce            = dp > 1 && variant / 24 % 2;
        tiny->parallel.reshard                    = variant % 3;
        tiny->model.tied                          = variant / 3 % 2;
        tiny->train.recompute                     = variant % 5;
        tiny->precision.compute                   = variant % 2 == 1 ? COMPUTE_BF16 : COMPUTE_FP32;
        tiny->precision.reduce                    = variant % 4 == 1 ? FORMAT_BF16 : FORMAT_F32;
        status result                             = faulty_verify(&job, &proof);
        cr_assert(!failed(&result), "variant %d: %s", variant, result.text);
        cr_assert_eq(proof.findings, 0);
    }
}

Test(pipeline, refuses_what_it_cannot_cut)
{
    struct plan_request request = layout_request("pp 2; vp 2; layers 3");
    struct plan         plan;
    EXPECT_ERROR(plan_build(&plan, &request), EXIT_CONFIG,
                 "[parallel] pp x vp = 4 chunks, but [model] layers = 3: every chunk needs at least one");
    plan_free(&plan);
}

// SPDX-License-Identifier: MIT
// Tests pipeline stages: which weights they have, that complete pipelines are verified, and that memory is bounded.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/builder.h"
#include "gswbench/job.h"
#include "gswbench/verify.h"
#include "faulty.h"
#include "layouts.h"
#include "success.h"

static struct tiny tiny_stages(int64_t stages, int64_t chunks, int64_t layers, int64_t microbatches)
{
    struct tiny tiny        = tiny_of("");
    tiny.model.layers       = layers;
    tiny.train.accumulation = microbatches;
    tiny.parallel.pp        = stages;
    tiny.parallel.vp        = chunks;
    return tiny;
}

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
    struct tiny tiny                         = tiny_stages(2, 2, 4, 1);
    tiny.parallel.layers_per_chunk_embedding = 1;    // the four chunks then have 0, 2, 2 and 0 layers
    for (int64_t rank = 0, row = 0; rank < 2; rank++) {
        tiny_plan_rank(&tiny, 2, rank);
        cr_assert_eq(tiny.plan.unit_count, 3);
        for (int32_t unit = 0; unit < 3; unit++, row++) {
            cr_expect_eq(expected[row].rank, rank);
            cr_expect_eq(tiny.plan.units[unit].place, expected[row].place);
            cr_expect_str_eq(tiny.plan.weights[tiny.plan.units[unit].first_weight].name, expected[row].first_weight);
        }
        plan_free(&tiny.plan);
    }
}

Test(pipeline, keeps_the_streams_and_names_of_global_layers)
{
    struct tiny tiny = tiny_stages(1, 1, 4, 1);
    tiny_plan_rank(&tiny, 1, 0);
    struct plan whole = tiny.plan;
    tiny              = tiny_stages(2, 2, 4, 1);
    tiny_plan_rank(&tiny, 2, 1);
    // In the pipeline, layer 1 is the first layer of stage 1. It must have the name and random numbers that it has
    // without a pipeline.
    const struct weight_part *here  = tiny.plan.weights[tiny.plan.units[0].first_weight].part;
    const struct weight_part *there = whole.weights[whole.units[2].first_weight].part;
    cr_expect_str_eq(here->name, "model.layers.1.input_layernorm.weight");
    cr_expect_str_eq(here->name, there->name);
    cr_expect_eq(here->stream, there->stream);
    plan_free(&whole);
    plan_free(&tiny.plan);
}

Test(pipeline, has_tokens_on_the_first_and_targets_on_the_last_stage)
{
    struct tiny tiny = tiny_stages(3, 1, 3, 2);
    for (int64_t rank = 0; rank < 3; rank++) {
        tiny_plan_rank(&tiny, 3, rank);
        cr_expect_eq(tiny.plan.tokens[1] >= 0, rank == 0);
        cr_expect_eq(tiny.plan.targets[1] >= 0, rank == 2);
        plan_free(&tiny.plan);
    }
}

// In each direction, a stage sends and receives once per microbatch at each boundary of its chunks.
Test(pipeline, passes_every_boundary_once_each_way_for_each_microbatch)
{
    struct tiny tiny = tiny_stages(3, 2, 6, 4);
    for (int64_t rank = 0; rank < 3; rank++) {
        tiny_plan_rank(&tiny, 3, rank);
        // A stage sends forward at the boundary after each of its chunks, and backward at the boundary before. The
        // first and last stage have one boundary less.
        int64_t each_way = rank == 1 ? 4 : 3;
        cr_expect_eq(count_ops(&tiny.plan, OP_SEND, ANY), 4 * each_way, "rank %d: %d", (int)rank,
                     count_ops(&tiny.plan, OP_SEND, ANY));
        cr_expect_eq(count_ops(&tiny.plan, OP_RECEIVE, ANY), 4 * each_way);
        struct account account;
        plan_account(&tiny.plan, &account);
        for (int32_t i = 0; i < account.communication_count; i++) {
            bool is_pair = account.communications[i].kind == OP_SEND || account.communications[i].kind == OP_RECEIVE;
            cr_expect(!is_pair || account.communications[i].elements == 16 * 16, "tokens times hidden");
        }
        plan_free(&tiny.plan);
    }
}

Test(pipeline, needs_no_more_memory_for_more_microbatches)
{
    for (int64_t chunks = 1; chunks <= 2; chunks++) {
        for (int64_t rank = 0; rank < 3; rank++) {
            struct tiny few = tiny_stages(3, chunks, 6, 9), many = tiny_stages(3, chunks, 6, 30);
            tiny_plan_rank(&few, 3, rank);
            tiny_plan_rank(&many, 3, rank);
            cr_expect_eq(few.plan.activation_live_bytes, many.plan.activation_live_bytes, "chunks %d rank %d",
                         (int)chunks, (int)rank);
            cr_expect_lt(many.plan.storage_bytes[STORAGE_ACTIVATION], many.plan.activation_live_bytes * 5 / 4);
            plan_free(&few.plan);
            plan_free(&many.plan);
        }
    }
}

Test(pipeline, keeps_fewer_activations_on_later_stages)
{
    int64_t before = INT64_MAX;
    for (int64_t rank = 0; rank < 3; rank++) {
        struct tiny tiny = tiny_stages(4, 1, 8, 12);
        tiny_plan_rank(&tiny, 4, rank);
        cr_expect_lt(tiny.plan.activation_live_bytes, before);
        before = tiny.plan.activation_live_bytes;
        plan_free(&tiny.plan);
    }
}

// The embedding table, which the head shares, has 40 rows of 16 elements. The first and the last stage must send each
// other their gradients of it.
Test(pipeline, exchanges_the_gradient_of_a_tied_table_between_its_ends)
{
    for (int64_t stage = 0; stage < 3; stage++) {
        struct tiny tiny;
        int         sent = 0;
        tiny             = tiny_stages(3, 1, 3, 4);
        tiny.model.tied  = 1;
        tiny_plan_rank(&tiny, 3, stage);
        for (int32_t i = 0; i < tiny.plan.op_count; i++) {
            const struct op *op = &tiny.plan.ops[i];
            if (strcmp(op->tag.role, "tied gradient send") == 0) {
                cr_expect_eq(op->shape.communication.elements, 640);
                cr_expect_eq(op->shape.communication.peer, 2 - stage);
                sent++;
            }
        }
        cr_expect_eq(sent, stage == 1 ? 0 : 1, "stage %d sends %d", (int)stage, sent);
        plan_free(&tiny.plan);
    }
}

Test(pipeline, executes_what_one_rank_does)
{
    struct tiny    tiny;
    struct account account;
    double         flops;
    tiny = tiny_stages(1, 1, 5, 4);
    tiny_plan_rank(&tiny, 1, 0);
    plan_account(&tiny.plan, &account);
    plan_free(&tiny.plan);

    tiny = tiny_stages(2, 2, 5, 4);
    for (int64_t rank = 0; rank < 2; rank++) {
        struct plan_request request = tiny_request(&tiny, 2, rank);
        tiny_plan_rank(&tiny, 2, rank);
        REQUIRE(plan_hardware_flops(&tiny.plan, &request, &flops));
        cr_expect_float_eq(flops, account.hardware_flops, 1e-9 * flops);
        plan_free(&tiny.plan);
    }
}

Test(pipeline, is_sound_as_a_whole, .timeout = 120)
{
    for (int variant = 0; variant < 96; variant++) {
        struct faulty    job = {.rank = FAULTY_NONE};
        struct job_proof proof;
        struct tiny     *tiny   = &job.tiny;
        int64_t          stages = 2 + variant % 4, chunks = 1 + variant / 4 % 3;
        *tiny = tiny_stages(stages, chunks, stages * chunks + variant % 3, 1 + variant % 9);
        tiny->parallel.layers_per_chunk_embedding = variant / 2 % 2;
        tiny->parallel.dp                         = 1 + variant / 12 % 2;
        tiny->parallel.fsdp                       = variant % 7 == 0 ? 2 : 1;
        tiny->parallel.tp                         = variant % 11 == 0 ? 2 : 1;
        tiny->parallel.zero                       = variant % 7 != 0 && variant % 2;
        tiny->parallel.gradient_reduce            = tiny->parallel.dp > 1 && variant / 24 % 2;
        tiny->parallel.reshard                    = variant % 3;
        tiny->model.tied                          = variant / 3 % 2;
        tiny->train.recompute                     = variant % 5;
        tiny->precision.compute                   = variant % 2 == 1 ? COMPUTE_BF16 : COMPUTE_FP32;
        tiny->precision.reduce                    = variant % 4 == 1 ? FORMAT_BF16 : FORMAT_F32;
        job.world     = stages * tiny->parallel.dp * tiny->parallel.fsdp * tiny->parallel.tp;
        status result = faulty_verify(&job, &proof);
        cr_assert(!failed(&result), "variant %d: %s", variant, result.text);
        cr_assert_eq(proof.findings, 0);
    }
}

Test(pipeline, refuses_what_it_cannot_cut)
{
    struct tiny tiny            = tiny_stages(2, 2, 4, 1);
    tiny.model.layers           = 3;
    struct plan_request request = tiny_request(&tiny, 2, 0);
    EXPECT_ERROR(plan_build(&tiny.plan, &request), EXIT_CONFIG,
                 "[parallel] pp x vp = 4 chunks, but [model] layers = 3: every chunk needs at least one");
    plan_free(&tiny.plan);
}

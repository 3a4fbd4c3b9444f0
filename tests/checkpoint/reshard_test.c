// SPDX-License-Identifier: MIT
// Tests resharding: a checkpoint that is loaded under any layout must have the same tensors bit by bit, and training
// must continue with the same losses.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/catalogue.h"
#include "folder.h"
#include "gswbench/text.h"
#include "gswbench/arena.h"
#include "line.h"
#include "same_training.h"
#include "success.h"

enum { BATCH = 8, STEPS = 2, MORE_STEPS = 5 };

static char saved[64], again[64];

static void make_base(void)
{
    make_folder();
    snprintf(saved, sizeof(saved), "%s/saved", folder);
    snprintf(again, sizeof(again), "%s/again", folder);
}

static void clear(const char *path)
{
    cr_assert_eq(system(line_of("rm -rf %s", path)), 0);
}

TestSuite(reshard, .init = make_base, .fini = remove_folder, .timeout = 120);

// Reads all slices of a tensor and returns the whole tensor, row by row.
static char *assemble(struct catalogue *catalogue, const struct stored_tensor *tensor, size_t *bytes)
{
    size_t element = (size_t)format_bytes(tensor->slices[0].entry.format, 1);
    *bytes         = (size_t)(tensor->rows * tensor->columns) * element;
    char *whole    = memory_allocate(*bytes);
    for (int64_t i = 0; i < tensor->count; i++) {
        struct rectangle at = tensor->slices[i].at;
        const void      *data;
        REQUIRE(catalogue_read(catalogue, &tensor->slices[i], &at, &data));
        for (int64_t row = 0; row < at.rows; row++) {
            memcpy(whole + (size_t)((at.row + row) * tensor->columns + at.column) * element,
                   (const char *)data + (size_t)(row * at.columns) * element, (size_t)at.columns * element);
        }
    }
    return whole;
}

// Compares every weight of two checkpoints bit by bit. Returns the number of compared tensors.
static int expect_equal_tensors(const char *a, const char *b, const char *layout)
{
    struct catalogue x, y;
    int              tensors = 0;
    status           first = catalogue_open(&x, a, true), second = catalogue_open(&y, b, true);
    cr_assert(!failed(&first) && !failed(&second), "%s: %s%s", layout, first.text, second.text);
    for (int64_t i = 0; i < x.count;) {
        struct stored_tensor one = catalogue_find(&x, STATE_WEIGHT, x.slices[i].tensor);
        struct stored_tensor two = catalogue_find(&y, STATE_WEIGHT, x.slices[i].tensor);
        size_t               bytes, other_bytes = 0;
        cr_assert_gt(two.count, 0, "%s: %s is missing", layout, x.slices[i].tensor);
        char *own = assemble(&x, &one, &bytes), *other = assemble(&y, &two, &other_bytes);
        cr_expect_eq(bytes, other_bytes);
        cr_expect_eq(memcmp(own, other, bytes), 0, "%s: %s differs", layout, x.slices[i].tensor);
        free(own);
        free(other);
        i += one.count;
        tensors++;
    }
    int others = 0;
    for (int64_t i = 0; i < y.count; i++) {
        others += i == 0 || strcmp(y.slices[i].tensor, y.slices[i - 1].tensor) != 0;
    }
    cr_expect_eq(tensors, others, "%s", layout);
    catalogue_close(&x);
    catalogue_close(&y);
    return tensors;
}

static struct training train(const char *model, const char *layout, int steps, const char *load, const char *save)
{
    struct training training = training_of(model, layout, BATCH, steps);
    training.load            = load;
    training.save            = save;
    training_run(&training);
    return training;
}

// Loads the checkpoint under a layout. Saved again it must have the same tensors, and further steps must have the
// losses and gradient norms of `whole`, a training without interruption.
static void expect_same_under(const char *model, const char *layout, const struct training *whole, double tolerance)
{
    train(model, layout, 0, saved, again);
    cr_expect_gt(expect_equal_tensors(saved, again, layout), 20);
    clear(again);
    struct training on = train(model, layout, MORE_STEPS, saved, NULL);
    for (int step = 0; step < MORE_STEPS; step++) {
        expect_near(on.loss[step], whole->loss[STEPS + step], tolerance, line_of("%s, step %d: loss", layout, step));
        expect_near(on.norm[step], whole->norm[STEPS + step], 10 * tolerance,
                    line_of("%s, step %d: norm", layout, step));
    }
}

// Saves under `layout`, then loads under the same layout and under each of `others`, a list separated by "|".
static void expect_same_under_all(const char *model, const char *layout, const char *others, double tolerance)
{
    struct training whole = train(model, layout, STEPS + MORE_STEPS, NULL, NULL);
    char            texts[1024], *rest;
    cr_assert(text_copy(texts, sizeof(texts), others));
    train(model, layout, STEPS, NULL, saved);
    expect_same_under(model, layout, &whole, 0);
    for (char *other = strtok_r(texts, "|", &rest); other != NULL; other = strtok_r(NULL, "|", &rest)) {
        expect_same_under(model, other, &whole, tolerance);
    }
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

#define SMALL "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; "
static const char dense[] = SMALL "learning_rate 5e-4";

#define ADAPTED SMALL "learning_rate 5e-3; rank 2; alpha 6"

Test(reshard, carries_adapters_and_starts_them_on_a_model_without_any)
{
    expect_same_under_all(ADAPTED, "fsdp 2", "fsdp 1|tp 4|pp 3|dp 2; tp 2; zero 1", 1e-5);

    // LoRA starts with B = 0, so the first loss must equal the loss of the model without adapters.
    clear(saved);
    train(dense, "fsdp 2", STEPS, NULL, saved);
    struct training plain = train(dense, "tp 2", 1, saved, NULL), adapted = train(ADAPTED, "tp 2", 2, saved, NULL);
    cr_expect_eq(adapted.loss[0], plain.loss[0]);
    cr_expect_neq(adapted.loss[1], plain.loss[0]);
    cr_expect_gt(adapted.norm[0], 0);
}

Test(reshard, carries_a_dense_model_from_one_layout_to_any)
{
    expect_same_under_all(dense, "fsdp 2; tp 2",
                          "fsdp 1|fsdp 4|dp 2; fsdp 2|dp 4; zero 1|tp 4|pp 3|dp 2; tp 2; zero 1|fsdp 2; tp 2|"
                          "tp 2; pp 2|cp 2; accumulation 4|cp 2; shard_over_cp yes; accumulation 4|"
                          "dp 2; fsdp 2; cp 2; shard_over_cp yes|tp 2; cp 2; pp 2; shard_over_cp yes; accumulation 4|"
                          "dp 2; pp 2; zero 1; zero_gather forward|fsdp 2; tp 2; pp 2",
                          2e-6);
}

// Writes Hugging Face files with an index and trains from them. They contain the initial weights that the seed gives,
// so the losses must equal a training that draws its weights from the same seed.
Test(reshard, begins_with_weights_that_an_index_deals_to_files)
{
    struct plan          plan;
    struct output_folder held;
    struct training      drawn = train(dense, "fsdp 2; tp 2", STEPS, NULL, NULL);
    REQUIRE(checkpoint_plan(&plan, &drawn.tiny.model, drawn.tiny.train.sequence));
    struct weight_source source = {.plan = &plan, .seed = drawn.seed};
    REQUIRE(output_claim_folder(&held, saved));
    REQUIRE(checkpoint_write_folder(&source, &held, 3000));
    output_close_folder(&held);
    plan_free(&plan);

    struct training loaded = train(dense, "fsdp 2; tp 2", STEPS, saved, NULL);

    struct checkpoint_contents contents;
    EXPECT_SUCCESS(checkpoint_verify(saved, &contents));
    cr_expect_gt(contents.files, 3);
    cr_expect_arr_eq(loaded.loss, drawn.loss, STEPS * sizeof(float));
    cr_expect_arr_eq(loaded.norm, drawn.norm, STEPS * sizeof(float));
}

Test(reshard, carries_the_embedding_that_the_head_is_tied_to)
{
    expect_same_under_all(SMALL "tied yes", "fsdp 2; pp 2", "fsdp 1|pp 3|dp 2; tp 2; pp 2; zero 1", 2e-6);
}

Test(reshard, carries_the_momentum_of_muon_to_other_owners)
{
    expect_same_under_all(SMALL "learning_rate 2e-3; "
                                "experts 4; top_k 2; capacity_scope sequence; pattern dense, experts; optimizer muon",
                          "dp 4; ep 2; zero 1", "dp 1|tp 2|dp 2; zero 1; pp 3|dp 2; ep 2; tp 2; zero 1", 1e-5);
}

// Tests MTP modules with experts. Their pipeline stage has a copy of the embedding, which must be saved once.
Test(reshard, carries_layers_that_predict_further_tokens)
{
    expect_same_under_all("layers 3; predicted_tokens 2; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; "
                          "learning_rate 5e-4; experts 4; top_k 2",
                          "fsdp 4; ep 2",
                          "fsdp 1|dp 4; ep 2; zero 1|fsdp 2; tp 2|pp 3|"
                          "dp 2; ep 2; pp 2; last_chunk_layers 1; zero 1; zero_gather forward|fsdp 2; tp 2; pp 2",
                          1e-5);
}

Test(reshard, carries_experts_from_one_layout_to_any)
{
    expect_same_under_all(SMALL "learning_rate 5e-4; experts 4; top_k 2", "fsdp 4; ep 2",
                          "fsdp 1|dp 4; ep 2|dp 4; ep 4; zero 1|fsdp 4; ep 2|fsdp 2; tp 2|dp 2; fsdp 2; ep 2|"
                          "dp 2; ep 2; tp 2|pp 3|dp 2; ep 2; pp 2|tp 4|dp 2; ep 2; cp 2; accumulation 4|"
                          "fsdp 2; ep 2; tp 2; pp 2|tp 2; ep 2; etp 1|fsdp 2; tp 2; ep 4; etp 1; pp 2|"
                          "dp 2; tp 2; cp 2; ep 2; etp 1; zero 1; accumulation 2",
                          1e-5);
}

// With fewer KV heads than tp ranks, several ranks replicate a head. The head must be saved only once.
Test(reshard, carries_heads_of_several_ranks_to_one_each_and_back)
{
    static const char heads[] = "layers 3; ffn 20; kv_heads 2; vocab 37; vocab_multiple 2; sequence 16; "
                                "learning_rate 5e-4; qk_norm yes; attention_bias yes";
    expect_same_under_all(heads, "tp 4", "fsdp 1|tp 2|tp 4; pp 3|fsdp 2; tp 4|dp 2; tp 4; zero 1", 2e-6);
    clear(saved);
    expect_same_under_all(heads, "fsdp 2; tp 2", "tp 4", 2e-6);
}

// The learned position table is replicated on tp ranks, and once more on another stage if the head is tied to the
// embedding.
Test(reshard, carries_learned_positions)
{
    expect_same_under_all(SMALL "learning_rate 5e-4; tied yes; positions learned; max_positions 19", "fsdp 2; pp 2",
                          "fsdp 1|pp 3|tp 4|dp 2; tp 2; pp 2; zero 1|cp 2; accumulation 4", 2e-6);
}

// Attention sinks and some biases are sharded over tp, other biases are replicated.
Test(reshard, carries_sinks_and_biases)
{
    expect_same_under_all("layers 4; pattern (window_attention + experts, dense); window 5; attention_sinks yes; "
                          "attention_bias yes; mlp_bias yes; router_offset yes; ffn 20; kv_heads 4; vocab 37; "
                          "vocab_multiple 2; sequence 16; learning_rate 5e-4; experts 4; top_k 2",
                          "fsdp 2; tp 2; ep 2",
                          "fsdp 1|dp 2; ep 2; tp 2|tp 4; zero 1|pp 4|tp 2; ep 2; etp 1|fsdp 4; ep 2", 1e-5);
}

enum { BIASES = 12 };

static void read_biases(const char *checkpoint, float biases[BIASES])
{
    struct catalogue catalogue;
    size_t           bytes;
    REQUIRE(catalogue_open(&catalogue, checkpoint, true));
    struct stored_tensor stored = catalogue_find(&catalogue, STATE_WEIGHT, ROUTER_BIAS);
    cr_assert_eq(stored.count, 1);
    char *data = assemble(&catalogue, &stored, &bytes);
    cr_assert_eq(bytes, BIASES * sizeof(*biases));
    memcpy(biases, data, bytes);
    free(data);
    catalogue_close(&catalogue);
}

static const char biased[] = SMALL "learning_rate 5e-4; experts 4; top_k 2; "
                                   "router_score sigmoid; router_bias_rate 0.003; shared_ffn 12";

// Router biases change which experts are selected, so training would differ if they were not saved. The update rate is
// large, so the biases oscillate, and some return to zero after two steps: at least half must differ from zero.
Test(reshard, carries_the_biases_of_routers)
{
    float biases[BIASES];
    int   moved = 0;
    expect_same_under_all(biased, "fsdp 4; ep 2", "fsdp 1|dp 2; ep 2; tp 2|pp 3|tp 2; ep 2; etp 1", 1e-5);
    read_biases(saved, biases);
    for (int i = 0; i < BIASES; i++) {
        moved += biases[i] != 0;
    }
    cr_expect_gt(moved, BIASES / 2, "%d", moved);
}

Test(reshard, has_the_biases_of_routers_beside_exported_weights)
{
    float           biases[BIASES], carried[BIASES];
    struct training training = training_of(biased, "fsdp 4; ep 2", BATCH, STEPS);
    const char     *exported = line_of("%s/exported", folder);
    training.save            = saved;
    training.weights         = exported;
    training_run(&training);
    train(biased, "pp 3", 0, exported, again);
    read_biases(saved, biases);
    read_biases(again, carried);
    cr_expect_eq(memcmp(biases, carried, sizeof(biases)), 0);
    cr_expect_neq(biases[0], 0);
}

// With etp 1, each tp rank has different whole experts and saves them.
Test(reshard, carries_whole_experts_to_sharded_ones_and_to_one_rank)
{
    expect_same_under_all(SMALL "learning_rate 5e-4; experts 4; top_k 2", "dp 2; tp 2; ep 4; etp 1; zero 1",
                          "fsdp 1|tp 2|dp 2; ep 2; tp 2|tp 4; ep 4; etp 1|dp 2; tp 2; ep 2; etp 1|"
                          "tp 2; cp 2; ep 4; etp 1; accumulation 4|tp 2; cp 2; ep 2; ep_over_cp yes; accumulation 4|"
                          "dp 4; ep 4; zero 1",
                          1e-5);
}

// Tests BF16 weights with fp32 master weights. Rounding makes losses differ between layouts, but saved tensors must be
// equal.
Test(reshard, carries_weights_in_few_digits)
{
    expect_same_under_all(SMALL "learning_rate 5e-4; compute bf16", "fsdp 2; tp 2",
                          "fsdp 1|dp 2; tp 2; zero 1|tp 4; pp 2|fsdp 2; cp 2; accumulation 2", 5e-3);
}

Test(reshard, goes_on_bit_by_bit_in_fp8)
{
    static const char *const recipes[] = {"recipe current", "recipe delayed", "recipe current; fp8_weights yes",
                                          "recipe delayed; fp8_weights yes", "recipe current; fp8_fused no"};
    static const char *const layouts[] = {"fsdp 1", "fsdp 2", "dp 2; zero 1", "dp 2; tp 2"};
    for (size_t i = 0; i < COUNT(recipes) * COUNT(layouts); i++) {
        const char *layout = layouts[i % COUNT(layouts)];
        const char *model  = line_of("hidden 32; head_dim 16; heads 4; ffn 64; kv_heads 4; vocab 64; sequence 16; "
                                      "learning_rate 5e-4; compute fp8; %s",
                                     recipes[i / COUNT(layouts)]);
        clear(saved);
        expect_same_under_all(model, layout, "", 0);
    }
}

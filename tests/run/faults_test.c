// SPDX-License-Identifier: MIT
// Injects faults into numbers of a run. No result with a fault may claim to be valid.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/random.h"
#include "whole_run.h"

// A model so small that thousands of runs are fast. Its losses are near ln 64.
#define SMALL                                                                                                          \
    "run --config tiny-llama --layers 1 --steps 4 --warmup 1 --backend host --ranks 2 "                                \
    "--set trace.steps=0 --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 "    \
    "--set model.ffn=32 --set model.vocab=64 --set train.sequence=16 --set train.micro_batch=1 "                       \
    "--set train.global_batch=2 "

TestSuite(faults, .init = make_folder, .fini = remove_folder, .timeout = 4000);

// Expects a reason with this id and rank, whose message contains this text.
static void expect_found(json_t *document, const char *id, int rank, const char *part)
{
    json_t *reason = reason_of(document, id);
    cr_assert_not_null(reason, "no %s in %s", id, output);
    cr_expect_eq(number_at(reason, "rank"), rank, "%s", text_of(reason, "message"));
    cr_expect_not_null(strstr(text_of(reason, "message"), part), "no %s in %s", part, text_of(reason, "message"));
}

// Injects a NaN at each of five tensors and ops, on each of two ranks, in each of four steps: 40 runs.
Test(faults, a_number_that_is_none_ends_the_run_with_its_step_rank_and_tensor)
{
    static const struct {
        const char *at, *tensor;
    } places[] = {
        {"tensor weights, layer 0", "weights, layer 0"},
        {"\"fc1\"", "fc1, layer 0"},
        {"fc2 weight gradient", "weight gradient, layer 0"},
        {"\"loss\"", "loss"},
        {"gradient reduce-scatter", "gradients"},
    };
    for (size_t place = 0; place < sizeof(places) / sizeof(places[0]); place++) {
        for (int cell = 0; cell < 8; cell++) {
            int         rank = cell % 2, step = cell / 2;
            const char *start = line_of("step %d, rank %d: ", step, rank);
            json_t     *document =
                run_json(line_of(SMALL "--set parallel.fsdp=2 --set fault.kind=nan --set fault.repeats=yes "
                                       "--set fault.rank=%d --set fault.step=%d --set 'fault.at=%s'",
                                 rank, step, places[place].at),
                         EXIT_INVALID);
            expect_found(document, "not-finite", rank, start);
            cr_expect_str_eq(text_of(document, "status"), "invalid");
            cr_expect_not_null(strstr(text_of(reason_of(document, "not-finite"), "message"), places[place].tensor));
            cr_expect_eq(number_at(reason_of(document, "not-finite"), "step"), step);
            cr_expect_eq(json_array_size(json_object_get(document, "steps")), (size_t)step + 1, "%s", start);
            cr_expect_null(json_object_get(document, "result"));
            json_decref(document);
        }
    }
}

// Loss and norm are correct, but the clip scale is NaN on one rank, so its AdamW skips the update.
Test(faults, a_clip_scale_that_is_none_ends_invalid_with_its_rank)
{
    json_t *document =
        run_json(SMALL "--set parallel.dp=1 --set parallel.fsdp=2 --set fault.kind=nan --set fault.rank=1 "
                       "--set fault.step=2 --set 'fault.at=\"clip\"' --set fault.element=1",
                 EXIT_INVALID);
    expect_found(document, "scale-not-finite", 1,
                 "step 2, rank 1: the clip scale is nan, but loss and gradient norm are "
                 "finite: AdamW did not update the weights of this rank");
    json_decref(document);
}

static bool is_changed(json_t *document, json_t *clean, const char *key)
{
    for (size_t step = 0; step < json_array_size(json_object_get(document, "steps")); step++) {
        double is = step_real(document, step, key), was = step_real(clean, step, key);
        if (!(fabs(is - was) <= 1e-6 * fabs(was))) {
            return true;
        }
    }
    return false;
}

static uint32_t draw(int64_t number, uint64_t choice, uint32_t bound)
{
    return random_below(random_key(7, 0), choice, (uint64_t)number, bound);
}

enum { DEFAULT_STEPS = 50 };

// Flips one bit of a GEMM output, a gradient, a weight or received data. Returns whether the run is VALID although its
// loss or norm changed. In a step that runs twice this is an error.
static bool goes_unnoticed(const char *options, int64_t number, uint32_t steps, json_t *clean)
{
    static const char *const places[] = {
        "qkv",
        "fc1",
        "head",
        "fc2 data gradient",
        "weight gradient",
        "norm gradient",
        "tensor weights, layer 0",
        "gradient reduce",
        "loss reduce",
        "adamw",
    };
    const uint32_t places_count = sizeof(places) / sizeof(places[0]);
    const char    *line         = line_of(SMALL "%s --set fault.kind=flip --set fault.rank=%u --set fault.step=%u "
                                                           "--set 'fault.at=%s' --set fault.element=%u --set fault.bit=%u",
                                          options, draw(number, 0, 2), draw(number, 1, steps),
                                          places[draw(number, 2, places_count)], draw(number, 3, 1000000), draw(number, 4, 32));
    json_t        *document     = run_json(line, ANY_EXIT_CODE);
    bool           is_valid     = strcmp(text_of(document, "status"), "valid") == 0 ||
                    strcmp(text_of(document, "status"), "degraded") == 0;    // DEGRADED if ranks share cores
    bool is_unnoticed = is_valid && (is_changed(document, clean, "loss") || is_changed(document, clean, "grad_norm"));
    bool is_run_twice = json_is_true(
        json_object_get(json_array_get(json_object_get(document, "steps"), draw(number, 1, steps)), "run_twice"));
    cr_expect(!is_unnoticed || !is_run_twice, "%s", line);
    json_decref(document);
    return is_unnoticed;
}

// Every step runs twice, so each flip must be detected. GSWBENCH_FLIPS sets the number of flips.
Test(faults, no_flipped_bit_that_changes_loss_or_norm_is_valid_where_every_step_is_run_twice)
{
    static const char *const axes[] = {"--set run.verify=full --set parallel.fsdp=2",
                                       "--set run.verify=full --set parallel.fsdp=1 --set parallel.dp=2"};
    const char              *asked  = getenv("GSWBENCH_FLIPS");
    int64_t                  flips  = asked != NULL ? atoll(asked) : 240;
    for (int i = 0; i < 2; i++) {
        json_t *clean = run_json(line_of(SMALL "%s", axes[i]), EXIT_VALID);
        cr_expect_eq(number_at(clean, "validation.repeated_steps_equal"), 4);
        for (int64_t flip = 0; flip < flips / 2; flip++) {
            goes_unnoticed(axes[i], flip, 4, clean);
        }
        json_decref(clean);
    }
}

// With default settings only some steps run twice. In these, each flip must be detected. GSWBENCH_FLIPS sets the number
// of flips; the test then prints how many are undetected in other steps.
Test(faults, no_flipped_bit_that_changes_loss_or_norm_is_valid_in_a_step_that_is_run_twice)
{
    const char *asked = getenv("GSWBENCH_FLIPS"), *options = "--set parallel.fsdp=2 --steps 50 --set run.warmup=10";
    int64_t     flips = asked != NULL ? atoll(asked) : 60, unnoticed = 0, twice = 0;
    json_t     *clean = run_json(line_of(SMALL "%s", options), ANY_EXIT_CODE);
    for (size_t i = 0; i < DEFAULT_STEPS; i++) {
        twice += json_is_true(json_object_get(json_array_get(json_object_get(clean, "steps"), i), "run_twice"));
    }
    cr_expect_eq(twice, 4);
    for (int64_t flip = 0; flip < flips; flip++) {
        unnoticed += goes_unnoticed(options, flip, DEFAULT_STEPS, clean);
    }
    cr_log_info("%d of %d flips changed a step that is run once, and nobody noticed", (int)unnoticed, (int)flips);
    json_decref(clean);
}

Test(faults, a_communication_that_brings_another_number_than_it_should_ends_the_run_before_its_first_step)
{
    static const struct {
        const char *axes, *at;
    } rows[] = {
        {"--set parallel.fsdp=2", "weight gather"},
        {"--set parallel.fsdp=2", "gradient reduce-scatter"},
        {"--set parallel.fsdp=1 --set parallel.dp=2", "gradient reduce"},
        {"--set parallel.fsdp=1 --set parallel.cp=2", "kv gather"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *document = run_json(line_of(SMALL "%s --set fault.kind=flip --set fault.bit=14 --set fault.rank=1 "
                                                  "--set fault.step=-1 --set 'fault.at=%s'",
                                            rows[i].axes, rows[i].at),
                                    EXIT_INVALID);
        expect_found(document, "transfer-wrong", 1, "test of collectives before the steps");
        cr_expect_eq(json_array_size(json_object_get(document, "steps")), 0);
        json_decref(document);
    }
}

// With default settings, a skipped op is detected in each step, even if the repeated step skips it as well.
Test(faults, an_op_that_is_left_out_ends_invalid_with_step_rank_and_stream)
{
    static const char *const places[] = {
        "embedding",
        "attention norm",
        "qkv",
        "rope",
        "attention",
        "fc1",
        "activation",
        "fc2",
        "final norm",
        "head",
        "cross entropy",
        "loss",
        "head weight gradient",
        "fc2 data gradient",
        "mlp norm gradient",
        "qkv weight gradient",
        "embedding gradient",
        "gradient norm",
        "clip",
        "adamw",
    };
    for (int64_t number = 0; number < 40; number++) {
        int         rank = (int)draw(number, 8, 2), step = (int)draw(number, 9, 12);
        const char *start = line_of("step %d, rank %d: the compute stream executed ", step, rank);
        json_t     *document =
            run_json(line_of(SMALL "--steps 12 --set parallel.fsdp=1 --set parallel.dp=2 --set fault.kind=skip "
                                   "--set fault.rank=%d --set fault.step=%d --set 'fault.at=%s' --set fault.repeats=%s",
                             rank, step, places[number / 2], number % 2 == 0 ? "yes" : "no"),
                     EXIT_INVALID);
        expect_found(document, "ops-left-out", rank, start);
        json_decref(document);
    }
}

// The device of one rank makes the same error each time it runs an op.
Test(faults, a_rank_whose_device_computes_another_number_than_the_others_is_named_before_the_first_step)
{
    static const struct {
        const char *at, *id;
    } rows[] = {
        {"fc2 weight gradient", "gemm-wrong"},
        {"head data gradient", "gemm-wrong"},
        {"norm", "device-differs"},
        {"embedding", "device-differs"},
        {"adamw", "device-differs"},
        {"cross entropy", "device-differs"},
    };
    for (int64_t number = 0; number < 24; number++) {
        const char *at   = rows[number % 6].at;
        int         rank = (int)draw(number, 5, 3);
        // Flips bits below the sign, because the sign of a zero does not change a GEMM.
        json_t *document =
            run_json(line_of(SMALL "--ranks 3 --set parallel.fsdp=1 --set parallel.dp=3 --set train.global_batch=3 "
                                   "--set fault.kind=flip --set fault.step=-1 --set fault.rank=%d --set 'fault.at=%s' "
                                   "--set fault.element=%u --set fault.bit=%u",
                             rank, at, draw(number, 6, 1000000), draw(number, 7, 15)),
                     EXIT_INVALID);

        expect_found(document, rows[number % 6].id, rank, "");
        cr_expect_eq(json_array_size(json_object_get(document, "steps")), 0, "%s", at);
        json_decref(document);
    }
}

// Correct runs must never get a reason of verification. GSWBENCH_CLEAN_CHECKS sets the number of runs.
Test(faults, what_is_right_is_never_called_wrong)
{
    static const char *const layouts[] = {
        "--ranks 4 --set parallel.fsdp=4",
        "--ranks 4 --set parallel.dp=2 --set parallel.fsdp=2 --set precision.compute=fp8",
        "--ranks 4 --set parallel.fsdp=2 --set parallel.cp=2 --set precision.compute=fp32",
        "--ranks 4 --set parallel.fsdp=1 --set parallel.dp=2 --set parallel.pp=2 --layers 2 --set "
        "train.accumulation=2 --set train.global_batch=4",
        "--ranks 2 --set parallel.fsdp=1 --set parallel.tp=2 --set model.kv_heads=2 --set model.vocab=50 --set "
        "model.vocab_multiple=64 --set train.accumulation=4",
        "--ranks 2 --set parallel.fsdp=1 --set parallel.dp=2 --set parallel.ep=2 --set model.family=mixtral --set "
        "model.experts=4 --set model.top_k=2 --set train.accumulation=2",
    };
    enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };
    const char *asked  = getenv("GSWBENCH_CLEAN_CHECKS");
    int64_t     checks = asked != NULL ? atoll(asked) : 600, seen = 0;
    for (int64_t number = 0; seen < checks || number < LAYOUTS; number++) {
        json_t *document =
            run_json(line_of(SMALL "--set train.global_batch=4 --set run.verify=full %s --set run.seed=%d",
                             layouts[number % LAYOUTS], (int)number),
                     EXIT_VALID);
        json_int_t count = number_at(document, "validation.examined_ops") +
                           number_at(document, "validation.examined_transfers") +
                           number_at(document, "validation.repeated_steps");
        cr_assert_gt(count, 30, "%s", layouts[number % LAYOUTS]);
        seen += count;
        json_decref(document);
    }
}

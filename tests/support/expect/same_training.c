// SPDX-License-Identifier: MIT
// Compares two trainings step by step and weight by weight.
#include "same_training.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "gswbench/arena.h"
#include "gswbench/job.h"
#include "gswbench/plan_build.h"
#include "drawn_layout.h"
#include "layouts.h"
#include "line.h"
#include "safetensors_read.h"
#include "success.h"

struct training training_of(const char *model, const char *layout, int64_t sequences, int steps)
{
    struct training training = {.tiny = tiny_of(model), .steps = steps, .threads = 1, .seed = 5};
    training.ranks           = layout_apply(&training.tiny, layout);
    layout_assignment(&training.tiny, sequences);
    return training;
}

void expect_refusal(const char *model, const char *layout, int64_t sequences, const char *remedy)
{
    struct training      training = training_of(model, layout, sequences, 1);
    struct plan_sections sections = drawn_layout_sections(&training);
    struct plan_request  request  = resolved(&sections);
    status               result   = plan_supports(&request);
    cr_expect(failed(&result) && result.exit_code == EXIT_CONFIG, "%s", layout);
    cr_expect_not_null(strstr(result.text, remedy), "%s: %s", layout, result.text);
}

void expect_proof(const struct training *training, const char *name)
{
    struct plan_request request = tiny_request(&training->tiny, training->ranks, 0);
    struct job_proof    proof;
    status              result = job_verify(&request, &proof);
    cr_assert(!failed(&result), "%s: %s", name, result.text);
    cr_assert_eq(proof.findings, 0, "%s", name);
}

void expect_near(float value, float expected, double tolerance, const char *what)
{
    cr_expect(fabs((double)value - (double)expected) <= tolerance * fabs((double)expected), "%s %.8f, not %.8f", what,
              (double)value, (double)expected);
}

// Returns the norm of the difference of a tensor in two folders, relative to its norm in the second folder.
static double distance(struct safetensors_reader *a, struct safetensors_reader *b, const struct safetensor *tensor)
{
    float *x = memory_allocate((size_t)tensor->bytes), *y = memory_allocate((size_t)tensor->bytes);
    REQUIRE(safetensors_read(a, tensor->name, x, tensor->bytes));
    REQUIRE(safetensors_read(b, tensor->name, y, tensor->bytes));
    double square = 0, difference = 0;
    for (int64_t i = 0; i < tensor->bytes / (int64_t)sizeof(float); i++) {
        square += (double)y[i] * (double)y[i];
        difference += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    }
    free(x);
    free(y);
    return difference > 0 ? sqrt(difference / square) : 0;    // the bias of an expert without tokens stays zero
}

static void expect_equal_weights(const char *many, const char *one, double tolerance, const char *layout)
{
    struct safetensors_reader readers[2];
    for (int i = 0; i < 2; i++) {
        REQUIRE(safetensors_open(&readers[i], line_of("%s/model.safetensors", i == 0 ? many : one)));
    }
    cr_expect_eq(readers[0].count, readers[1].count);
    for (int32_t i = 0; i < readers[1].count; i++) {
        // The gradient of a bias is a sum over tokens that nearly cancel, so rounding matters more. In one draw,
        // OpenBLAS's kernels for Haswell leave an error of 1.5e-5, and those for Sandy Bridge less than 1e-5.
        double error = distance(&readers[0], &readers[1], &readers[1].tensors[i]);
        // B of an adapter starts at zero, so its norm comes from a few updates only.
        bool   is_bias = strstr(readers[1].tensors[i].name, "bias") != NULL;
        bool   is_b    = strstr(readers[1].tensors[i].name, "lora_B") != NULL;
        double allowed = is_bias ? 2 * tolerance : is_b ? 3 * tolerance : tolerance;
        cr_expect(error <= allowed, "%s: %s differs by %.2g", layout, readers[1].tensors[i].name, error);
    }
    safetensors_close(&readers[0]);
    safetensors_close(&readers[1]);
}

// Compares routing statistics, which count each token on the rank that routed it. For each layer they are: tokens per
// expert, the number of dropped token-expert pairs, and the auxiliary loss.
static void expect_same_routing(const struct training *many, const struct training *one, double tolerance,
                                const char *layout)
{
    int64_t experts = one->tiny.model.experts, width = experts + 2;
    double  choices = (double)(one->tiny.parallel.dp * one->tiny.parallel.fsdp * one->tiny.train.micro_batch *
                              one->tiny.train.accumulation * one->tiny.train.sequence * one->tiny.model.top_k);
    for (int64_t layer = 0; layer < layers_with_experts(&one->tiny.model) && experts > 1; layer++) {
        const float *row = many->routing + layer * width, *expected = one->routing + layer * width;
        double       sum = 0;
        for (int64_t i = 0; i <= experts; i++) {
            cr_expect_eq(row[i], expected[i], "%s, layer %d: %g choices at %d, not %g", layout, (int)layer,
                         (double)row[i], (int)i, (double)expected[i]);
            sum += i < experts ? (double)row[i] : 0;
        }
        cr_expect_eq(sum, choices, "%s, layer %d: %g choices, not %g", layout, (int)layer, sum, choices);
        expect_near(row[experts + 1], expected[experts + 1], tolerance, layout);
    }
}

void expect_same_training(struct training *many, struct training *one, const struct closeness *closeness,
                          const char *layout)
{
    make_folder();
    const char *many_folder = line_of("%s/many", folder);
    const char *one_folder  = line_of("%s/one", folder);
    many->weights           = many_folder;
    one->weights            = one_folder;
    training_run(many);
    training_run(one);

    cr_expect_arr_eq(many->storage_bytes, many->planned_bytes, sizeof(many->planned_bytes), "%s", layout);
    cr_expect_eq(many->allocations_in_steps, 0, "%s", layout);
    expect_equal_weights(many_folder, one_folder, closeness->weights, layout);
    expect_same_routing(many, one, closeness->loss, layout);
    for (int step = 0; step < many->steps; step++) {
        expect_near(many->loss[step], one->loss[step], closeness->loss, line_of("%s, step %d: loss", layout, step));
        expect_near(many->prediction_loss[step], one->prediction_loss[step], closeness->loss,
                    line_of("%s, step %d: loss of further tokens", layout, step));
        expect_near(many->norm[step], one->norm[step], closeness->norm, line_of("%s, step %d: norm", layout, step));
    }
    remove_folder();
}

struct training on_one_rank(const struct training *many, void (*alone)(struct tiny *tiny))
{
    struct training one = *many;
    one.ranks           = 1;
    alone(&one.tiny);
    return one;
}

void expect_as_one_rank(struct training *many, void (*alone)(struct tiny *tiny), const char *layout)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5}, low_precision = {1e-2, 3e-2, 3e-2};
    struct training               one              = on_one_rank(many, alone);
    bool                          is_low_precision = many->tiny.precision.compute == COMPUTE_BF16;
    expect_same_training(many, &one, is_low_precision ? &low_precision : &exact, layout);
}

void expect_losses(struct training *many, const struct training *one, double tolerance, const char *layout)
{
    training_run(many);
    for (int step = 0; step < many->steps; step++) {
        const char *text = line_of("%s, step %d: loss", layout, step);
        expect_near(many->loss[step], one->loss[step], tolerance, text);
        expect_near(many->prediction_loss[step], one->prediction_loss[step], tolerance, text);
    }
    cr_expect_arr_eq(many->storage_bytes, many->planned_bytes, sizeof(many->planned_bytes), "%s", layout);
    cr_expect_eq(many->allocations_in_steps, 0, "%s", layout);
}

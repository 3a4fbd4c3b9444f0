// SPDX-License-Identifier: MIT
// Whole steps on the device: losses and gradient norms of the host's, the same bits from a captured step and in every
// run, and transfers staged through the host by ranks that share the device.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "layouts.h"
#include "training.h"

// An emulated device takes minutes for what a real one does in a second.
#ifdef GSWBENCH_EMULATED
enum { STEPS = 2, SHRUNK = 4 };
#else
enum { STEPS = 20, SHRUNK = 1 };
#endif

// Rounding differs in every GEMM, and a step amplifies what the one before it left. Losses hardly move on random
// tokens; norms see every gradient.
static const double loss_tolerance = 2e-3, norm_tolerance = 0.03;

static int failures;

static void report(bool passes, const char *what)
{
    printf("%s %s\n", passes ? "ok  " : "FAIL", what);
    failures += !passes;
}

static void start(struct training *training, const struct backend_ops *backend)
{
    *training = (struct training){.steps = STEPS, .threads = 2, .seed = 11, .ranks = 1, .backend = backend};
    tiny_init(&training->tiny);
    struct model_config *model         = &training->tiny.model;
    model->hidden                      = 256 / SHRUNK;
    model->heads                       = 4;
    model->kv_heads                    = 2;
    model->head_dim                    = 64 / SHRUNK;
    model->ffn                         = 384 / SHRUNK;
    model->vocab                       = 512 / SHRUNK;
    model->init_deviation              = 0.02;
    training->tiny.train.sequence      = 128 / SHRUNK;
    training->tiny.precision.compute   = COMPUTE_BF16;
    training->tiny.train.learning_rate = 1e-3;
}

static bool has_same_bits(const struct training *one, const struct training *other)
{
    return memcmp(one->loss, other->loss, sizeof(one->loss)) == 0 &&
           memcmp(one->norm, other->norm, sizeof(one->norm)) == 0;
}

static bool is_close(float found, float expected, double tolerance)
{
    return fabs((double)found - (double)expected) <= tolerance * fabs((double)expected);
}

static bool has_close_steps(const struct training *one, const struct training *other)
{
    bool are_close = true;
    for (int i = 0; i < STEPS; i++) {
        printf("  step %2d: loss %.6f and %.6f, gradient norm %.6f and %.6f\n", i, (double)one->loss[i],
               (double)other->loss[i], (double)one->norm[i], (double)other->norm[i]);
        are_close = are_close && is_close(one->loss[i], other->loss[i], loss_tolerance) &&
                    is_close(one->norm[i], other->norm[i], norm_tolerance);
    }
    return are_close;
}

// What the device lacks of a step's ops; NULL: nothing.
static const char *find_missing_op(void)
{
    struct training training;
    start(&training, &backend_cuda);
    tiny_plan_rank(&training.tiny, 1, 0);
    const struct plan *plan    = &training.tiny.plan;
    const char        *missing = NULL;
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (backend_cuda.run[plan->ops[i].kind] == NULL) {
            missing = op_name((enum op_kind)plan->ops[i].kind);
        }
    }
    plan_free(&training.tiny.plan);
    return missing;
}

static void compare_one_rank(void)
{
    struct training host, eager, again, captured;
    start(&host, &backend_host);
    start(&eager, &backend_cuda);
    start(&again, &backend_cuda);
    start(&captured, &backend_cuda);
    captured.captures = true;

    training_run(&host);
    training_run(&eager);
    training_run(&again);
    training_run(&captured);

    report(has_close_steps(&eager, &host), "losses and gradient norms are the host's");
    report(has_same_bits(&again, &eager), "another run has the same bits");
    report(has_same_bits(&captured, &eager), "a captured step has the same bits");
    report(eager.allocations_in_steps == 0 && captured.allocations_in_steps == 0, "nothing is allocated in a step");
    report(captured.device_seconds > 0, "the device measures its step");
}

// What a step may do beyond the plain one: layouts, blocks and orders of work, each of which has ops of its own. Ranks
// share the device.
// clang-format off
static const char *const variants[] = {
    "fsdp 2",
    "tp 2",
    "tp 2; sequence_parallel yes; tp_overlap yes",
    "cp 2; context ring",
    "dp 2; zero 1; zero_gather forward; micro_batch 1; accumulation 2",
    "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; capacity_factor 1",
    "pp 2; micro_batch 1; accumulation 2",
    "norm layernorm1p; activation relu2; rope_fraction 0.5",
    "recompute selective; recompute_save qkv, attention",
    "compute fp8; fp8_recipe current",
    "compute fp8; fp8_recipe delayed; fp8_history 3",
    "compute fp8; fp8_recipe block",
    "fsdp 2; recompute selective; recompute_save qkv, attention; compute fp8; fp8_recipe current",
    "fsdp 2; micro_batch 1; accumulation 2; compute fp8; fp8_recipe delayed; fp8_history 3",
    "tp 2; compute fp8; fp8_recipe current",
    "tp 2; compute fp8; fp8_recipe delayed; fp8_history 3",
    "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; capacity_factor 1; compute fp8; fp8_recipe current",
};
// clang-format on

static void compare_variant(const char *variant)
{
    struct training host, device;
    start(&host, &backend_host);
    host.ranks     = layout_apply(&host.tiny, variant);
    device         = host;
    device.backend = &backend_cuda;

    training_run(&host);
    training_run(&device);

    report(has_close_steps(&device, &host), variant);
}

int main(void)
{
    device_require();
    const char *missing = find_missing_op();
    if (missing != NULL) {
        printf("skipped: the device has no %s\n", missing);
        return DEVICE_SKIPPED;
    }
    compare_one_rank();
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        compare_variant(variants[i]);
    }
    return failures > 0;
}

// SPDX-License-Identifier: MIT
// Whole steps on the device: losses and gradient norms of the host's, the same bits from a captured step and in every
// run, and transfers staged through the host by ranks that share the device.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "training.h"
#include "device.h"

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
static void shard_weights(struct tiny *tiny)
{
    tiny->parallel.fsdp = 2;
}

static void split_matrices(struct tiny *tiny)
{
    tiny->parallel.tp = 2;
}

static void overlap_matrices(struct tiny *tiny)
{
    tiny->parallel.tp                = 2;
    tiny->parallel.sequence_parallel = 1;
    tiny->parallel.tp_overlap        = 1;
}

static void split_context(struct tiny *tiny)
{
    tiny->parallel.cp      = 2;
    tiny->parallel.context = CONTEXT_RING;
}

static void share_optimizer(struct tiny *tiny)
{
    tiny->parallel.dp          = 2;
    tiny->parallel.zero        = 1;
    tiny->parallel.zero_gather = ZERO_GATHER_FORWARD;
    tiny->train.micro_batch    = 1;
    tiny->train.accumulation   = 2;
}

static void share_experts(struct tiny *tiny)
{
    tiny_set_experts(tiny, 4, 2);
    tiny->parallel.dp           = 2;
    tiny->parallel.ep           = 2;
    tiny->model.capacity_factor = 1;
}

static void split_depth(struct tiny *tiny)
{
    tiny->parallel.pp        = 2;
    tiny->train.micro_batch  = 1;
    tiny->train.accumulation = 2;
}

static void centre_norms(struct tiny *tiny)
{
    tiny->model.norm          = NORM_LAYER_1P;
    tiny->model.activation    = ACTIVATION_RELU2;
    tiny->model.rope_fraction = 0.5;
}

static void recompute_activations(struct tiny *tiny)
{
    tiny->train.recompute      = RECOMPUTE_SELECTIVE;
    tiny->train.recompute_save = 1 << OUTPUT_QKV | 1 << OUTPUT_ATTENTION;
}

static void scale_by_values(struct tiny *tiny)
{
    tiny->precision.compute    = COMPUTE_FP8;
    tiny->precision.fp8_recipe = RECIPE_CURRENT;
}

static void scale_by_history(struct tiny *tiny)
{
    tiny->precision.compute     = COMPUTE_FP8;
    tiny->precision.fp8_recipe  = RECIPE_DELAYED;
    tiny->precision.fp8_history = 3;
}

static void scale_by_blocks(struct tiny *tiny)
{
    tiny->precision.compute    = COMPUTE_FP8;
    tiny->precision.fp8_recipe = RECIPE_BLOCK;
}

static void share_weights_in_fp8(struct tiny *tiny)
{
    scale_by_values(tiny);
    shard_weights(tiny);
    recompute_activations(tiny);
}

static void share_weights_by_history(struct tiny *tiny)
{
    scale_by_history(tiny);
    shard_weights(tiny);
    tiny->train.micro_batch  = 1;
    tiny->train.accumulation = 2;
}

static void split_matrices_in_fp8(struct tiny *tiny)
{
    scale_by_values(tiny);
    split_matrices(tiny);
}

static void split_matrices_by_history(struct tiny *tiny)
{
    scale_by_history(tiny);
    split_matrices(tiny);
}

static void share_experts_in_fp8(struct tiny *tiny)
{
    scale_by_values(tiny);
    share_experts(tiny);
}

static const struct variant {
    const char *what;
    int         ranks;
    void (*change)(struct tiny *tiny);
} variants[] = {
    {"two ranks that share weights", 2, shard_weights},
    {"two ranks that share matrices", 2, split_matrices},
    {"two ranks whose GEMMs travel in a ring", 2, overlap_matrices},
    {"two ranks whose keys and values travel in a ring", 2, split_context},
    {"two ranks that share the optimizer and gather weights in the next step", 2, share_optimizer},
    {"two ranks that share experts", 2, share_experts},
    {"two stages of a pipeline", 2, split_depth},
    {"layer norms with biases, squared ReLU and half of each head rotated", 1, centre_norms},
    {"activations computed again from those that are saved", 1, recompute_activations},
    {"FP8 scaled by current values", 1, scale_by_values},
    {"FP8 scaled by values of the steps before", 1, scale_by_history},
    {"FP8 scaled by blocks", 1, scale_by_blocks},
    {"two ranks that share weights, in FP8 by current values", 2, share_weights_in_fp8},
    {"two ranks that share weights, in FP8 by the steps before", 2, share_weights_by_history},
    {"two ranks that share matrices, in FP8 by current values", 2, split_matrices_in_fp8},
    {"two ranks that share matrices, in FP8 by the steps before", 2, split_matrices_by_history},
    {"two ranks that share experts, in FP8", 2, share_experts_in_fp8},
};

static void compare_variant(const struct variant *variant)
{
    struct training host, device;
    start(&host, &backend_host);
    host.ranks = variant->ranks;
    variant->change(&host.tiny);
    device         = host;
    device.backend = &backend_cuda;

    training_run(&host);
    training_run(&device);

    report(has_close_steps(&device, &host), variant->what);
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
        compare_variant(&variants[i]);
    }
    return failures > 0;
}

// SPDX-License-Identifier: MIT
// Compares whole steps on the GPU with the host: losses, gradient norms, and the update of each tensor. Captured and
// repeated steps must have the same bits. Ranks that share the GPU communicate through host memory. Attention scores
// vary as in a trained model, and tokens follow a Markov chain: with equal keys, query gradients would be zero.
// step_device PART... runs only the variants whose name contains a PART.
#define _GNU_SOURCE    // declares mkdtemp
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "gswbench/arena.h"
#include "gswbench/safetensors.h"
#include "gswbench/text.h"
#include "layouts.h"
#include "safetensors_read.h"
#include "training.h"

// The test also runs on an emulated GPU, which needs minutes for work that a real GPU does in a second. There it runs
// fewer steps of smaller models.
#ifdef GSWBENCH_EMULATED
enum { STEPS = 2, SHRUNK = 4 };
#else
enum { STEPS = 20, SHRUNK = 1 };
#endif

// Tolerances of losses, gradient norms and updates by precision. Rounding differs in every GEMM. In FP8 and FP4, a
// difference in the last bit of bf16 may select another code; FP4 has only few codes. With experts, rounding also
// decides which expert gets a token.
struct bounds {
    double loss, norm, update;
};
static const struct bounds bf16_bounds = {2e-3, 0.03, 0.06}, fp8_bounds = {1e-2, 0.06, 0.4};
static const struct bounds fp4_bounds         = {1e-2, 0.06, 0.7};
static const struct bounds bf16_expert_bounds = {2e-3, 0.03, 0.3}, fp8_expert_bounds = {1e-2, 0.06, 0.5};

static const struct bounds *bounds_of(const struct training *training)
{
    bool is_fp8 = training->tiny.precision.compute == COMPUTE_FP8;
    return training->tiny.precision.compute == COMPUTE_FP4 ? &fp4_bounds
           : training->tiny.model.experts > 1              ? (is_fp8 ? &fp8_expert_bounds : &bf16_expert_bounds)
           : is_fp8                                        ? &fp8_bounds
                                                           : &bf16_bounds;
}

static void start(struct training *training, const struct backend_ops *backend)
{
    *training = (struct training){.steps = STEPS, .threads = 2, .seed = 11, .ranks = 1, .backend = backend};
    tiny_init(&training->tiny);
    struct model_config *model = &training->tiny.model;
    model->hidden              = 256 / SHRUNK;
    model->heads               = 4;
    model->kv_heads            = 2;
    model->head_dim            = 64 / SHRUNK;
    model->ffn                 = 384 / SHRUNK;
    model->vocab               = 512 / SHRUNK;
    // Elements of queries then have a standard deviation of 1.2.
    model->init_deviation            = 1.2 / sqrt((double)model->hidden);
    training->tiny.train.sequence    = 128 / SHRUNK;
    training->tiny.precision.compute = COMPUTE_BF16;
    training->data                   = DATA_MARKOV;
    // With this epsilon, an update is proportional to the gradient, since the root of AdamW's second moment is small in
    // comparison. So errors of gradients are visible in the updates.
    layout_apply(&training->tiny, "epsilon 1; learning_rate 0.05; weight_decay 0");
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
        are_close = are_close && is_close(one->loss[i], other->loss[i], bounds_of(one)->loss) &&
                    is_close(one->norm[i], other->norm[i], bounds_of(one)->norm);
    }
    return are_close;
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

// Each variant is a layout, kind of block or schedule with specific ops. Its ranks share the GPU.
// clang-format off
static const char *const variants[] = {
    "layers 2",
    "fsdp 2",
    "tp 2",
    "tp 2; sequence_parallel yes; tp_overlap yes",
    "cp 2; context ring",
    "dp 2; zero 1; zero_gather forward; micro_batch 1; accumulation 2",
    "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; capacity_factor 1",
    "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; recompute full",
    "pp 2; micro_batch 1; accumulation 2",
    "pp 2; micro_batch 1; accumulation 2; schedule zero-bubble",
    "norm layernorm1p; activation relu2; rope_fraction 0.5",
    "tp 2; qk_norm yes; sequence_parallel no",
    "fsdp 2; qk_norm yes; recompute selective; recompute_save qkv; compute fp8; recipe current",
    "dp 2; ep 2; experts 4; top_k 2; expert_hidden 32; shared_ffn 32; predicted_tokens 2; repeat_prediction yes",
    "layers 3; pattern MM*; positions none; mamba_heads 4; mamba_head_dim 16; mamba_state 16; mamba_groups 2; mamba_chunk 24",
    "tp 2; layers 3; pattern M*M; mamba_heads 32; mamba_head_dim 4; mamba_state 16; mamba_groups 2; recompute full; compute fp8; recipe current",
    "rank 4; alpha 12; qk_norm yes",
    "tp 2; rank 4; alpha 12; targets qkv, projection; norm layernorm; compute fp8; recipe current",
    "dp 2; tp 2; zero 1; optimizer muon; recompute full",
    "fsdp 2; rank 4; alpha 12; compute fp8; recipe delayed; fp8_history 3; fp8_weights yes",
    "tp 2; rank 4; alpha 12; targets qkv, projection; compute fp8; recipe block; fp8_weights yes; clip 0",
    "rank 4; alpha 12; compute fp8; recipe mxfp8; fp8_weights yes; clip 0",
    "rank 4; alpha 12; compute fp4; recipe nvfp4; fp4_stochastic_rounding no; fp8_weights yes; clip 0",
    "recompute selective; recompute_save qkv, attention",
    "compute fp8; recipe current",
    "compute fp8; recipe delayed; fp8_history 3",
    "compute fp8; recipe block",
    "fsdp 2; recompute selective; recompute_save qkv, attention; compute fp8; recipe current",
    "fsdp 2; micro_batch 1; accumulation 2; compute fp8; recipe delayed; fp8_history 3",
    "tp 2; compute fp8; recipe current",
    "tp 2; compute fp8; recipe delayed; fp8_history 3",
    "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; capacity_factor 1; compute fp8; recipe current",
    "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; compute fp8; recipe block",
    "experts 4; top_k 1; auxiliary_loss 0.05; compute fp8; recipe delayed; fp8_history 3",
    "compute fp8; recipe mxfp8",
    "fsdp 2; recompute full; compute fp8; recipe mxfp8",
    "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; compute fp8; recipe mxfp8",
};
// clang-format on

// Returns whether the GPU supports MX GEMMs, which depends on its compute capability.
static bool has_blocks(void)
{
    enum { SIDE = 64 };
    struct backend         backend;
    const struct prepared *prepared;
    void                  *placed = (void *)(uintptr_t)256;
    struct op              op     = {
                         .kind       = OP_GEMM,
                         .shape.gemm = {
                             .m = SIDE, .n = SIDE, .k = SIDE, .transpose_b = true, .scaling_a = SCALING_MX, .scaling_b = SCALING_MX}};
    const struct buffer buffers[OP_OPERANDS] = {[GEMM_A] = {placed, SIDE * SIDE, FORMAT_E4M3},
                                                [GEMM_B] = {placed, SIDE * SIDE, FORMAT_E4M3},
                                                [GEMM_C] = {placed, SIDE * SIDE, FORMAT_BF16}};
    device_check(backend_open(&backend, "cuda", &device_setup));
    status prepares = backend_prepare(&backend, &op, buffers, &prepared);
    backend_close(&backend);
    if (prepares.exit_code != EXIT_CONFIG) {
        device_check(prepares);
    }
    return !failed(&prepares);
}

// Writes all initial weights with the plan of a single rank.
static void write_initial(const struct training *training, const char *folder)
{
    struct tiny tiny = training->tiny;
    tiny.parallel    = (struct parallel_config){0};
    option_set_defaults(parallel_options, &tiny.parallel);
    tiny.parallel.dp = 1;
    tiny_plan_rank(&tiny, 1, 0);
    training_require(checkpoint_write_initial(&tiny.plan, training->seed, folder));
    plan_free(&tiny.plan);
}

enum { INITIAL, FOUND, EXPECTED, FOLDERS };

// The relative error of a tensor's update: the norm of the difference over the norm of the expected update.
struct update_error {
    char   tensor[128];
    double error;
};

static double distance(struct safetensors_reader readers[FOLDERS], const struct safetensor *tensor)
{
    float *values[FOLDERS];
    for (int i = 0; i < FOLDERS; i++) {
        values[i] = memory_allocate((size_t)tensor->bytes);
        training_require(safetensors_read(&readers[i], tensor->name, values[i], tensor->bytes));
    }
    double square = 0, difference = 0;
    for (int64_t i = 0; i < tensor->bytes / (int64_t)sizeof(float); i++) {
        double before = (double)values[INITIAL][i], found = (double)values[FOUND][i] - before;
        double expected = (double)values[EXPECTED][i] - before;
        square += expected * expected;
        difference += (found - expected) * (found - expected);
    }
    for (int i = 0; i < FOLDERS; i++) {
        free(values[i]);
    }
    return difference > 0 ? sqrt(difference / square) : 0;
}

// Returns the tensor whose update has the largest error. The folders have the weights before training, after training
// on the GPU, and after training on the host. Ends the program if one cannot be read.
static struct update_error compare_updates(const char *initial, const char *found, const char *expected)
{
    const char               *folders[FOLDERS] = {initial, found, expected};
    struct safetensors_reader readers[FOLDERS];
    struct update_error       worst = {.error = -1};
    for (int i = 0; i < FOLDERS; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/model.safetensors", folders[i]);
        training_require(safetensors_open(&readers[i], path));
    }
    for (int32_t i = 0; i < readers[EXPECTED].count; i++) {
        const struct safetensor *tensor = &readers[EXPECTED].tensors[i];
        double                   error  = distance(readers, tensor);
        if (!(error <= worst.error)) {    // NaN counts as larger
            worst.error = error;
            text_copy(worst.tensor, sizeof(worst.tensor), tensor->name);
        }
    }
    for (int i = 0; i < FOLDERS; i++) {
        safetensors_close(&readers[i]);
    }
    return worst;
}

// Frozen weights that are stored quantized must give the same losses as frozen weights that each step quantizes. The
// norm is summed in another order. With delayed scaling the weights may differ, since a step then quantizes them with
// the scale of an earlier step.
static void compare_stored(const struct training *stored, const char *variant)
{
    struct training cast = *stored;
    char            text[256];
    bool            is_same;
    cast.weights                    = NULL;
    cast.tiny.precision.fp8_weights = false;
    training_run(&cast);
    is_same = memcmp(stored->loss, cast.loss, sizeof(cast.loss)) == 0;
    for (int i = 0; i < STEPS; i++) {
        is_same = is_same && is_close(stored->norm[i], cast.norm[i], 1e-6);
    }
    snprintf(text, sizeof(text), "%s: losses of weights that each step quantizes", variant);
    report(is_same, text);
}

static void compare_variant(const char *variant)
{
    char            base[] = "/tmp/step_device_XXXXXX", folders[3][64], command[64], text[256];
    struct training host, device;
    if (mkdtemp(base) == NULL) {
        report(false, "a folder in /tmp");
        return;
    }
    for (int i = 0; i < 3; i++) {
        snprintf(folders[i], sizeof(folders[i]), "%s/%d", base, i);
    }
    start(&host, &backend_host);
    host.ranks     = layout_apply(&host.tiny, variant);
    device         = host;
    device.backend = &backend_cuda;
    host.weights   = folders[1];
    device.weights = folders[2];

    training_run(&host);
    training_run(&device);

    snprintf(text, sizeof(text), "%s: losses and gradient norms", variant);
    report(has_close_steps(&device, &host), text);
    if (device.tiny.precision.fp8_weights && device.tiny.precision.recipe != RECIPE_DELAYED) {
        compare_stored(&device, variant);
    }
    write_initial(&host, folders[0]);
    struct update_error worst = compare_updates(folders[0], folders[2], folders[1]);
    double              bound = bounds_of(&host)->update;
    snprintf(text, sizeof(text), "%s: updates, at most %.2g off, here %.2g in %.100s", variant, bound, worst.error,
             worst.tensor);
    report(worst.error <= bound, text);
    snprintf(command, sizeof(command), "rm -r %s", base);
    if (system(command) != 0) {
        report(false, command);
    }
}

static bool is_asked(const char *variant, int count, char **parts)
{
    bool is = count == 0;
    for (int i = 0; i < count; i++) {
        is = is || strstr(variant, parts[i]) != NULL;
    }
    return is;
}

int main(int argc, char **argv)
{
    device_require();
    if (argc == 1) {
        compare_one_rank();
    }
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        if (!is_asked(variants[i], argc - 1, argv + 1)) {
            continue;
        }
        bool needs_blocks = strstr(variants[i], "mxfp8") != NULL || strstr(variants[i], "nvfp4") != NULL;
        if (!needs_blocks || has_blocks()) {
            compare_variant(variants[i]);
        } else {
            printf("skip %s: the device multiplies no blocks of 16 or 32\n", variants[i]);
        }
    }
    return device_failures > 0;
}

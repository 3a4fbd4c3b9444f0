// SPDX-License-Identifier: MIT
// Allocates operands for an attention op and runs cuDNN's plans on them.
#include "attention_trial.h"

#include <inttypes.h>
#include <stdio.h>

#include "gemm.h"
#include "gswbench/op_table.h"
#include "gswbench/random.h"
#include "kernels/elements.h"
#include "memory.h"
#include "tune.h"

struct trial {
    struct cuda            *cuda;
    struct cudnn_attention *cudnn;
    struct cudnn_entry     *entry;
    const struct op        *op;
    struct buffer           buffers[OP_OPERANDS];
    void                   *data;    // all buffers, then scratch
    char                   *scratch;
    status                  refusal;    // latest failure
};

static int64_t most_scratch(struct cudnn_entry *entry)
{
    int64_t most = 0;
    for (int plan = 0; plan < cudnn_attention_plans(entry); plan++) {
        cudnn_attention_take(entry, plan);
        int64_t bytes = cudnn_attention_scratch(entry);
        most          = bytes > most ? bytes : most;
    }
    return most;
}

// Operands as cuDNN reads and writes them: bf16, except the fp32 log-sum-exp.
static int64_t place_operands(struct trial *trial)
{
    bool    is_forward = trial->op->kind == OP_ATTENTION_FORWARD;
    int     count      = is_forward ? ATTENTION_STATISTICS + 1 : ATTENTION_GRADIENT_KEY_VALUE + 1;
    int     fp32       = is_forward ? (int)ATTENTION_STATISTICS : (int)ATTENTION_GRADIENT_STATISTICS;
    int64_t bytes      = 0;
    for (int slot = 0; slot < count; slot++) {
        struct buffer *buffer = &trial->buffers[slot];
        buffer->format        = slot == fp32 ? FORMAT_F32 : FORMAT_BF16;
        buffer->elements      = op_operand_elements(trial->op, slot);
        buffer->data          = (char *)trial->data + bytes;    // data is NULL while bytes are counted
        bytes += cuda_align(format_bytes(buffer->format, buffer->elements));
    }
    return bytes;
}

static status open_trial(struct trial *trial)
{
    const struct cuda         *cuda   = trial->cuda;
    const struct kernel_target target = {cuda->device.streams[LANE_COMPUTE], cuda->device.processors,
                                         cuda->device.shared_bytes};
    int64_t                    placed = place_operands(trial), scratch = most_scratch(trial->entry);
    TRY(cuda_allocate_for("try cuDNN's attention", "use a smaller train.micro_batch, or run.attention = own",
                          placed + scratch, &trial->data));
    place_operands(trial);
    trial->scratch = (char *)trial->data + placed;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        const struct buffer    *buffer = &trial->buffers[slot];
        struct random_fill_args args   = {.out      = buffer->data,
                                          .elements = buffer->elements,
                                          .type     = buffer->format,
                                          .key      = random_key(0, (uint64_t)slot)};
        if (buffer->data != NULL) {
            CUDA_CHECK(kernel_random_fill(&args, &target));
        }
    }
    return OK;
}

static bool run_plan(void *work, int plan)
{
    struct trial       *trial  = work;
    struct cudnn_memory memory = {trial->buffers, trial->scratch, trial->cuda->device.streams[LANE_COMPUTE]};
    cudnn_attention_take(trial->entry, plan);
    status ran = cudnn_attention_run(trial->cudnn, trial->entry, trial->op, &memory);
    if (failed(&ran)) {
        trial->refusal = ran;
        cudaGetLastError();
    }
    return !failed(&ran);
}

static status take_first(struct trial *trial)
{
    for (int plan = 0; plan < cudnn_attention_plans(trial->entry); plan++) {
        if (run_plan(trial, plan)) {
            CUDA_CHECK(cudaStreamSynchronize(trial->cuda->device.streams[LANE_COMPUTE]));
            return OK;
        }
    }
    return trial->refusal;
}

static status take_known(struct trial *trial, const struct gemm_choice *choice)
{
    uint64_t plan = choice->algorithm[0], engine = choice->algorithm[1];
    if (plan < (uint64_t)cudnn_attention_plans(trial->entry)) {
        cudnn_attention_take(trial->entry, (int)plan);
        if ((uint64_t)cudnn_attention_engine(trial->entry) == engine) {
            return run_plan(trial, (int)plan) ? OK : trial->refusal;
        }
    }
    return fail_as(EXIT_OUTPUT, "%s: cuDNN does not propose its engine for %s: delete the file, which is recreated",
                   trial->cuda->gemms->cache.path, choice->problem);
}

void attention_trial_name(const struct cuda *cuda, struct cudnn_attention *cudnn, const struct op *op,
                          char problem[GEMM_PROBLEM_BYTES])
{
    const struct attention_shape *shape = &op->shape.attention;
    char                          version[32];
    char                          window[32] = "", values[48] = "";
    if (attention_value_dim(shape) != shape->head_dim) {
        snprintf(values, sizeof(values), " with values of %" PRId64, shape->value_dim);
    }
    cudnn_attention_version(cudnn, version, sizeof(version));
    if (shape->window > 0) {
        snprintf(window, sizeof(window), " by %" PRId64, shape->window);
    }
    snprintf(problem, GEMM_PROBLEM_BYTES,
             "%s %" PRId64 " x %" PRId64 " after %" PRId64 "%s%s, %" PRId64 " heads %" PRId64 " of %" PRId64
             "%s, %s, %.100s",
             op_name((enum op_kind)op->kind), shape->batch, shape->sequence, shape->earlier,
             shape->causal ? " causal" : "", window, shape->heads, shape->kv_heads, shape->head_dim, values, version,
             cuda->gemms->device);
}

static status take_fastest(struct trial *trial)
{
    struct gemms      *gemms  = trial->cuda->gemms;
    struct gemm_choice choice = {.algorithm = {0}};
    struct gemm_times  times;
    attention_trial_name(trial->cuda, trial->cudnn, trial->op, choice.problem);
    const struct gemm_choice *known = gemm_cache_find(&gemms->cache, choice.problem);
    if (known != NULL) {
        status taken = take_known(trial, known);
        if (!failed(&taken) || known->origin == GEMM_REMEMBERED) {
            return taken;
        }
    }
    int best = tune_fastest(&(struct tune){.stream   = trial->cuda->device.streams[LANE_COMPUTE],
                                           .run      = run_plan,
                                           .work     = trial,
                                           .count    = cudnn_attention_plans(trial->entry),
                                           .is_first = trial->cuda->tuned == 0},
                            &times);
    if (best < 0) {
        return trial->refusal;
    }
    trial->cuda->tuned++;
    cudnn_attention_take(trial->entry, best);
    choice.algorithm[0] = (uint64_t)best;
    choice.algorithm[1] = (uint64_t)cudnn_attention_engine(trial->entry);
    gemm_cache_add(&gemms->cache, &choice, &times);
    return OK;
}

status attention_trial(struct cuda *cuda, struct cudnn_attention *cudnn, struct cudnn_entry *entry, const struct op *op)
{
    struct trial trial = {.cuda = cuda, .cudnn = cudnn, .entry = entry, .op = op};
    TRY(open_trial(&trial));
    status taken = cuda->gemms->is_deterministic ? take_first(&trial) : take_fastest(&trial);
    CUDA_CHECK(cudaStreamSynchronize(cuda->device.streams[LANE_COMPUTE]));
    CUDA_CHECK(cudaFree(trial.data));
    return taken;
}

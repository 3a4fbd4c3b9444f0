// SPDX-License-Identifier: MIT
// Autotuning results that ranks share: GEMM algorithms and attention engines.
#include "attention_trial.h"
#include "gemm.h"

static void name(struct backend *backend, const struct op *op, const struct buffer *buffers,
                 char problem[GEMM_PROBLEM_BYTES])
{
    const struct cuda *cuda = backend->state;
    problem[0]              = '\0';
    if (cuda->gemms->is_deterministic) {
        return;
    }
    if (op->kind == OP_GEMM) {
        gemm_name(backend, op, buffers, problem);
    } else if (op->kind == OP_ATTENTION_FORWARD || op->kind == OP_ATTENTION_BACKWARD) {
        cuda_attention_name(cuda, op, problem);
    }
}

static const struct gemm_choice *find(struct backend *backend, const char *problem)
{
    const struct cuda *cuda = backend->state;
    return gemm_cache_find(&cuda->gemms->cache, problem);
}

static void take(struct backend *backend, const struct gemm_choice *choice)
{
    const struct cuda *cuda = backend->state;
    gemm_cache_take(&cuda->gemms->cache, choice);
}

static void keep(struct backend *backend)
{
    const struct cuda *cuda = backend->state;
    gemm_cache_keep(&cuda->gemms->cache);
}

const struct backend_choices cuda_choices = {.name = name, .find = find, .take = take, .keep = keep};

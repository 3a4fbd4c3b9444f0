// SPDX-License-Identifier: MIT
// GEMMs whose number of rows is only known in the step (dropless MoE). A step has hundreds of sizes, and most recur.
// Each size hashes to one of GEMM_SIZES slots and replaces another size there. Descriptors are host memory, so a queued
// GEMM does not need them any more.
#include "gemm.h"

static uint32_t place_of(const struct gemm *prepared, const struct gemm_shape *shape)
{
    uint64_t mixed = (uint64_t)(uintptr_t)prepared / sizeof(*prepared);
    for (int i = 0; i < 3; i++) {
        const int64_t sizes[] = {shape->m, shape->n, shape->k};
        mixed                 = (mixed ^ (uint64_t)sizes[i]) * UINT64_C(0x9e3779b97f4a7c15);
        mixed ^= mixed >> 32;
    }
    return (uint32_t)(mixed % GEMM_SIZES);
}

// Uses the algorithm of the planned size if cuBLASLt accepts it, otherwise the heuristic's first guess.
static bool choose_algorithm(const struct cuda *cuda, struct gemm *gemm, const cublasLtMatmulAlgo_t *planned)
{
    const struct blas              *blas = &cuda->gemms->blas;
    cublasLtMatmulHeuristicResult_t result;
    gemm->algorithm       = *planned;
    cublasStatus_t answer = blas->cublasLtMatmulAlgoCheck(blas->handle, gemm->operation, gemm->first, gemm->second,
                                                          gemm->out, gemm->out, &gemm->algorithm, &result);
    if (answer == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= GEMM_WORKSPACE_BYTES) {
        return true;
    }
    bool is_found   = gemm_candidates(cuda, gemm, 1, &result, &answer) > 0;
    gemm->algorithm = result.algo;
    return is_found;
}

const struct gemm *gemm_of_size(struct cuda *cuda, const struct gemm *prepared, const struct gemm_shape *shape)
{
    struct gemms   *gemms = cuda->gemms;
    struct gemm   **place = &gemms->sizes[place_of(prepared, shape)];
    struct gemm_key key   = prepared->key;
    key.shape             = *shape;
    if (*place != NULL && gemm_key_is_equal(&(*place)->key, &key)) {
        return *place;
    }
    if (*place != NULL) {
        gemm_free(&gemms->blas, *place);
    }
    *place = gemm_create(cuda, &key);
    if (!choose_algorithm(cuda, *place, &prepared->algorithm)) {
        gemm_free(&gemms->blas, *place);
        *place = NULL;
    }
    return *place;
}

void gemm_forget_sizes(struct gemms *gemms)
{
    for (int i = 0; i < GEMM_SIZES; i++) {
        if (gemms->sizes[i] != NULL) {
            gemm_free(&gemms->blas, gemms->sizes[i]);
        }
    }
}

// SPDX-License-Identifier: MIT
// Times the candidate algorithms of a GEMM. Operands are normal random numbers, because GEMMs of zeros run faster. Runs
// rotate through several sets of operands, so that operands are not in the L2 cache, as in a step.
#include "gemm.h"

#include <stdio.h>

#include "gswbench/fatal.h"
#include "gswbench/random.h"
#include "kernels/elements.h"

enum { SETS_MAX = 64 };

// All sets of A, B and C in one allocation, followed by the inverse scales of A and B.
struct operands {
    char   *data;
    int     sets;
    int64_t bytes[3], offset[3];    // of A, B and C within a set
    int64_t set_bytes;
    float  *factors[2];    // inverse scales of A and B
    int64_t inverse_scale_bytes;
};

struct timing {
    const struct cuda                     *cuda;
    const struct gemm                     *gemm;
    const cublasLtMatmulHeuristicResult_t *candidates;
    struct operands                        operands;
    int                                    next_set;
};

static void set_preference(const struct blas *blas, cublasLtMatmulPreference_t preference,
                           cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes)
{
    BLAS_CHECK(blas, cublasLtMatmulPreferenceSetAttribute(preference, attribute, value, bytes));
}

// Creates the limits for cuBLASLt's heuristic. Split-K is allowed only with fp32 partial sums, because rounding these
// to bf16 would lose accuracy.
static cublasLtMatmulPreference_t create_preference(const struct blas *blas, const struct gemm_key *key)
{
    static const uint64_t workspace = GEMM_WORKSPACE_BYTES;
    static const uint32_t schemes   = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint32_t        a = (uint32_t)key->alignment[0], b = (uint32_t)key->alignment[1];
    const uint32_t        c = (uint32_t)key->alignment[2];

    cublasLtMatmulPreference_t preference;
    BLAS_CHECK(blas, cublasLtMatmulPreferenceCreate(&preference));
    set_preference(blas, preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
    set_preference(blas, preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes));
    set_preference(blas, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &b, sizeof(b));    // cuBLAS A: our B
    set_preference(blas, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &a, sizeof(a));
    set_preference(blas, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof(c));
    set_preference(blas, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, sizeof(c));
    return preference;
}

int gemm_candidates(const struct cuda *cuda, const struct gemm *gemm, int wanted,
                    cublasLtMatmulHeuristicResult_t candidates[], cublasStatus_t *answer)
{
    const struct blas         *blas       = &cuda->gemms->blas;
    cublasLtMatmulPreference_t preference = create_preference(blas, &gemm->key);
    int                        found = 0, usable = 0;
    *answer = blas->cublasLtMatmulAlgoGetHeuristic(blas->handle, gemm->operation, gemm->first, gemm->second, gemm->out,
                                                   gemm->out, preference, wanted, candidates, &found);
    BLAS_CHECK(blas, cublasLtMatmulPreferenceDestroy(preference));
    for (int i = 0; i < found; i++) {
        if (candidates[i].state == CUBLAS_STATUS_SUCCESS) {
            candidates[usable++] = candidates[i];
        }
    }
    return usable;
}

static int64_t inverse_scale_bytes(int32_t scaling, int64_t rows, int64_t depth)
{
    return format_bytes(scaling_format((enum scaling)scaling), scaling_inverses((enum scaling)scaling, rows, depth));
}

static status open_operands(struct timing *timing)
{
    const struct gemm_key   *key      = &timing->gemm->key;
    const struct gemm_shape *shape    = &key->shape;
    struct operands         *operands = &timing->operands;
    operands->bytes[GEMM_A]           = format_bytes(key->a, shape->m * shape->k);
    operands->bytes[GEMM_B]           = format_bytes(key->b, shape->k * shape->n);
    operands->bytes[GEMM_C]           = format_bytes(key->c, shape->m * shape->n);
    for (int i = 0; i < 3; i++) {
        // Operands get exactly the alignment that they have in the step, because algorithms may require or exploit a
        // better one.
        operands->offset[i] = operands->set_bytes + key->alignment[i] % CUDA_ALIGNMENT;
        operands->set_bytes += cuda_align(operands->bytes[i] + CUDA_ALIGNMENT);
    }
    int64_t inverse_scale_bytes_of_a = cuda_align(inverse_scale_bytes(shape->scaling_a, shape->m, shape->k));
    operands->inverse_scale_bytes =
        inverse_scale_bytes_of_a + inverse_scale_bytes(shape->scaling_b, shape->n, shape->k);
    int64_t cache_bytes = cuda_attribute(timing->cuda->number, cudaDevAttrL2CacheSize);
    operands->sets      = (int)number_min(2 * cache_bytes / operands->set_bytes + 1, SETS_MAX);

    char  purpose[96];
    void *data;
    snprintf(purpose, sizeof(purpose), "time the GEMM %lld x %lld x %lld", (long long)shape->m, (long long)shape->n,
             (long long)shape->k);
    TRY(cuda_allocate_for(purpose, "use a smaller train.micro_batch, or run.deterministic = yes, which times nothing",
                          operands->sets * operands->set_bytes + operands->inverse_scale_bytes, &data));
    operands->data       = data;
    char *factors        = operands->data + operands->sets * operands->set_bytes;
    operands->factors[0] = (float *)(void *)factors;
    operands->factors[1] = (float *)(void *)(factors + inverse_scale_bytes_of_a);
    return OK;
}

static void fill_operands(const struct timing *timing)
{
    const struct cuda         *cuda     = timing->cuda;
    const struct operands     *operands = &timing->operands;
    const struct gemm_key     *key      = &timing->gemm->key;
    const enum format          types[]  = {[GEMM_A] = key->a, [GEMM_B] = key->b, [GEMM_C] = key->c};
    const struct kernel_target target   = device_stream_target(&cuda->device, STREAM_COMPUTE);
    for (int set = 0; set < operands->sets; set++) {
        for (int i = 0; i < 3; i++) {
            struct random_fill_args args = {.out = operands->data + set * operands->set_bytes + operands->offset[i],
                                            .elements = format_elements(types[i], operands->bytes[i]),
                                            .type     = types[i],
                                            .key      = random_key((uint64_t)set, (uint64_t)i)};
            CUDA_CHECK(kernel_random_fill(&args, &target));
        }
    }
    enum format factor = scaling_format((enum scaling)key->shape.scaling_a);
    if (factor != FORMAT_F32) {
        enum { ONE_E8M0 = 127, ONE_E4M3 = 0x38 };
        CUDA_CHECK(cudaMemsetAsync(operands->factors[0], factor == FORMAT_E8M0 ? ONE_E8M0 : ONE_E4M3,
                                   (size_t)operands->inverse_scale_bytes, target.stream));
        return;
    }
    struct random_fill_args factors = {.out      = operands->factors[0],
                                       .elements = operands->inverse_scale_bytes / (int64_t)sizeof(float),
                                       .type     = FORMAT_F32};
    CUDA_CHECK(kernel_random_fill(&factors, &target));
}

// Enqueues one run on the next set of operands. Returns false if cuBLASLt refuses the algorithm.
static bool run_once(void *work, int candidate)
{
    struct timing         *timing   = work;
    const struct operands *operands = &timing->operands;
    char                  *set      = operands->data + timing->next_set * operands->set_bytes;
    struct gemm_operands   taken    = {.a               = set + operands->offset[GEMM_A],
                                       .b               = set + operands->offset[GEMM_B],
                                       .inverse_scale_a = operands->factors[0],
                                       .inverse_scale_b = operands->factors[1],
                                       .c               = set + operands->offset[GEMM_C],
                                       .scale           = 1,
                                       .keep            = timing->gemm->key.accumulates ? 1 : 0};
    timing->next_set                = (timing->next_set + 1) % operands->sets;
    return gemm_run(timing->cuda, timing->gemm, &timing->candidates[candidate].algo, &taken) == CUBLAS_STATUS_SUCCESS;
}

status gemm_tune(struct cuda *cuda, struct gemm *gemm, cublasLtMatmulHeuristicResult_t candidates[], int count,
                 struct gemm_times *times)
{
    struct timing timing = {.cuda = cuda, .gemm = gemm, .candidates = candidates};
    TRY(open_operands(&timing));
    fill_operands(&timing);
    int best = tune_fastest(&(struct tune){.stream   = cuda->device.streams[STREAM_COMPUTE],
                                           .run      = run_once,
                                           .work     = &timing,
                                           .count    = count,
                                           .is_first = cuda->tuned == 0},
                            times);
    CUDA_CHECK(cudaFree(timing.operands.data));
    if (best < 0) {
        return fail("[run] backend = cuda: cuBLASLt runs none of its algorithms for a GEMM of %s, %lld x %lld x %lld",
                    format_name(gemm->key.a), (long long)gemm->key.shape.m, (long long)gemm->key.shape.n,
                    (long long)gemm->key.shape.k);
    }
    gemm->algorithm = candidates[best].algo;
    return OK;
}

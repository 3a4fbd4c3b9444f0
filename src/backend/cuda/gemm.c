// SPDX-License-Identifier: MIT
// Matrix products by cuBLASLt: FP8, bf16 or fp32 factors, fp32 sums. What a product needs is made before the first
// step; a step only looks it up.
#include "gemm.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"

static struct gemm_key key_of(const struct cuda *cuda, const struct op *op, const struct buffer buffers[])
{
    return (struct gemm_key){.shape       = op->shape.gemm,
                             .a           = buffers[GEMM_A].format,
                             .b           = buffers[GEMM_B].format,
                             .c           = buffers[GEMM_C].format,
                             .accumulates = op->accumulates,
                             .sums_fast   = op->sums_fast,
                             .alignment   = {gemm_alignment(buffers[GEMM_A].data), gemm_alignment(buffers[GEMM_B].data),
                                             gemm_alignment(buffers[GEMM_C].data)},
                             .processors  = cuda->gemms->processors};
}

static struct product *find(const struct cuda *cuda, const struct gemm_key *key)
{
    struct product *product = cuda->gemms->products;
    while (product != NULL && !gemm_key_is_equal(&product->key, key)) {
        product = product->next;
    }
    return product;
}

static cudaDataType_t type_of(enum format format)
{
    static const cudaDataType_t types[FORMAT_COUNT] = {[FORMAT_F32]  = CUDA_R_32F,
                                                       [FORMAT_BF16] = CUDA_R_16BF,
                                                       [FORMAT_E4M3] = CUDA_R_8F_E4M3,
                                                       [FORMAT_E5M2] = CUDA_R_8F_E5M2};
    return types[format];
}

static void set_operation(const struct blas *blas, const struct product *product,
                          cublasLtMatmulDescAttributes_t attribute, int32_t value)
{
    BLAS_CHECK(blas, cublasLtMatmulDescSetAttribute(product->operation, attribute, &value, sizeof(value)));
}

#if CUBLAS_VERSION >= 120900
static const bool has_scaled_parts = true;

static void set_scalings(const struct blas *blas, const struct product *product)
{
    static const int32_t modes[] = {[SCALING_WHOLE]   = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
                                    [SCALING_RUNS]    = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                                    [SCALING_SQUARES] = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F};
    set_operation(blas, product, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, modes[product->key.shape.scaling_b]);
    set_operation(blas, product, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, modes[product->key.shape.scaling_a]);
}
#else
static const bool has_scaled_parts = false;

static void set_scalings(const struct blas *blas, const struct product *product)
{
    (void)blas;
    (void)product;
}
#endif

// Whether any device has the product, and this one.
static status check_product(const struct cuda *cuda, const struct gemm_key *key)
{
    enum { FIRST_WITH_FP8 = 89 };
    status checked = gemm_check(key);
    if (failed(&checked)) {
        return fail("[run] backend = cuda: %.900s", checked.text);
    }
    if (format_is_narrow(key->a) && cuda->capability < FIRST_WITH_FP8) {
        return fail(
            "[precision] compute = fp8: device %d has compute capability %d.%d, but FP8 needs 8.9 or newer (H100, "
            "H200 and their successors): take bf16",
            cuda->number, cuda->capability / 10, cuda->capability % 10);
    }
    if (key->shape.scaling_a != SCALING_WHOLE && !has_scaled_parts) {
        return fail("[precision] fp8_recipe = block: needs CUDA 12.9 or newer, and this build is with an older one");
    }
    return OK;
}

static cublasLtMatrixLayout_t describe_matrix(const struct blas *blas, enum format format,
                                              const struct gemm_matrix *matrix)
{
    cublasLtMatrixLayout_t layout;
    BLAS_CHECK(blas, cublasLtMatrixLayoutCreate(&layout, type_of(format), (uint64_t)matrix->rows,
                                                (uint64_t)matrix->columns, matrix->leading));
    return layout;
}

static void set_factor(const struct blas *blas, const struct product *product, cublasLtMatmulDescAttributes_t attribute,
                       const float *factor)
{
    BLAS_CHECK(blas, cublasLtMatmulDescSetAttribute(product->operation, attribute, &factor, sizeof(factor)));
}

// That there are factors belongs to the problem; a run sets the real ones.
static void describe_fp8(const struct gemms *gemms, const struct product *product)
{
    const int8_t is_fast = product->key.sums_fast;
    BLAS_CHECK(&gemms->blas, cublasLtMatmulDescSetAttribute(product->operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                                            &is_fast, sizeof(is_fast)));
    set_scalings(&gemms->blas, product);
    set_factor(&gemms->blas, product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, gemms->workspace);
    set_factor(&gemms->blas, product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, gemms->workspace);
}

// fp32 factors are multiplied in full: CUBLAS_COMPUTE_32F allows no TF32.
static struct product *product_create(struct cuda *cuda, const struct gemm_key *key)
{
    const struct blas *blas    = &cuda->gemms->blas;
    struct gemm_layout layout  = gemm_layout_of(&key->shape);
    struct product    *product = memory_allocate(sizeof(*product));
    *product                   = (struct product){.key    = *key,
                                                  .first  = describe_matrix(blas, key->b, &layout.first),
                                                  .second = describe_matrix(blas, key->a, &layout.second),
                                                  .out    = describe_matrix(blas, key->c, &layout.out)};
    BLAS_CHECK(blas, cublasLtMatmulDescCreate(&product->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set_operation(blas, product, CUBLASLT_MATMUL_DESC_TRANSA, layout.first.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set_operation(blas, product, CUBLASLT_MATMUL_DESC_TRANSB, layout.second.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (key->processors > 0) {
        set_operation(blas, product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, key->processors);
    }
    if (format_is_narrow(key->a)) {
        describe_fp8(cuda->gemms, product);
    }
    return product;
}

static void product_free(const struct blas *blas, struct product *product)
{
    BLAS_CHECK(blas, cublasLtMatrixLayoutDestroy(product->first));
    BLAS_CHECK(blas, cublasLtMatrixLayoutDestroy(product->second));
    BLAS_CHECK(blas, cublasLtMatrixLayoutDestroy(product->out));
    BLAS_CHECK(blas, cublasLtMatmulDescDestroy(product->operation));
    free(product);
}

cublasStatus_t product_run(const struct cuda *cuda, const struct product *product,
                           const cublasLtMatmulAlgo_t *algorithm, const struct product_operands *operands)
{
    const struct gemms *gemms = cuda->gemms;
    const float         one = 1, keep = product->key.accumulates ? 1 : 0;
    if (format_is_narrow(product->key.a)) {    // the library's A is our B; a call keeps the addresses
        set_factor(&gemms->blas, product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands->factor_b);
        set_factor(&gemms->blas, product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands->factor_a);
    }
    return gemms->blas.cublasLtMatmul(gemms->blas.handle, product->operation, &one, operands->b, product->first,
                                      operands->a, product->second, &keep, operands->c, product->out, operands->c,
                                      product->out, algorithm, gemms->workspace, GEMM_WORKSPACE_BYTES,
                                      cuda->device.streams[LANE_COMPUTE]);
}

// An algorithm of the file is the library's own words; it still has to accept them for this problem.
static status take_remembered(const struct cuda *cuda, struct product *product, const struct gemm_choice *choice)
{
    const struct blas              *blas = &cuda->gemms->blas;
    cublasLtMatmulHeuristicResult_t result;
    _Static_assert(sizeof(product->algorithm) == sizeof(choice->algorithm), "cublasLtMatmulAlgo_t is eight words");
    memcpy(&product->algorithm, choice->algorithm, sizeof(product->algorithm));
    cublasStatus_t error =
        blas->cublasLtMatmulAlgoCheck(blas->handle, product->operation, product->first, product->second, product->out,
                                      product->out, &product->algorithm, &result);
    if (error != CUBLAS_STATUS_SUCCESS || result.workspaceSize > GEMM_WORKSPACE_BYTES) {
        return fail_as(EXIT_OUTPUT, "%s: cuBLASLt refuses its algorithm for %s: delete the file, it is made again",
                       cuda->gemms->cache.path, choice->problem);
    }
    return OK;
}

// The heuristic's first guess, or the fastest of its guesses, timed now or in an earlier run.
static status choose_algorithm(struct cuda *cuda, struct product *product)
{
    struct gemms      *gemms = cuda->gemms;
    struct gemm_choice choice;
    char               version[BLAS_VERSION_BYTES];
    blas_version(&gemms->blas, version);
    gemm_problem_name(&product->key, version, gemms->device, choice.problem);
    const struct gemm_choice *known = gemm_cache_find(&gemms->cache, choice.problem);
    if (known != NULL) {
        gemms->remembered++;
        return take_remembered(cuda, product, known);
    }
    cublasLtMatmulHeuristicResult_t candidates[GEMM_CANDIDATES];
    int count = product_candidates(cuda, product, gemms->is_deterministic ? 1 : GEMM_CANDIDATES, candidates);
    if (count == 0) {
        return fail("[run] backend = cuda: cuBLASLt has no algorithm for %s", choice.problem);
    }
    product->algorithm = candidates[0].algo;
    if (gemms->is_deterministic) {
        return OK;
    }
    TRY(product_tune(cuda, product, candidates, count));
    gemms->timed++;
    memcpy(choice.algorithm, &product->algorithm, sizeof(choice.algorithm));
    return gemm_cache_add(&gemms->cache, &choice);
}

static void run_prepared(struct backend *backend, const struct prepared *prepared, const struct op *op,
                         const struct buffer buffers[OP_OPERANDS])
{
    const struct cuda      *cuda     = backend->state;
    const struct product   *product  = (const struct product *)prepared;    // its first member
    struct product_operands operands = {.a        = buffers[GEMM_A].data,
                                        .b        = buffers[GEMM_B].data,
                                        .factor_a = buffers[GEMM_FACTOR_A].data,
                                        .factor_b = buffers[GEMM_FACTOR_B].data,
                                        .c        = buffers[GEMM_C].data};
    blas_check(&cuda->gemms->blas, product_run(cuda, product, &product->algorithm, &operands), op->tag.role, __FILE__,
               __LINE__);
}

status cuda_gemm_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                         const struct prepared **prepared)
{
    struct cuda    *cuda    = backend->state;
    struct gemm_key key     = key_of(cuda, op, buffers);
    struct product *product = find(cuda, &key);
    if (product == NULL) {
        TRY(check_product(cuda, &key));
        product               = product_create(cuda, &key);
        product->prepared.run = run_prepared;
        product->next         = cuda->gemms->products;
        cuda->gemms->products = product;
        TRY(choose_algorithm(cuda, product));
    }
    *prepared = &product->prepared;
    return OK;
}

void device_gemm(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend, (void)buffers;
    FATAL(EXIT_INTERNAL, "the product of %s was not prepared", op->tag.role);
}

status gemms_open(struct cuda *cuda, const struct backend_setup *setup)
{
    struct cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, cuda->number));
    struct gemms *gemms     = memory_allocate(sizeof(*gemms));
    cuda->gemms             = gemms;
    gemms->is_deterministic = setup->is_deterministic;
    gemms->processors       = setup->spared_processors > 0 ? cuda->device.processors - setup->spared_processors : 0;
    memcpy(gemms->device, properties.name, sizeof(gemms->device));
    TRY(blas_open(&gemms->blas));
    if (!setup->is_deterministic) {
        TRY(gemm_cache_open(&gemms->cache, setup->cache));
    }
    CUDA_CHECK(cudaMalloc(&gemms->workspace, GEMM_WORKSPACE_BYTES));
    return OK;
}

void gemms_close(struct cuda *cuda)
{
    struct gemms *gemms = cuda->gemms;
    while (gemms->products != NULL) {
        struct product *product = gemms->products;
        gemms->products         = product->next;
        product_free(&gemms->blas, product);
    }
    blas_close(&gemms->blas);
    gemm_cache_close(&gemms->cache);
    CUDA_CHECK(cudaFree(gemms->workspace));
    free(gemms);
}

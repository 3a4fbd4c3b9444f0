// SPDX-License-Identifier: MIT
// Runs GEMMs with cuBLASLt. Operands are FP4, FP8, bf16 or fp32, and sums are in fp32. Descriptors and algorithms are
// created before the first step, and a step only looks them up.
#include "gemm.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "kernels/elements.h"
#include "kernels/quantize.h"

// Values that headers before CUDA 12.8 lack: an enumerator of cudaDataType_t, and a scale mode of cuBLASLt.
enum { TYPE_E2M1 = 33, SCALE_VEC16_UE4M3 = 1 };

static void set_attribute(const struct blas *blas, const struct gemm *gemm, cublasLtMatmulDescAttributes_t attribute,
                          const void *value, size_t bytes)
{
    BLAS_CHECK(blas, cublasLtMatmulDescSetAttribute(gemm->operation, attribute, value, bytes));
}

static void set_number(const struct blas *blas, const struct gemm *gemm, cublasLtMatmulDescAttributes_t attribute,
                       int32_t number)
{
    set_attribute(blas, gemm, attribute, &number, sizeof(number));
}

static void set_address(const struct blas *blas, const struct gemm *gemm, cublasLtMatmulDescAttributes_t attribute,
                        const void *address)
{
    set_attribute(blas, gemm, attribute, &address, sizeof(address));
}

// bias: NULL in selections and timings of algorithms. The workspace then serves as bias, at an address with the
// alignment of the real one, because cuBLASLt selects algorithms by the alignment of this address.
static void set_bias(const struct gemms *gemms, const struct gemm *gemm, const void *bias)
{
    int alignment = gemm->key.bias_alignment;
    if (alignment > 0) {
        set_address(&gemms->blas, gemm, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                    bias != NULL ? bias : (const char *)gemms->workspace + alignment % CUDA_ALIGNMENT);
    }
}

static bool fills_bias(const struct buffer buffers[])
{
    return buffers[GEMM_BIAS].data != NULL && buffers[GEMM_BIAS].format != buffers[GEMM_C].format;
}

static void fill_bias(struct backend *backend, const struct op *op, const struct buffer buffers[])
{
    struct kernel_target target = device_target(backend, op);
    if (fills_bias(buffers)) {
        DEVICE_CHECK(kernel_equal_rows(&(struct equal_rows_args){.row         = buffers[GEMM_BIAS].data,
                                                                 .out         = buffers[GEMM_C].data,
                                                                 .rows        = op->shape.gemm.m,
                                                                 .columns     = op->shape.gemm.n,
                                                                 .accumulates = op->accumulates},
                                       &target));
    }
}

static struct gemm_key key_of(const struct backend *backend, const struct op *op, const struct buffer buffers[])
{
    const struct cuda *cuda  = backend->state;
    int64_t            left  = number_max(cuda->device.processors - backend->sm_margin, 1);
    bool               fills = fills_bias(buffers), adds_bias = buffers[GEMM_BIAS].data != NULL && !fills;
    return (struct gemm_key){.shape       = op->shape.gemm,
                             .a           = buffers[GEMM_A].format,
                             .b           = buffers[GEMM_B].format,
                             .c           = buffers[GEMM_C].format,
                             .accumulates = op->accumulates || fills || buffers[GEMM_ADDEND].data != NULL,
                             .sums_fast   = op->sums_fast,
                             .alignment   = {gemm_alignment(buffers[GEMM_A].data), gemm_alignment(buffers[GEMM_B].data),
                                             gemm_alignment(buffers[GEMM_C].data)},
                             .bias_alignment = adds_bias ? gemm_alignment(buffers[GEMM_BIAS].data) : 0,
                             .processors     = backend->sm_margin > 0 ? (int)left : 0};
}

static struct gemm *find(const struct cuda *cuda, const struct gemm_key *key)
{
    struct gemm *gemm = cuda->gemms->list;
    while (gemm != NULL && !gemm_key_is_equal(&gemm->key, key)) {
        gemm = gemm->next;
    }
    return gemm;
}

static cudaDataType_t type_of(enum format format)
{
    static const cudaDataType_t types[FORMAT_COUNT] = {[FORMAT_F32]  = CUDA_R_32F,
                                                       [FORMAT_BF16] = CUDA_R_16BF,
                                                       [FORMAT_E4M3] = CUDA_R_8F_E4M3,
                                                       [FORMAT_E5M2] = CUDA_R_8F_E5M2,
                                                       [FORMAT_E2M1] = (cudaDataType_t)TYPE_E2M1};
    return types[format];
}

static void set_scalings(const struct blas *blas, const struct gemm *gemm)
{
#if GEMM_SCALES_PARTS
    static const int32_t modes[] = {[SCALING_WHOLE]     = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
                                    [SCALING_1X128]     = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                                    [SCALING_128X128]   = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                                    [SCALING_MX]        = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0,
                                    [SCALING_NV]        = SCALE_VEC16_UE4M3,
                                    [SCALING_NV_SQUARE] = SCALE_VEC16_UE4M3};
    set_number(blas, gemm, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, modes[gemm->key.shape.scaling_b]);
    set_number(blas, gemm, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, modes[gemm->key.shape.scaling_a]);
#else
    (void)blas, (void)gemm;
#endif
}

static cublasLtMatrixLayout_t describe_matrix(const struct blas *blas, enum format format,
                                              const struct gemm_matrix *matrix)
{
    cublasLtMatrixLayout_t layout;
    BLAS_CHECK(blas, cublasLtMatrixLayoutCreate(&layout, type_of(format), (uint64_t)matrix->rows,
                                                (uint64_t)matrix->columns, matrix->leading));
    return layout;
}

// Describes scales. cuBLASLt reads the scale pointers when it selects an algorithm, so they point to the workspace
// until a run sets the real addresses. FP4 GEMMs also multiply by two per-tensor scales, which are in device memory;
// this needs the device pointer mode.
static void describe_low_precision(const struct gemms *gemms, const struct gemm *gemm)
{
    const int8_t is_fast = gemm->key.sums_fast;
    set_attribute(&gemms->blas, gemm, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &is_fast, sizeof(is_fast));
    set_scalings(&gemms->blas, gemm);
    if (gemm->key.a == FORMAT_E2M1) {
        set_number(&gemms->blas, gemm, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
    }
    set_address(&gemms->blas, gemm, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, gemms->workspace);
    set_address(&gemms->blas, gemm, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, gemms->workspace);
}

// Creates the descriptors of a GEMM. fp32 operands are multiplied in full precision: CUBLAS_COMPUTE_32F does not allow
// TF32.
static struct gemm *gemm_create(struct cuda *cuda, const struct gemm_key *key)
{
    const struct blas *blas   = &cuda->gemms->blas;
    struct gemm_layout layout = gemm_layout_of(&key->shape);
    struct gemm       *gemm   = memory_allocate(sizeof(*gemm));
    *gemm                     = (struct gemm){.key    = *key,
                                              .first  = describe_matrix(blas, key->b, &layout.first),
                                              .second = describe_matrix(blas, key->a, &layout.second),
                                              .out    = describe_matrix(blas, key->c, &layout.out)};
    BLAS_CHECK(blas, cublasLtMatmulDescCreate(&gemm->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set_number(blas, gemm, CUBLASLT_MATMUL_DESC_TRANSA, layout.first.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set_number(blas, gemm, CUBLASLT_MATMUL_DESC_TRANSB, layout.second.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (key->processors > 0) {
        set_number(blas, gemm, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, key->processors);
    }
    if (format_is_low_precision(key->a)) {
        describe_low_precision(cuda->gemms, gemm);
    }
    // cuBLASLt adds a bias to each column of its column-major matrix, which is a row of ours.
    if (key->bias_alignment > 0) {
        set_number(blas, gemm, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        set_bias(cuda->gemms, gemm, NULL);
    }
    return gemm;
}

static void gemm_free(const struct blas *blas, struct gemm *gemm)
{
    if (gemm == NULL) {
        return;
    }
    BLAS_CHECK(blas, cublasLtMatrixLayoutDestroy(gemm->first));
    BLAS_CHECK(blas, cublasLtMatrixLayoutDestroy(gemm->second));
    BLAS_CHECK(blas, cublasLtMatrixLayoutDestroy(gemm->out));
    BLAS_CHECK(blas, cublasLtMatmulDescDestroy(gemm->operation));
    free(gemm);
}

// Writes alpha and beta of an FP4 GEMM to device memory, because they depend on the operands' per-tensor scales.
static void multiply_scales(const struct cuda *cuda, const struct gemm_operands *operands, float scale, float keep)
{
    const struct kernel_target target = device_stream_target(&cuda->device, STREAM_COMPUTE);
    CUDA_CHECK(kernel_factors(&(struct factors_args){.one   = operands->tensor_scale_a,
                                                     .other = operands->tensor_scale_b,
                                                     .out   = cuda->gemms->factors,
                                                     .scale = scale,
                                                     .keep  = keep},
                              &target));
}

cublasStatus_t gemm_run(const struct cuda *cuda, const struct gemm *gemm, const cublasLtMatmulAlgo_t *algorithm,
                        const struct gemm_operands *operands)
{
    const struct gemms *gemms = cuda->gemms;
    const float         scale = operands->scale, keep = operands->keep;
    const void         *added  = operands->addend != NULL ? operands->addend : operands->c;
    bool                is_fp4 = gemm->key.a == FORMAT_E2M1;
    if (is_fp4) {
        multiply_scales(cuda, operands, scale, keep);
    }
    if (format_is_low_precision(gemm->key.a)) {    // cuBLASLt's A is our B; the descriptor copies the addresses
        set_address(&gemms->blas, gemm, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands->inverse_scale_b);
        set_address(&gemms->blas, gemm, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands->inverse_scale_a);
    }
    set_bias(gemms, gemm, operands->bias);
    return gemms->blas.cublasLtMatmul(
        gemms->blas.handle, gemm->operation, is_fp4 ? gemms->factors : &scale, operands->b, gemm->first, operands->a,
        gemm->second, is_fp4 ? gemms->factors + 1 : &keep, added, gemm->out, operands->c, gemm->out, algorithm,
        gemms->workspace, GEMM_WORKSPACE_BYTES, cuda->device.streams[STREAM_COMPUTE]);
}

static void name_problem(const struct gemms *gemms, const struct gemm_key *key, char problem[GEMM_PROBLEM_BYTES])
{
    char version[BLAS_VERSION_BYTES];
    blas_version(&gemms->blas, version);
    gemm_problem_name(key, version, gemms->device, problem);
}

void gemm_name(const struct backend *backend, const struct op *op, const struct buffer buffers[],
               char problem[GEMM_PROBLEM_BYTES])
{
    const struct cuda *cuda = backend->state;
    struct gemm_key    key  = key_of(backend, op, buffers);
    name_problem(cuda->gemms, &key, problem);
}

// Returns whether cuBLASLt accepts gemm->algorithm for this GEMM. The algorithm may belong to another size, or come
// from the cache file or another rank.
static bool accepts(const struct cuda *cuda, const struct gemm *gemm)
{
    const struct blas              *blas = &cuda->gemms->blas;
    cublasLtMatmulHeuristicResult_t result;
    cublasStatus_t answer = blas->cublasLtMatmulAlgoCheck(blas->handle, gemm->operation, gemm->first, gemm->second,
                                                          gemm->out, gemm->out, &gemm->algorithm, &result);
    return answer == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= GEMM_WORKSPACE_BYTES;
}

static status take_known(const struct cuda *cuda, struct gemm *gemm, const struct gemm_choice *choice)
{
    _Static_assert(sizeof(gemm->algorithm) == sizeof(choice->algorithm), "cublasLtMatmulAlgo_t is eight words");
    memcpy(&gemm->algorithm, choice->algorithm, sizeof(gemm->algorithm));
    return accepts(cuda, gemm)
               ? OK
               : fail_as(EXIT_OUTPUT, "%s: cuBLASLt refuses its algorithm for %s: delete the file, which is recreated",
                         cuda->gemms->cache.path, choice->problem);
}

static status refused(const struct gemms *gemms, const struct gemm_key *key, const char *problem, cublasStatus_t answer)
{
    const char *advice =
        key->a == FORMAT_E2M1                   ? "use [precision] compute = fp8 or bf16"
        : key->shape.scaling_a != SCALING_WHOLE ? "use [precision] recipe = current or delayed, or compute = bf16"
        : format_is_low_precision(key->a)       ? "use [precision] compute = bf16"
                                          : "install the cuBLASLt that this gswbench was built with, or a newer one";
    return fail_as(EXIT_LAUNCH, "[run] backend = cuda: cuBLASLt has no algorithm for %s (it answers: %s): %s", problem,
                   answer == CUBLAS_STATUS_SUCCESS ? "none" : gemms->blas.cublasLtGetStatusString(answer), advice);
}

// Selects the algorithm of a GEMM: one from the cache or another rank if known, else the fastest of the timed
// candidates. Deterministic runs take the heuristic's first guess instead of timing.
static status choose_algorithm(struct cuda *cuda, struct gemm *gemm)
{
    struct gemms      *gemms = cuda->gemms;
    struct gemm_choice choice;
    name_problem(gemms, &gemm->key, choice.problem);
    const struct gemm_choice *known = gemm_cache_find(&gemms->cache, choice.problem);
    if (known != NULL) {
        status taken      = take_known(cuda, gemm, known);
        bool   is_refused = failed(&taken);
        bool   is_others  = known->origin == GEMM_TAKEN;
        gemms->remembered += known->origin == GEMM_REMEMBERED;
        gemms->taken += is_others && !is_refused;
        if (!is_refused || !is_others) {    // a refused algorithm of another rank: time candidates
            return taken;
        }
    }
    cublasLtMatmulHeuristicResult_t candidates[GEMM_CANDIDATES];
    cublasStatus_t                  answer;
    int count = gemm_candidates(cuda, gemm, gemms->is_deterministic ? 1 : GEMM_CANDIDATES, candidates, &answer);
    if (count == 0) {
        return refused(gemms, &gemm->key, choice.problem, answer);
    }
    gemm->algorithm = candidates[0].algo;
    if (gemms->is_deterministic) {
        return OK;
    }
    struct gemm_times times;
    TRY(gemm_tune(cuda, gemm, candidates, count, &times));
    gemms->timed++;
    cuda->tuned++;
    memcpy(choice.algorithm, &gemm->algorithm, sizeof(choice.algorithm));
    gemm_cache_add(&gemms->cache, &choice, &times);
    return OK;
}

// Returns the slot for the descriptors of a GEMM size that is known only during the step (dropless MoE). A step has
// hundreds of sizes, and most recur. A size hashes to one of GEMM_SIZES slots and evicts the size that occupies it. The
// evicted descriptors can be freed at once: they are host memory, which an enqueued GEMM no longer reads.
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

// Selects an algorithm for a size that is known only in the step: the one of the planned size if cuBLASLt accepts it,
// otherwise the heuristic's first guess.
static bool choose_for_size(const struct cuda *cuda, struct gemm *gemm, const cublasLtMatmulAlgo_t *planned)
{
    cublasLtMatmulHeuristicResult_t result;
    cublasStatus_t                  answer;
    gemm->algorithm = *planned;
    if (accepts(cuda, gemm)) {
        return true;
    }
    bool is_found = gemm_candidates(cuda, gemm, 1, &result, &answer) > 0;
    if (is_found) {
        gemm->algorithm = result.algo;
    }
    return is_found;
}

// Returns the prepared GEMM with the sizes of this step and an algorithm for them. NULL: cuBLASLt has no algorithm.
static const struct gemm *find_size(struct cuda *cuda, const struct gemm *prepared, const struct gemm_shape *shape)
{
    struct gemms   *gemms = cuda->gemms;
    struct gemm   **place = &gemms->sizes[place_of(prepared, shape)];
    struct gemm_key key   = prepared->key;
    key.shape             = *shape;
    if (*place != NULL && gemm_key_is_equal(&(*place)->key, &key)) {
        return *place;
    }
    gemm_free(&gemms->blas, *place);
    *place = gemm_create(cuda, &key);
    if (!choose_for_size(cuda, *place, &prepared->algorithm)) {
        gemm_free(&gemms->blas, *place);
        *place = NULL;
    }
    return *place;
}

// Fails if no device supports the GEMM, or if this device does not.
static status check_device(const struct cuda *cuda, const struct gemm_key *key)
{
    enum { FIRST_WITH_FP8 = 89, FIRST_WITH_BLOCKS = 100 };
    status checked = gemm_check(key);
    if (failed(&checked)) {
        return fail("[run] backend = cuda: %.900s", checked.text);
    }
    if (key->a == FORMAT_E2M1 && cuda->capability < FIRST_WITH_BLOCKS) {
        return fail("[precision] compute = fp4: device %d has compute capability %d.%d, but FP4 needs 10.0 or newer "
                    "(B200 and its successors): use compute = fp8",
                    cuda->number, cuda->capability / 10, cuda->capability % 10);
    }
    if (format_is_low_precision(key->a) && cuda->capability < FIRST_WITH_FP8) {
        return fail("[precision] compute = fp8: device %d has compute capability %d.%d, but FP8 needs 8.9 or newer "
                    "(H100, H200 and their successors): use bf16",
                    cuda->number, cuda->capability / 10, cuda->capability % 10);
    }
    if (key->shape.scaling_a != SCALING_WHOLE && !GEMM_SCALES_PARTS) {
        return fail("[precision] recipe = %s: needs CUDA 12.9 or newer, and this build is with an older one",
                    key->a == FORMAT_E2M1                ? "nvfp4"
                    : key->shape.scaling_a == SCALING_MX ? "mxfp8"
                                                         : "block");
    }
    if (key->shape.scaling_a == SCALING_MX && cuda->capability < FIRST_WITH_BLOCKS) {
        return fail("[precision] recipe = mxfp8: device %d has compute capability %d.%d, but MXFP8 needs 10.0 or "
                    "newer (B200 and its successors): use recipe = current or block",
                    cuda->number, cuda->capability / 10, cuda->capability % 10);
    }
    return OK;
}

static void run_prepared(struct backend *backend, const struct prepared *prepared, const struct op *op,
                         const struct buffer buffers[OP_OPERANDS])
{
    struct cuda         *cuda       = backend->state;
    const struct gemm   *gemm       = (const struct gemm *)prepared;    // prepared is the first member of struct gemm
    struct gemm_operands operands   = {.a               = buffers[GEMM_A].data,
                                       .b               = buffers[GEMM_B].data,
                                       .inverse_scale_a = buffers[GEMM_INVERSE_SCALE_A].data,
                                       .inverse_scale_b = buffers[GEMM_INVERSE_SCALE_B].data,
                                       .tensor_scale_a  = buffers[GEMM_TENSOR_SCALE_A].data,
                                       .tensor_scale_b  = buffers[GEMM_TENSOR_SCALE_B].data,
                                       .c               = buffers[GEMM_C].data,
                                       .addend          = buffers[GEMM_ADDEND].data,
                                       .scale           = gemm_scale(&op->shape.gemm),
                                       .keep            = gemm->key.accumulates ? 1 : 0,
                                       .bias            = buffers[GEMM_BIAS].data};
    bool                 is_planned = op->shape.gemm.m == gemm->key.shape.m && op->shape.gemm.k == gemm->key.shape.k;
    operands.keep                   = operands.addend != NULL ? op->shape.gemm.addend : operands.keep;
    fill_bias(backend, op, buffers);
    gemm = is_planned ? gemm : find_size(cuda, gemm, &op->shape.gemm);
    cublasStatus_t answer =
        gemm == NULL ? CUBLAS_STATUS_NOT_SUPPORTED : gemm_run(cuda, gemm, &gemm->algorithm, &operands);
    blas_check(&cuda->gemms->blas, answer, op->tag.role, __FILE__, __LINE__);
}

status cuda_gemm_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                         const struct prepared **prepared)
{
    struct cuda    *cuda = backend->state;
    struct gemm_key key  = key_of(backend, op, buffers);
    struct gemm    *gemm = find(cuda, &key);
    if (gemm == NULL) {
        TRY(check_device(cuda, &key));
        gemm          = gemm_create(cuda, &key);
        status chosen = choose_algorithm(cuda, gemm);
        if (failed(&chosen)) {
            gemm_free(&cuda->gemms->blas, gemm);
            return chosen;
        }
        gemm->prepared.run = run_prepared;
        gemm->next         = cuda->gemms->list;
        cuda->gemms->list  = gemm;
    }
    *prepared = &gemm->prepared;
    return OK;
}

void device_gemm(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend, (void)buffers;
    FATAL(EXIT_INTERNAL, "the GEMM of %s was not prepared", op->tag.role);
}

void gemms_open(struct cuda *cuda, const struct backend_setup *setup, const struct blas *blas)
{
    struct cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, cuda->number));
    struct gemms *gemms     = memory_allocate(sizeof(*gemms));
    cuda->gemms             = gemms;
    gemms->is_deterministic = setup->is_deterministic;
    gemms->blas             = *blas;
    memcpy(gemms->device, properties.name, sizeof(gemms->device));
    if (!setup->is_deterministic) {
        gemm_cache_open(&gemms->cache, setup->cache, setup->local_rank == 0);
    }
    CUDA_CHECK(cudaMalloc(&gemms->workspace, GEMM_WORKSPACE_BYTES + CUDA_ALIGNMENT));
    gemms->factors = (float *)(void *)((char *)gemms->workspace + GEMM_WORKSPACE_BYTES);
}

void gemms_close(struct cuda *cuda)
{
    struct gemms *gemms = cuda->gemms;
    while (gemms->list != NULL) {
        struct gemm *gemm = gemms->list;
        gemms->list       = gemm->next;
        gemm_free(&gemms->blas, gemm);
    }
    for (int i = 0; i < GEMM_SIZES; i++) {
        gemm_free(&gemms->blas, gemms->sizes[i]);
    }
    blas_close(&gemms->blas);
    gemm_cache_close(&gemms->cache);
    CUDA_CHECK(cudaFree(gemms->workspace));
    free(gemms);
}

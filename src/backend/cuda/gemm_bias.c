// SPDX-License-Identifier: MIT
// Bias added to each row of C by a GEMM.
#include "gemm.h"
#include "kernels/elements.h"

static void set(const struct gemms *gemms, const struct gemm *gemm, cublasLtMatmulDescAttributes_t attribute,
                const void *value, size_t bytes)
{
    BLAS_CHECK(&gemms->blas, cublasLtMatmulDescSetAttribute(gemm->operation, attribute, value, bytes));
}

// cuBLASLt sees transposed matrices: its columns are our rows, and it adds the vector to each.
void gemm_describe_bias(const struct gemms *gemms, const struct gemm *gemm)
{
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    if (gemm->key.adds_bias) {
        set(gemms, gemm, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
        gemm_set_bias(gemms, gemm, NULL);
    }
}

void gemm_set_bias(const struct gemms *gemms, const struct gemm *gemm, const void *bias)
{
    const void *address = bias != NULL ? bias : gemms->workspace;
    if (gemm->key.adds_bias) {
        set(gemms, gemm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof(address));
    }
}

bool gemm_fills_bias(const struct buffer buffers[])
{
    return buffers[GEMM_BIAS].data != NULL && buffers[GEMM_BIAS].format != buffers[GEMM_C].format;
}

void gemm_fill_bias(struct backend *backend, const struct op *op, const struct buffer buffers[])
{
    struct kernel_target target = device_target(backend, op);
    if (gemm_fills_bias(buffers)) {
        DEVICE_CHECK(kernel_equal_rows(&(struct equal_rows_args){.row         = buffers[GEMM_BIAS].data,
                                                                 .out         = buffers[GEMM_C].data,
                                                                 .rows        = op->shape.gemm.m,
                                                                 .columns     = op->shape.gemm.n,
                                                                 .accumulates = op->accumulates},
                                       &target));
    }
}

// SPDX-License-Identifier: MIT
// An emulated cuBLASLt. It computes column-major GEMMs in fp32, element by element. FP8 and FP4 GEMMs have the
// restrictions of a real GPU: A is transposed, sizes are multiples of 16, and scales must be set.
#include <algorithm>
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "emulator.h"
#include "gswbench/fp4.h"

namespace
{
// These values are missing in headers before CUDA 12.9.
enum { A_SCALE_MODE = 31, B_SCALE_MODE = 32, VEC16 = 1, VEC32 = 2, VEC128 = 4, BLK128 = 5, E2M1 = 33 };

struct layout {
    cudaDataType type;
    int64_t      rows, columns, leading;
};
struct operation {
    int32_t     transposes[2] = {CUBLAS_OP_N, CUBLAS_OP_N};
    const void *scales[2]     = {NULL, NULL};
    int8_t      is_fast       = 0;
    int32_t     modes[2]      = {0, 0};                        // scale modes; 0: one scale per tensor
    int32_t     pointers      = CUBLASLT_POINTER_MODE_HOST;    // location of alpha and beta
    int32_t     processors    = 0;                             // SMs that the GEMM may use; 0: all
    int32_t     epilogue      = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias          = NULL;    // has the type of d
};

// For each attribute, the field of `operation` that stores it.
const struct attribute_field {
    int    attribute;
    size_t offset, bytes;
} attribute_fields[] = {
    {CUBLASLT_MATMUL_DESC_TRANSA, offsetof(operation, transposes[0]), 4},
    {CUBLASLT_MATMUL_DESC_TRANSB, offsetof(operation, transposes[1]), 4},
    {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, offsetof(operation, scales[0]), 8},
    {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, offsetof(operation, scales[1]), 8},
    {CUBLASLT_MATMUL_DESC_FAST_ACCUM, offsetof(operation, is_fast), 1},
    {A_SCALE_MODE, offsetof(operation, modes[0]), 4},
    {B_SCALE_MODE, offsetof(operation, modes[1]), 4},
    {CUBLASLT_MATMUL_DESC_POINTER_MODE, offsetof(operation, pointers), 4},
    {CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, offsetof(operation, processors), 4},
    {CUBLASLT_MATMUL_DESC_EPILOGUE, offsetof(operation, epilogue), 4},
    {CUBLASLT_MATMUL_DESC_BIAS_POINTER, offsetof(operation, bias), 8},
};

float get(const void *data, const layout *matrix, int64_t row, int64_t column)
{
    int64_t at = column * matrix->leading + row;
    switch (matrix->type) {
    case CUDA_R_32F:
        return ((const float *)data)[at];
    case CUDA_R_16BF:
        return bf16_to_float(((const bf16 *)data)[at]);
    case (cudaDataType)E2M1:
        return fp4_to_float(fp4_code((const uint8_t *)data, at));
    default:
        return fp8_to_float(matrix->type == CUDA_R_8F_E4M3 ? FORMAT_E4M3 : FORMAT_E5M2, ((const uint8_t *)data)[at]);
    }
}

bool is_fp4(const layout &matrix)
{
    return matrix.type == (cudaDataType)E2M1;
}

// Returns whether the type is FP8 or FP4, which have scales.
bool is_fp8(const layout &matrix)
{
    return matrix.type == CUDA_R_8F_E4M3 || matrix.type == CUDA_R_8F_E5M2 || is_fp4(matrix);
}

// FAKE_CUBLASLT selects a fault. In FP8 GEMMs, "refuse" finds no algorithm and "abort" ends the process. In all GEMMs,
// "late" makes the first algorithm slower than the second, and "second" refuses the first.
bool does(const char *what)
{
    return emulator::is_told("FAKE_CUBLASLT", what);
}

void set(void *data, const layout *matrix, int64_t row, int64_t column, float value)
{
    int64_t at = column * matrix->leading + row;
    if (matrix->type == CUDA_R_32F) {
        ((float *)data)[at] = value;
    } else {
        ((bf16 *)data)[at] = bf16_from_float(value);
    }
}

struct product {
    operation    how;
    layout       a, b, d;
    const void  *a_data, *b_data;
    const void  *c_data;
    void        *d_data;
    float        alpha, beta;           // values in host pointer mode
    const float *alpha_at, *beta_at;    // addresses in device pointer mode

    // Computes each element of d as a sum in the order of k. The inner loops run over rows, so that the compiler
    // vectorizes them.
    void run()
    {
        if (how.pointers == CUBLASLT_POINTER_MODE_DEVICE) {
            alpha = *alpha_at;
            beta  = *beta_at;
        }
        bool               turns_a = how.transposes[0] == CUBLAS_OP_T, turns_b = how.transposes[1] == CUBLAS_OP_T;
        int64_t            depth = turns_a ? a.rows : a.columns;
        std::vector<float> left = unpack(a_data, &a, turns_a, d.rows, depth), part((size_t)d.rows), sum((size_t)d.rows);
        int64_t            part_depth = scaling_depth(scaling_of(0));
        for (int64_t column = 0; column < d.columns; column++) {
            std::fill(sum.begin(), sum.end(), 0.0f);
            for (int64_t first = 0; first < depth; first += part_depth) {
                std::fill(part.begin(), part.end(), 0.0f);
                for (int64_t k = first; k < std::min(first + part_depth, depth); k++) {
                    float        right = get(b_data, &b, turns_b ? column : k, turns_b ? k : column);
                    const float *from  = &left[(size_t)(k * d.rows)];
                    for (int64_t row = 0; row < d.rows; row++) {
                        part[(size_t)row] += from[row] * right;
                    }
                }
                for (int64_t row = 0; row < d.rows; row++) {
                    float factor =
                        is_fp8(a) ? scale_of(0, d.rows, row, first) * scale_of(1, d.columns, column, first) : 1;
                    sum[(size_t)row] += part[(size_t)row] * factor;
                }
            }
            for (int64_t row = 0; row < d.rows; row++) {
                float before = beta != 0 ? beta * get(c_data, &d, row, column) : 0;
                float added  = how.epilogue == CUBLASLT_EPILOGUE_BIAS ? get(how.bias, &d, row, 0) : 0;
                set(d_data, &d, row, column, alpha * sum[(size_t)row] + before + added);
            }
        }
    }

    // Converts an operand to fp32. For each k, the result has a column with one value for each row of d.
    static std::vector<float> unpack(const void *data, const layout *matrix, bool turns, int64_t rows, int64_t depth)
    {
        std::vector<float> numbers((size_t)(rows * depth));
        for (int64_t k = 0; k < depth; k++) {
            for (int64_t row = 0; row < rows; row++) {
                numbers[(size_t)(k * rows + row)] = get(data, matrix, turns ? k : row, turns ? row : k);
            }
        }
        return numbers;
    }

    bool is_possible() const
    {
        bool turns_a = how.transposes[0] == CUBLAS_OP_T, turns_b = how.transposes[1] == CUBLAS_OP_T;
        return (turns_a ? a.columns : a.rows) == d.rows && (turns_b ? b.rows : b.columns) == d.columns &&
               (turns_a ? a.rows : a.columns) == (turns_b ? b.columns : b.rows) && a.leading >= a.rows &&
               b.leading >= b.rows && d.leading >= d.rows && has_epilogue() && has_types();
    }

    enum scaling scaling_of(int side) const
    {
        return how.modes[side] == VEC32    ? SCALING_MX
               : how.modes[side] == VEC16  ? SCALING_NV
               : how.modes[side] == VEC128 ? SCALING_1X128
               : how.modes[side] == BLK128 ? SCALING_128X128
                                           : SCALING_WHOLE;
    }

    // Returns the scale of an operand's block that starts at this column and this k.
    float scale_of(int side, int64_t columns, int64_t column, int64_t first) const
    {
        enum scaling scaling = scaling_of(side);
        int64_t      at      = scaling_inverse_at(scaling, columns, a.rows, column, first);
        return scaling == SCALING_MX   ? fp8_power(((const uint8_t *)how.scales[side])[at])
               : scaling == SCALING_NV ? fp8_to_float(FORMAT_E4M3, ((const uint8_t *)how.scales[side])[at])
                                       : ((const float *)how.scales[side])[at];
    }

    bool has_modes() const
    {
        int32_t one = how.modes[0], other = how.modes[1];
        return one == VEC16 || other == VEC16
                   ? one == other && is_fp4(a) && a.rows % SCALING_BLOCK == 0 && how.is_fast == 0
               : one == 0 || other == 0         ? one == other && !is_fp4(a)
               : one == VEC32 || other == VEC32 ? one == other && a.rows % SCALING_BLOCK == 0 && how.is_fast == 0
                                                : (one == VEC128 || other == VEC128) && how.is_fast == 0;
    }

    // Returns whether the epilogue is supported. A bias with an fp32 output needs fp32 operands.
    bool has_epilogue() const
    {
        return how.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
               (how.epilogue == CUBLASLT_EPILOGUE_BIAS && how.bias != NULL &&
                (a.type == CUDA_R_32F || d.type != CUDA_R_32F));
    }

    bool has_types() const
    {
        if (!is_fp8(a)) {
            return a.type == b.type && how.scales[0] == NULL && how.scales[1] == NULL && how.is_fast == 0;
        }
        bool is_turned = has_modes() && how.transposes[0] == CUBLAS_OP_T && how.transposes[1] == CUBLAS_OP_N;
        bool are_types = is_fp4(a) ? is_fp4(b) : is_fp8(b) && (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3);
        return are_types && is_turned && how.scales[0] != NULL && how.scales[1] != NULL && a.rows % 16 == 0 &&
               d.rows % 16 == 0 && d.columns % 16 == 0 &&
               ((uintptr_t)a_data | (uintptr_t)b_data | (uintptr_t)c_data | (uintptr_t)d_data) % 16 == 0;
    }
};
}    // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = NULL;
    return CUBLAS_STATUS_SUCCESS;
}
EMULATED_NO_EFFECT(cublasStatus_t, cublasLtDestroy, cublasLtHandle_t)
size_t cublasLtGetVersion(void)
{
    return 130000;
}
const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS         ? "success"
           : status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported"
                                                   : "an error of the emulator";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute, cudaDataType_t)
{
    emulator::products_made++, emulator::products_kept++;
    *made = (cublasLtMatmulDesc_t)(void *)new operation;
    return compute == CUBLAS_COMPUTE_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made)
{
    emulator::products_kept--;
    delete (operation *)(void *)made;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t)
{
    for (const attribute_field &field : attribute_fields) {
        if (field.attribute == (int)attribute) {
            memcpy((char *)(void *)made + field.offset, value, field.bytes);
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading)
{
    *made = (cublasLtMatrixLayout_t)(void *)new layout{type, (int64_t)rows, (int64_t)columns, leading};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made)
{
    delete (layout *)(void *)made;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made)
{
    *made = NULL;
    return CUBLAS_STATUS_SUCCESS;
}
EMULATED_NO_EFFECT(cublasStatus_t, cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)
EMULATED_NO_EFFECT(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreference_t,
                   cublasLtMatmulPreferenceAttributes_t, const void *, size_t)

// Offers two algorithms. The first word of an algorithm identifies it. The second is the alignment that it needs of the
// bias: the heuristic reads it from the address in the descriptor.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t found[], int *count)
{
    if (is_fp8(*(layout *)(void *)a) && does("refuse")) {
        *count = 0;
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    uintptr_t bias = (uintptr_t)((operation *)(void *)how)->bias | 256;
    *count         = wanted < 2 ? wanted : 2;
    for (int i = 0; i < *count; i++) {
        memset(&found[i], 0, sizeof(found[i]));
        found[i].algo.data[0] = (uint64_t)i + 1;
        found[i].algo.data[1] = bias & (~bias + 1);
        found[i].state        = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result)
{
    memset(result, 0, sizeof(*result));
    return (algorithm->data[0] == 1 && !does("second")) || algorithm->data[0] == 2 ? CUBLAS_STATUS_SUCCESS
                                                                                   : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t how, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *, size_t,
                              cudaStream_t stream)
{
    float milliseconds = algorithm->data[0] == 1 && does("late") ? 1 : 0;
    if (algorithm->data[0] == 1 && does("second")) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    product product = {.how      = *(operation *)(void *)how,
                       .a        = *(layout *)(void *)a_layout,
                       .b        = *(layout *)(void *)b_layout,
                       .d        = *(layout *)(void *)d_layout,
                       .a_data   = a,
                       .b_data   = b,
                       .c_data   = c,
                       .d_data   = d,
                       .alpha    = 1,
                       .beta     = 0,
                       .alpha_at = (const float *)alpha,
                       .beta_at  = (const float *)beta};
    if (product.how.pointers == CUBLASLT_POINTER_MODE_HOST) {
        product.alpha = *product.alpha_at;
        product.beta  = *product.beta_at;
    }
    if (is_fp8(product.a) && does("abort")) {
        abort();
    }
    if (c_layout != d_layout || !product.is_possible() || (uintptr_t)product.how.bias % algorithm->data[1] != 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    emulator::enqueue(stream, [=]() mutable {
        product.run();
        emulator::spend(milliseconds);
    });
    return CUBLAS_STATUS_SUCCESS;
}
}

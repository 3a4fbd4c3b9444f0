// SPDX-License-Identifier: MIT
// Loads the cuBLASLt library with the major version of the CUDA toolkit.
#include "gemm.h"

#include <stdio.h>

#define TEXT_OF(number) #number
#define NAME_OF(major)  "libcublasLt.so." TEXT_OF(major)

status blas_open(struct blas *library)
{
    const struct library_symbol symbols[] = {BLAS_FUNCTIONS(LIBRARY_SYMBOL)};
    TRY(library_open(NAME_OF(CUBLAS_VER_MAJOR), symbols, sizeof(symbols) / sizeof(symbols[0])));
    cublasStatus_t error = library->cublasLtCreate(&library->handle);
    if (error != CUBLAS_STATUS_SUCCESS) {
        return fail_as(EXIT_LAUNCH, "cuBLASLt does not start: %s", library->cublasLtGetStatusString(error));
    }
    return OK;
}

void blas_close(struct blas *blas)
{
    BLAS_CHECK(blas, cublasLtDestroy(blas->handle));
}

void blas_version(const struct blas *blas, char text[BLAS_VERSION_BYTES])
{
    size_t version = blas->cublasLtGetVersion();
    snprintf(text, BLAS_VERSION_BYTES, "cuBLASLt %zu.%zu.%zu", version / 10000, version % 10000 / 100, version % 100);
}

void blas_check(const struct blas *blas, cublasStatus_t error, const char *call, const char *file, int line)
{
    if (error != CUBLAS_STATUS_SUCCESS) {
        cuda_failed(blas->cublasLtGetStatusString(error), call, file, line);
    }
}

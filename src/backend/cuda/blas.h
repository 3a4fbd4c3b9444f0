// SPDX-License-Identifier: MIT
// cuBLASLt is loaded at run time, because it takes half a gigabyte of memory and runs on the host do not need it.
#pragma once

#include <cublasLt.h>

#include "gswbench/library.h"
#include "gswbench/status.h"

// clang-format off
#define BLAS_FUNCTIONS(X)                                                               \
    X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtGetVersion) X(cublasLtGetStatusString) \
    X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulAlgoCheck)      \
    X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) \
    X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy)                        \
    X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute)
// clang-format on

struct blas {
    cublasLtHandle_t handle;
    BLAS_FUNCTIONS(LIBRARY_MEMBER)
};

// Creates a handle on the current device. Fails (EXIT_LAUNCH) if the library is missing or does not initialise.
status blas_open(struct blas *library);
void   blas_close(struct blas *blas);

// Writes name and version: "cuBLASLt 13.1.0".
enum { BLAS_VERSION_BYTES = 32 };
void blas_version(const struct blas *blas, char text[BLAS_VERSION_BYTES]);

// Calls a function of cuBLASLt, and ends the job if it fails.
#define BLAS_CHECK(blas, call) blas_check((blas), (blas)->call, #call, __FILE__, __LINE__)
void blas_check(const struct blas *blas, cublasStatus_t error, const char *call, const char *file, int line);

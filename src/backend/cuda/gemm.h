// SPDX-License-Identifier: MIT
// GEMMs of the cuda backend: one entry per distinct problem, with its cuBLASLt descriptors and the algorithm that every
// step uses.
#pragma once

#include "blas.h"
#include "gswbench/gemm.h"
#include "internal.h"

// GEMM_SIZES: slots for GEMMs whose number of rows is only known in the step; a power of two.
enum { GEMM_WORKSPACE_BYTES = 32 << 20, GEMM_SIZES = 4096 };

struct gemm {
    struct prepared        prepared;
    struct gemm           *next;
    struct gemm_key        key;
    cublasLtMatmulDesc_t   operation;
    cublasLtMatrixLayout_t first, second, out;
    cublasLtMatmulAlgo_t   algorithm;
};

struct gemms {
    struct blas       blas;
    struct gemm      *list;
    struct gemm      *sizes[GEMM_SIZES];
    struct gemm_cache cache;
    void             *workspace;    // used on the compute stream, the only one with GEMMs
    float            *factors;      // [2] on the device: factors of an FP4 product and of the previous C
    char              device[256];
    bool              is_deterministic;
    int               timed, remembered, taken;
};

status gemms_open(struct cuda *cuda, const struct backend_setup *setup);
void   gemms_close(struct cuda *cuda);

// Device addresses of A, B, C and the inverse scales of low-precision operands.
struct gemm_operands {
    const void  *a, *b;
    const float *inverse_scale_a, *inverse_scale_b;
    const float *tensor_scale_a, *tensor_scale_b;    // FP4; NULL: 1, when the GEMM is timed
    void        *c;
    const void  *addend;         // read instead of C; NULL: C
    float        scale, keep;    // factors of the product, and of C or the addend
    const void  *bias;           // NULL: the workspace, when the GEMM is timed
};

// gemm.c: enqueues the GEMM with this algorithm. C is input and output unless there is an addend.
cublasStatus_t gemm_run(const struct cuda *cuda, const struct gemm *gemm, const cublasLtMatmulAlgo_t *algorithm,
                        const struct gemm_operands *operands);

// gemm.c: name of a GEMM in the cache.
void gemm_name(const struct backend *backend, const struct op *op, const struct buffer buffers[],
               char problem[GEMM_PROBLEM_BYTES]);

// The cuBLAS of this build supports block scaling.
#define GEMM_SCALES_PARTS (CUBLAS_VERSION >= 120900)

// gemm_tune.c: returns the candidates of the cuBLASLt heuristic, best guess first, and sets *answer to its status.
int gemm_candidates(const struct cuda *cuda, const struct gemm *gemm, int wanted,
                    cublasLtMatmulHeuristicResult_t candidates[], cublasStatus_t *answer);

// Times the candidates and selects the fastest. Fails (EXIT_MEMORY) if their operands do not fit in device memory.
status gemm_tune(struct cuda *cuda, struct gemm *gemm, cublasLtMatmulHeuristicResult_t candidates[], int count,
                 struct gemm_times *times);

// Times several implementations of the same work on the device and returns the fastest.
struct tune {
    cudaStream_t stream;
    // Enqueues one run of a candidate; false: it does not run.
    bool (*run)(void *work, int candidate);
    void *work;
    int   count;       // number of candidates, at most GEMM_CANDIDATES
    bool  is_first;    // the device is idle and needs a long warm-up
};

// Returns the candidate with the smallest median, or -1 if none runs. Fills times with the medians; a much slower
// candidate has only one measurement.
int tune_fastest(const struct tune *tune, struct gemm_times *times);

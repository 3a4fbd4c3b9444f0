// SPDX-License-Identifier: MIT
// Declares the GEMMs of the cuda backend. There is one entry per distinct problem, with its cuBLASLt descriptors and
// the algorithm that every step uses.
#pragma once

#include <cublasLt.h>

#include "gswbench/gemm.h"
#include "gswbench/library.h"
#include "gswbench/status.h"
#include "internal.h"

// cuBLASLt is loaded at run time, because it takes half a gigabyte of memory and runs on the host do not need it.
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

// GEMM_SIZES: slots of the hash table `sizes`, for GEMMs with a number of rows that is known only during the step.
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
    void             *workspace;    // for cuBLASLt; all GEMMs run on the compute stream
    float            *factors;      // [2] on the device: alpha and beta of an FP4 GEMM
    char              device[256];
    bool              is_deterministic;
    int               timed, remembered, taken;    // GEMMs by origin of the algorithm; taken: from another rank
};

// blas: an open library, which gemms_close closes.
void gemms_open(struct cuda *cuda, const struct backend_setup *setup, const struct blas *blas);
void gemms_close(struct cuda *cuda);

// Operands of one run of a GEMM: device addresses of A, B, C and of the inverse scales of low-precision operands.
struct gemm_operands {
    const void  *a, *b;
    const float *inverse_scale_a, *inverse_scale_b;
    const float *tensor_scale_a, *tensor_scale_b;    // FP4 only; NULL: 1, as in timings of candidates
    void        *c;
    const void  *addend;         // matrix to add instead of C; NULL: C
    float        scale, keep;    // alpha, and beta: factor of C or the addend
    const void  *bias;           // NULL: none; if the GEMM has a bias, timings read the workspace instead
};

// Enqueues the GEMM with this algorithm (gemm.c). C is input and output, unless there is an addend.
cublasStatus_t gemm_run(const struct cuda *cuda, const struct gemm *gemm, const cublasLtMatmulAlgo_t *algorithm,
                        const struct gemm_operands *operands);

// Writes the name of a GEMM in the cache file (gemm.c).
void gemm_name(const struct backend *backend, const struct op *op, const struct buffer buffers[],
               char problem[GEMM_PROBLEM_BYTES]);

// Whether the cuBLAS headers of this build have block scaling (1 x 128 and 128 x 128).
#define GEMM_SCALES_PARTS (CUBLAS_VERSION >= 120900)

// Writes at most `wanted` candidate algorithms from the cuBLASLt heuristic, best guess first, and returns their number.
// Sets *answer to the heuristic's status (gemm_tune.c).
int gemm_candidates(const struct cuda *cuda, const struct gemm *gemm, int wanted,
                    cublasLtMatmulHeuristicResult_t candidates[], cublasStatus_t *answer);

// Times the candidates and selects the fastest. Fails (EXIT_MEMORY) if their operands do not fit in device memory.
status gemm_tune(struct cuda *cuda, struct gemm *gemm, cublasLtMatmulHeuristicResult_t candidates[], int count,
                 struct gemm_times *times);

// Parameters of tune_fastest, which times several implementations (candidates) of the same work on the device.
struct tune {
    cudaStream_t stream;
    // Enqueues one run of a candidate. Returns false if it cannot run.
    bool (*run)(void *work, int candidate);
    void *work;
    int   count;       // number of candidates, at most GEMM_CANDIDATES
    bool  is_first;    // nothing was timed before, so the device needs a long warm-up
};

// Returns the candidate with the smallest median time, or -1 if none runs. Fills times with the medians. A candidate
// that is much slower is measured only once.
int tune_fastest(const struct tune *tune, struct gemm_times *times);

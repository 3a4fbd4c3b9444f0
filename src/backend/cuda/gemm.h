// SPDX-License-Identifier: MIT
// GEMMs: one entry per distinct problem, with the cuBLASLt descriptors and the algorithm for every step.
#ifndef GSWBENCH_CUDA_GEMM_H
#define GSWBENCH_CUDA_GEMM_H

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
    char              device[256];
    bool              is_deterministic;
    int               timed, remembered, taken;
};

status gemms_open(struct cuda *cuda, const struct backend_setup *setup);
void   gemms_close(struct cuda *cuda);

// Device addresses of A, B, C and the inverse scales of FP8 operands.
struct gemm_operands {
    const void  *a, *b;
    const float *factor_a, *factor_b;
    void        *c;
    const void  *bias;    // NULL: the workspace, when the GEMM is timed
};

// gemm_bias.c: bias of a GEMM. The descriptor contains an epilogue with bias; each run sets its address. cuBLASLt adds
// only a bias with the type of C. A bias of another type is first written to C, and the GEMM accumulates on it.
void gemm_describe_bias(const struct gemms *gemms, const struct gemm *gemm);
void gemm_set_bias(const struct gemms *gemms, const struct gemm *gemm, const void *bias);
bool gemm_fills_bias(const struct buffer buffers[]);
void gemm_fill_bias(struct backend *backend, const struct op *op, const struct buffer buffers[]);

// gemm.c: enqueues the GEMM with this algorithm. C is both input and output.
cublasStatus_t gemm_run(const struct cuda *cuda, const struct gemm *gemm, const cublasLtMatmulAlgo_t *algorithm,
                        const struct gemm_operands *operands);

// gemm.c: creates the descriptors of a problem, without an algorithm.
struct gemm *gemm_create(struct cuda *cuda, const struct gemm_key *key);
void         gemm_free(const struct blas *blas, struct gemm *gemm);

// gemm_sizes.c: a prepared GEMM with other sizes, and an algorithm for them. NULL: cuBLASLt has none.
const struct gemm *gemm_of_size(struct cuda *cuda, const struct gemm *prepared, const struct gemm_shape *shape);
void               gemm_forget_sizes(struct gemms *gemms);

// gemm.c: name of a GEMM in the cache.
void gemm_name(const struct backend *backend, const struct op *op, const struct buffer buffers[],
               char problem[GEMM_PROBLEM_BYTES]);

// The cuBLAS of this build supports block scaling.
#define GEMM_SCALES_PARTS (CUBLAS_VERSION >= 120900)

// gemm_check.c: fails if no device, or this device, supports the GEMM.
status gemm_check_device(const struct cuda *cuda, const struct gemm_key *key);

// gemm_tune.c: returns the candidates of the cuBLASLt heuristic, best guess first, and sets *answer to its status.
int gemm_candidates(const struct cuda *cuda, const struct gemm *gemm, int wanted,
                    cublasLtMatmulHeuristicResult_t candidates[], cublasStatus_t *answer);

// Times the candidates and selects the fastest. Fails (EXIT_MEMORY) if their operands do not fit in device memory.
status gemm_tune(struct cuda *cuda, struct gemm *gemm, cublasLtMatmulHeuristicResult_t candidates[], int count,
                 struct gemm_times *times);

#endif

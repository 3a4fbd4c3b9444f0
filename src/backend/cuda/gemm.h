// SPDX-License-Identifier: MIT
// GEMMs: one entry for each distinct problem, with the descriptors and the algorithm that every step uses.
#ifndef GSWBENCH_CUDA_GEMM_H
#define GSWBENCH_CUDA_GEMM_H

#include "blas.h"
#include "gswbench/gemm.h"
#include "internal.h"

// sizes: GEMMs that are remembered of rows that are counted in the step, a power of two.
enum { GEMM_WORKSPACE_BYTES = 32 << 20, GEMM_SIZES = 4096 };

struct gemm {
    struct prepared        prepared;
    struct gemm           *next;
    struct gemm_key        key;
    cublasLtMatmulDesc_t   operation;
    cublasLtMatrixLayout_t first, second, out;
    cublasLtMatmulAlgo_t   algorithm;
};

// The state of the op, in struct cuda.
struct gemms {
    struct blas       blas;
    struct gemm      *list;
    struct gemm      *sizes[GEMM_SIZES];
    struct gemm_cache cache;
    void             *workspace;    // of the compute lane, the only one that multiplies
    char              device[256];
    bool              is_deterministic;
    int               timed, remembered, taken;
};

status gemms_open(struct cuda *cuda, const struct backend_setup *setup);
void   gemms_close(struct cuda *cuda);

// A, B and C, and what A and B are to be multiplied by when they are FP8: addresses on the device.
struct gemm_operands {
    const void  *a, *b;
    const float *factor_a, *factor_b;
    void        *c;
    const void  *bias;    // NULL: what stands in the workspace, of a GEMM that is timed
};

// gemm_bias.c: that there is a bias belongs to the problem; a run sets the real one. The library adds one of C's type.
// Another is what C holds when the GEMM adds to it.
void gemm_describe_bias(const struct gemms *gemms, const struct gemm *gemm);
void gemm_set_bias(const struct gemms *gemms, const struct gemm *gemm, const void *bias);
bool gemm_fills_bias(const struct buffer buffers[]);
void gemm_fill_bias(struct backend *backend, const struct op *op, const struct buffer buffers[]);

// gemm.c: enqueues the GEMM with an algorithm. C is also what is added to.
cublasStatus_t gemm_run(const struct cuda *cuda, const struct gemm *gemm, const cublasLtMatmulAlgo_t *algorithm,
                        const struct gemm_operands *operands);

// gemm.c: descriptors of a problem, without an algorithm.
struct gemm *gemm_create(struct cuda *cuda, const struct gemm_key *key);
void         gemm_free(const struct blas *blas, struct gemm *gemm);

// gemm_sizes.c: a prepared GEMM in another size, with an algorithm. NULL: the library has none.
const struct gemm *gemm_of_size(struct cuda *cuda, const struct gemm *prepared, const struct gemm_shape *shape);
void               gemm_forget_sizes(struct gemms *gemms);

// gemm.c: what a GEMM is called in the cache.
void gemm_name(const struct backend *backend, const struct op *op, const struct buffer buffers[],
               char problem[GEMM_PROBLEM_BYTES]);

// Whether the library that this is built with knows scales of parts.
#define GEMM_SCALES_PARTS (CUBLAS_VERSION >= 120900)

// gemm_check.c: whether any device has the GEMM, and this one.
status gemm_check_device(const struct cuda *cuda, const struct gemm_key *key);

// gemm_tune.c: the candidates of the library's heuristic, best guess first; returns how many, and its answer.
int gemm_candidates(const struct cuda *cuda, const struct gemm *gemm, int wanted,
                    cublasLtMatmulHeuristicResult_t candidates[], cublasStatus_t *answer);

// Times the candidates and takes the fastest. Fails (EXIT_MEMORY) when their operands do not fit.
status gemm_tune(struct cuda *cuda, struct gemm *gemm, cublasLtMatmulHeuristicResult_t candidates[], int count,
                 struct gemm_times *times);

#endif

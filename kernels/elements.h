// SPDX-License-Identifier: MIT
// Declares the kernels of ops on flat arrays: casts, sums, AdamW, Muon, digests and random operands; also column sums
// of a matrix.
#pragma once

#include "gswbench/digest.h"
#include "launch.h"

// Casts, sums of squares and gradient clipping on flat arrays. Memory-bound: a cast reads its input and writes its
// output once, and also reads the output if it accumulates. Sums read their input once.
struct cast_args {
    const void *in;     // [elements]
    void       *out;    // [elements]
    int64_t     elements;
    bool        accumulates;
    enum format from, to;
};
KERNEL_FUNCTION int kernel_cast(const struct cast_args *args, const struct kernel_target *target);

struct square_sum_args {
    const void *in;         // [elements]
    float      *out;        // [1]
    double     *scratch;    // size: square_sum_scratch_bytes
    int64_t     elements;
    enum format type;
    bool        accumulates;    // adds to out
};
KERNEL_FUNCTION int kernel_square_sum(const struct square_sum_args *args, const struct kernel_target *target);

// Returns the scratch bytes of kernel_square_sum: one partial sum in double per block.
GSWBENCH_INLINE int64_t square_sum_scratch_bytes(int64_t elements, const struct kernel_target *target)
{
    int64_t packets = launch_groups(elements, LAUNCH_WIDTH);
    return launch_items(packets, target->multiprocessors).blocks * (int64_t)sizeof(double);
}

struct clip_args {
    const float *squares;    // [count]: sums of squares of gradients
    float       *norm;       // [1]: gradient norm, the square root of their sum
    float       *factor;     // [1]: factor that limits the norm, or 1; NaN: the norm is not finite
    int64_t      count;
    float        limit;    // 0: no limit
};
KERNEL_FUNCTION int kernel_clip(const struct clip_args *args, const struct kernel_target *target);

// out = factor * sum of in; with accumulates, out += factor * sum of in.
struct scaled_sum_args {
    const float *in;     // [elements]
    float       *out;    // [1]
    int64_t      elements;
    float        factor;
    bool         accumulates;
};
KERNEL_FUNCTION int kernel_scaled_sum(const struct scaled_sum_args *args, const struct kernel_target *target);

// Hyperparameters of one optimizer step. They are in device memory, so that the host can change them between replays of
// a captured graph.
struct adamw_hyper {
    float learning_rate, beta1, beta2, epsilon, decay;
    float correction1, correction2;    // 1 - beta1^step and 1 - beta2^step
    float key[2];                      // key of stochastic rounding in NVFP4 quantization; not read by AdamW
};

// AdamW on a range of a parameter group, in one kernel. Memory-bound: 30 bytes per weight with fp32 gradients, master
// weights and moments.
struct adamw_args {
    const struct adamw_hyper *hyper;
    const float              *scale;             // [1]: gradient scale of clipping; NaN: no update
    const void               *gradient;          // [elements], like all arrays below
    float                    *master;            // master weights; NULL: weight is updated directly
    void                     *first, *second;    // moments
    void                     *weight;            // may be NULL with master weights
    float                    *magnitude;         // [1] or NULL: raised to the amax of the stored weights
    int64_t                   elements;
    enum format               gradient_type, moment, weight_type;
};
KERNEL_FUNCTION int kernel_adamw(const struct adamw_args *args, const struct kernel_target *target);

// The parts of Muon before and after its Newton-Schulz GEMMs. Memory-bound, in bytes per weight: momentum 16 with fp32
// gradients and moments, normalization 6 with a BF16 result, the update 12 with master weights.
struct momentum_args {
    const float *scale;       // [1]: gradient scale of clipping; NaN: out becomes 0
    const void  *gradient;    // [elements], like all arrays below
    void        *momentum;
    float       *out;
    int64_t      elements;
    float        decay;
    enum format  gradient_type, moment;
};
KERNEL_FUNCTION int kernel_momentum(const struct momentum_args *args, const struct kernel_target *target);

struct normalize_args {
    const float *in;         // [elements]
    const float *squares;    // [1]: sum of squares of in
    void        *out;        // [elements]
    int64_t      elements;
    enum format  type;    // of out
};
KERNEL_FUNCTION int kernel_normalize(const struct normalize_args *args, const struct kernel_target *target);

struct muon_args {
    const struct adamw_hyper *hyper;
    const float              *scale;     // [1]; NaN: no update; other values have no effect
    const void               *update;    // [elements], like all arrays below
    float                    *master;    // master weights; NULL: weight is updated directly
    void                     *weight;    // may be NULL with master weights
    int64_t                   elements;
    float                     factor;    // factor of the update
    enum format               type;      // of update and weight
};
KERNEL_FUNCTION int kernel_muon(const struct muon_args *args, const struct kernel_target *target);

// Column sums of a matrix (the gradient of a bias), and copies of a bias to every row of a matrix, to which a GEMM then
// adds. Memory-bound: column sums read each element of the matrix once, copies write it once.
struct column_sum_args {
    const void *in;         // [rows, columns]
    void       *out;        // [columns]
    float      *scratch;    // size: kernel_column_sum_scratch_bytes
    int64_t     rows, columns;
    bool        accumulates;
    enum format in_type, out_type;
};
KERNEL_FUNCTION int     kernel_column_sum(const struct column_sum_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int64_t kernel_column_sum_scratch_bytes(int64_t rows, int64_t columns,
                                                        const struct kernel_target *target);

struct equal_rows_args {
    const void *row;    // bf16 [columns]
    float      *out;    // [rows, columns]
    int64_t     rows, columns;
    bool        accumulates;
};
KERNEL_FUNCTION int kernel_equal_rows(const struct equal_rows_args *args, const struct kernel_target *target);

// Digest of a tensor: hash and sketch. Memory-bound: each byte is read once.
struct digest_args {
    const void    *in;       // [bytes]
    struct digest *parts;    // [digest_blocks]: partial digest of each block
    struct digest *out;      // [1]
    int64_t        bytes;
    enum format    type;
};
KERNEL_FUNCTION int kernel_digest(const struct digest_args *args, const struct kernel_target *target);

// Returns the maximum number of blocks that kernel_digest launches for a tensor of any size, for the size of `parts`.
GSWBENCH_INLINE int64_t digest_blocks(int32_t multiprocessors)
{
    return (int64_t)multiprocessors * (LAUNCH_RESIDENT_THREADS / DIGEST_BUCKETS);
}

// Fills an operand of a benchmark with random numbers. Zeros would be too fast: the power of a GEMM depends on the
// number of toggling bits, and the clock depends on the power. Bound by integer arithmetic; used only outside steps.
struct random_fill_args {
    void       *out;    // [elements]
    int64_t     elements;
    enum format type;    // f32, bf16, FP8 or E2M1 (FP4)
    uint64_t    key;     // element i is random_normal(key, i); FP8: scaled to the range; FP4: equal within a byte
};
KERNEL_FUNCTION int kernel_random_fill(const struct random_fill_args *args, const struct kernel_target *target);

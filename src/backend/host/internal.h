// SPDX-License-Identifier: MIT
// Declares the host backend's state, and helpers for its ops: loops over rows, scratch, and access to rows as fp32.
#pragma once

#include "gswbench/backend.h"
#include "gswbench/number.h"
#include "pool.h"

struct host {
    struct pool             *pool;
    float                   *scratch;
    int64_t                  blas_bytes;    // result of host_blas_reserve; 0: not called yet, or no limit
    const struct host_pairs *pairs;         // inner kernel of bf16 GEMMs; NULL: gemm_packed.c is not compiled in
};

// A loop over the parts of an op, for example its rows, which are divided among the threads. body computes parts first
// .. last - 1 on one thread.
struct loop;
typedef void host_body(const struct loop *loop, int64_t first, int64_t last, int thread);
struct loop {
    const struct op     *op;
    const struct buffer *buffers;
    const struct host   *host;
    host_body           *body;
};

// How the host computes a kind of op. An op that is one loop sets body and count; other ops set run.
// OP_READ_TOKEN_COUNTS sets neither, because it does nothing. `each` returns the number of floats of scratch per
// thread, and `shared` the number that all threads share; NULL: none. If scratch per thread is a number of rows of
// shape.rows, `rows` is set instead of `each`.
struct host_op {
    op_run    *run;
    host_body *body;
    int64_t (*count)(const struct op *op);
    int64_t (*each)(const struct op *op);
    int64_t (*shared)(const struct op *op);
    int64_t rows;
};
#define HOST_OP(kind, name) extern const struct host_op host_##name;
OP_COMPUTE_KINDS(HOST_OP)
extern const struct host_op *const host_ops[OP_COUNT];

// Functions of the backend's table: run an op of any kind, and return its scratch bytes.
op_run  host_run;
int64_t host_scratch_bytes(struct backend *backend, const struct op *op);

// Functions for host_op.count and host_op.shared that several ops use.
int64_t host_count_rows(const struct op *op);
int64_t host_count_tokens(const struct op *op);    // batch * sequence of shape.attention
int64_t host_count_routed(const struct op *op);    // rows of shape.routing
int64_t host_count_groups(const struct op *op);    // groups of shape.mamba
int64_t host_part_floats(const struct op *op);     // space for HOST_PARTS fp32 or double results

// Runs body for indices 0 .. count - 1, divided among the threads of the rank.
void host_run_loop(struct backend *backend, const struct op *op, const struct buffer buffers[], host_body *body,
                   int64_t count);

// Return scratch, aligned to a cache line. host_space: host_op.each floats, or host_op.rows rows, of a thread.
// host_shared: host_op.shared floats of all threads.
void *host_space(const struct loop *loop, int thread);
void *host_shared(const struct host *host, const struct op *op);

// Checks that the limit on address space leaves room for the buffers that OpenBLAS maps when this number of threads
// call it at the same time. Counts their bytes until host_blas_release, and returns them. Returns 0 if address space is
// not limited. Ends the job if the limit is too low.
int64_t host_blas_reserve(int threads);
void    host_blas_release(int64_t bytes);

// Number of partial sums that are added in order. It is fixed, so that a sum does not depend on the number of threads.
enum { HOST_PARTS = 64 };

// Each of HOST_PARTS parts of the rows has `count` sums of a gradient, in double. host_part_sums returns the sums of a
// part, in shared scratch. host_add_parts adds sums first .. last - 1 of parts 1, 2, ... to the same sums of part 0, in
// this order. Returns the address of sum `first` of part 0.
double *host_part_sums(const struct loop *loop, int64_t part, int64_t count);
double *host_add_parts(const struct loop *loop, int64_t count, int64_t first, int64_t last);

// Returns elements in fp32, from index `at` on: a pointer into the buffer if it is fp32, else to `space` with the
// converted elements.
const float *row_read(const struct buffer *buffer, int64_t at, int64_t count, float *space);
// Returns where to write fp32 values: the buffer if it is fp32, else `space`. Then row_close rounds `space` into the
// buffer.
float *row_open(const struct buffer *buffer, int64_t at, float *space);
void   row_close(const struct buffer *buffer, int64_t at, int64_t count, const float *values);
// Overwrites the elements in the buffer, or adds the values to them in fp32 and rounds once. row_store_sums first
// rounds sums in double to `space`.
void row_store(const struct buffer *buffer, int64_t at, int64_t count, const float *values, bool accumulates);
void row_store_sums(const struct buffer *buffer, int64_t at, int64_t count, const double *sums, float *space,
                    bool accumulates);
void row_copy(const struct buffer *to, int64_t to_at, const struct buffer *from, int64_t from_at, int64_t count);
void row_clear(const struct buffer *buffer, int64_t at, int64_t count);

// Sums in double. row_deviation: sum of (x - mean)^2.
double row_sum(const float *x, int64_t count);
double row_dot(const float *x, const float *y, int64_t count);
double row_deviation(const float *x, double mean, int64_t count);
float  row_maximum(const float *x, int64_t count);
float  row_magnitude(const float *x, int64_t count);                         // maximum of |x|; ignores NaN
void   row_scale(float *to, const float *x, int64_t count, float factor);    // to may be x
// Replaces x by exp(x - shift) and returns the sum.
double row_exponential(float *x, float shift, int64_t count);

// A matrix within a buffer. at: index of its first element; leading: elements from one row to the next.
struct view {
    int64_t at, leading, rows, columns;
};
// An fp32 matrix in memory. transposed: a GEMM multiplies by its transpose.
struct panel {
    float  *data;
    int64_t leading, rows, columns;
    bool    transposed;
};
// Returns the matrix as fp32: in the buffer if it is fp32, else a contiguous copy in `space`.
struct panel panel_read(const struct buffer *buffer, const struct view *view, float *space);
void panel_write(const struct buffer *buffer, const struct view *view, const struct panel *panel, bool accumulates);
// Computes out = factor * a * b + keep * out with BLAS. If keep is 0, out is not read.
void panel_multiply(const struct panel *out, const struct panel *a, const struct panel *b, float factor, float keep);

// Returns the amax of a buffer. Overwrites HOST_PARTS doubles of shared scratch, and CHUNK (elements.c) floats of each
// thread's scratch.
float host_find_magnitude(struct backend *backend, const struct op *op, const struct buffer *in);

// Returns the local row of the embedding table for a token, or the local column of the logits for a target; -1 if it is
// in another shard of the vocabulary. Ends the job if the vocabulary does not have it.
int64_t host_local_token(const struct op *op, const int32_t *tokens, int64_t row);

// Executes OP_QUANTIZE to NVFP4, in the scratch of host_quantize. host_read_tile returns the tile of 128 x 128 elements
// with this index, and its first row and column.
op_run       host_quantize_nv;
struct panel host_read_tile(const struct loop *loop, int64_t index, int64_t *row, int64_t *column, float *space);

// A part of a matrix: first row and column, number of rows and columns. host_gemm_rectangle returns the part of a
// GEMM's output C that thread `index` computes. It starts at multiples of 32 and may be empty.
struct rectangle {
    int64_t row, column, rows, columns;
};
struct rectangle host_gemm_rectangle(const struct gemm_shape *shape, int threads, int64_t index);

// host_gemm_scales_parts returns whether FP8 operands have a scale per scaling block or row. host_gemm_inverse_scale
// returns the factor of the whole product: gemm_scale of the shape, times the per-tensor inverse scales if there are
// any.
bool  host_gemm_scales_parts(const struct loop *loop);
float host_gemm_inverse_scale(const struct loop *loop);
// Adds the bias and the addend to a rectangle of C in fp32, before it is stored. leading: elements from one row of c to
// the next.
void host_gemm_add_bias(const struct loop *loop, const struct rectangle *place, float *c, int64_t leading);
// The partial sum over a range of k, for a rectangle of C.
struct depth_part {
    const struct rectangle *place;
    int64_t                 k;        // start of the range
    bool                    keeps;    // adds to c instead of overwriting it
};
// Computes c = from * (inverse scale of the row of A * inverse scale of the column of B), or c += if part->keeps. from:
// the unscaled product over this range of k.
void host_gemm_scale_part(const struct loop *loop, const struct depth_part *part, const struct panel *from,
                          const struct panel *c);

// Inner kernel of gemm_packed.c for bf16. host_pairs_find returns NULL if the program was compiled without AVX512_BF16
// or AVX512_VBMI.
struct host_pairs;
const struct host_pairs *host_pairs_find(void);
const char              *host_pairs_name(const struct host_pairs *pairs);

// Runs a GEMM with gemm_packed.c; host->pairs must not be NULL. Both operands are fp32, or each is bf16 or FP8.
int64_t host_packed_floats(void);    // scratch per thread
op_run  host_packed_gemm;

// Rotates one head of one token by RoPE. direction: 1, or -1 to rotate back. table: (cosine, sine) pairs of the
// position.
void rope_rotate(float *out, const float *in, const struct attention_shape *shape, const float *table, float direction);

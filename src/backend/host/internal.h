// SPDX-License-Identifier: MIT
// What the host backend's ops share: the state, loops over rows, scratch, and rows read and written as fp32.
#ifndef GSWBENCH_HOST_INTERNAL_H
#define GSWBENCH_HOST_INTERNAL_H

#include "gswbench/backend.h"
#include "pool.h"

struct host {
    struct pool *pool;
    float       *scratch;
    bool         has_amx;       // the processor multiplies bf16 matrices
    int64_t      blas_bytes;    // of address space that are kept for the BLAS
};

// What a loop over an op's rows works on.
struct loop {
    const struct op     *op;
    const struct buffer *buffers;
    const struct host   *host;
};

// Runs a loop of count indices over the rank's threads; body's context is a struct loop.
void host_run_loop(struct backend *backend, const struct op *op, const struct buffer buffers[], pool_body *body,
                   int64_t count);
// The same over the rows of an op that FP8 copies of its output may be fused to: an output that is absent goes to
// scratch, and the copies are made of it.
void host_run_fused(struct backend *backend, const struct op *op, const struct buffer buffers[], pool_body *body);

// Every op states its scratch as so many floats a thread; thread's share of it, on a cache line.
float *host_scratch(const struct loop *loop, int thread, int64_t floats_per_thread);

// Keeps address space for what the BLAS maps when so many threads multiply at once; none without a limit. Fatal when
// there is too little.
int64_t host_blas_reserve(int threads);
void    host_blas_release(int64_t bytes);

// Sums whose value must not depend on the number of threads are made of this many partial sums, in this order.
enum { HOST_PARTS = 64 };

// Element at of a buffer and those behind it, as fp32: the buffer itself when it holds fp32, else converted into space.
const float *row_read(const struct buffer *buffer, int64_t at, int64_t count, float *space);
// Where to put fp32 values that row_close then rounds into the buffer: the buffer itself, or space.
float *row_open(const struct buffer *buffer, int64_t at, float *space);
void   row_close(const struct buffer *buffer, int64_t at, int64_t count, const float *values);
// Adds values to what the buffer holds (rounding once), or overwrites it.
void row_store(const struct buffer *buffer, int64_t at, int64_t count, const float *values, bool accumulates);
void row_copy(const struct buffer *to, int64_t to_at, const struct buffer *from, int64_t from_at, int64_t count);

// Reductions: sums and products in double. deviation is the sum of (x - mean)^2.
double row_sum(const float *x, int64_t count);
double row_dot(const float *x, const float *y, int64_t count);
double row_deviation(const float *x, double mean, int64_t count);
float  row_maximum(const float *x, int64_t count);
float  row_magnitude(const float *x, int64_t count);    // the largest; NaN is none
void   row_scale(float *x, int64_t count, float factor);
// Replaces x by exp(x - shift) and returns the sum.
double row_exponential(float *x, float shift, int64_t count);

// Where a matrix lies in a buffer: its first element, and the elements from one row to the next.
struct view {
    int64_t at, leading, rows, columns;
};
// A matrix in fp32, as it is stored; transposed when its transpose is meant.
struct panel {
    float  *data;
    int64_t leading, rows, columns;
    bool    transposed;
};
// The buffer itself when it holds fp32, else a copy in space without gaps.
struct panel panel_read(const struct buffer *buffer, const struct view *view, float *space);
void panel_write(const struct buffer *buffer, const struct view *view, const struct panel *panel, bool accumulates);
// out = factor * a * b + keep * out, by BLAS. With keep 0, out is not read.
void panel_multiply(const struct panel *out, const struct panel *a, const struct panel *b, float factor, float keep);

int64_t host_minimum(int64_t a, int64_t b);

// The largest magnitude in a buffer; in scratch, of which [HOST_PARTS] and a thread's share of ops on flat arrays do.
float host_find_magnitude(struct backend *backend, const struct op *op, const struct buffer *in);

// The part of C that one of the threads computes; starts at multiples of 32, and may be empty.
struct rectangle {
    int64_t row, column, rows, columns;
};
struct rectangle host_gemm_rectangle(const struct gemm_shape *shape, int threads, int64_t index);

// Whether parts of FP8 operands have factors of their own, and what the whole of C is multiplied by.
bool host_gemm_scales_parts(const struct loop *loop);
// Adds the bias to a place of C that is not stored yet, whose rows are so far apart.
void  host_gemm_add_bias(const struct loop *loop, const struct rectangle *place, float *c, int64_t leading);
float host_gemm_factor(const struct loop *loop);
// A sum over a part of the depth, in a place of C.
struct depth_part {
    const struct rectangle *place;
    int64_t                 k;        // where the part begins in the depth
    bool                    keeps;    // C is added to
};
// c = from times the factors that its rows and columns have in that part of the depth, or += when it keeps c.
void host_gemm_scale_part(const struct loop *loop, const struct depth_part *part, const struct panel *from,
                          const struct panel *c);

// Products of bf16 or FP8 by matrix instructions; enable is false where processor, kernel or compiler lack them.
bool    host_amx_enable(void);
int64_t host_amx_floats(const struct op *op, int threads);
op_run  host_amx_gemm;

// The ops, each a function by its kind's name, and the floats of scratch a thread that each needs.
#define HOST_OP(kind, name) op_run host_##name;
OP_COMPUTE_KINDS(HOST_OP)
typedef int64_t host_floats(const struct op *op, int threads);
host_floats host_embedding_forward_floats, host_embedding_backward_floats, host_norm_floats, host_norm_backward_floats,
    host_gemm_floats, host_rope_floats, host_rope_backward_floats, host_latent_rope_floats, host_attention_floats,
    host_attention_backward_floats, host_activation_floats, host_route_floats, host_route_backward_floats,
    host_dispatch_floats, host_cross_entropy_floats, host_elements_floats, host_quantize_floats, host_sink_floats,
    host_column_sum_floats;

#endif

// SPDX-License-Identifier: MIT
// Computes GEMMs with BLAS, or with gemm_packed.c on processors that have instructions for pairs of bf16 (AVX-512,
// AMX).
//
// Results must not depend on the number of threads. BLAS may sum the edges of a matrix in another order than its
// interior, so the blocks of C that are passed to BLAS depend only on the shape. gemm_packed.c sums along k in the same
// order for any division of C.
#include "gswbench/format.h"
#include "internal.h"

// Sizes of the blocks of bf16, FP8 and FP4 operands, which are converted to fp32 and fit in the cache.
enum { BLOCK_ROWS = 512, BLOCK_COLUMNS = 512, BLOCK_DEPTH = 512 };
enum { MULTIPLE = 32, PARTS = 2 };    // C is divided at multiples of MULTIPLE; PARTS: see block_side

static int64_t share(int64_t size, int64_t parts, int64_t part)
{
    int64_t multiples = number_groups(size, MULTIPLE);
    return number_min(size, multiples * part / parts * MULTIPLE);
}

struct rectangle host_gemm_rectangle(const struct gemm_shape *shape, int threads, int64_t index)
{
    int64_t best_rows = 1, best_cost = INT64_MAX;
    for (int64_t rows = 1; rows <= threads; rows++) {
        int64_t columns = threads / rows;
        // Cost of a thread: proportional to the elements of C that it computes, plus a little for each row of A and
        // column of B that it reads.
        int64_t height = shape->m / rows + 1, width = shape->n / columns + 1;
        int64_t cost = height * width * 64 + (height + width) * 32;
        if (rows * columns == threads && cost < best_cost) {
            best_rows = rows;
            best_cost = cost;
        }
    }
    int64_t          columns = threads / best_rows, row = index / columns, column = index % columns;
    struct rectangle rectangle = {.row = share(shape->m, best_rows, row), .column = share(shape->n, columns, column)};
    rectangle.rows             = share(shape->m, best_rows, row + 1) - rectangle.row;
    rectangle.columns          = share(shape->n, columns, column + 1) - rectangle.column;
    return rectangle;
}

// Returns the number of floats of scratch per thread: blocks of A, B and C, and of a partial sum to add to C.
static int64_t floats(const struct op *op)
{
    (void)op;
    int64_t blocks = BLOCK_ROWS * BLOCK_DEPTH + BLOCK_DEPTH * BLOCK_COLUMNS + 2 * BLOCK_ROWS * BLOCK_COLUMNS;
    return number_max(blocks, host_packed_floats());
}

// Reads a block of an operand. block: rows and columns as the GEMM uses them. stored: row length in the buffer, where
// the operand may be transposed.
static struct panel read_block(const struct buffer *buffer, const struct rectangle *block, int64_t stored,
                               bool transposed, float *space)
{
    struct view view = {block->row * stored + block->column, stored, block->rows, block->columns};
    if (transposed) {
        view = (struct view){block->column * stored + block->row, stored, block->columns, block->rows};
    }
    struct panel panel = panel_read(buffer, &view, space);
    panel.transposed   = transposed;
    return panel;
}

static bool is_nv(const struct loop *loop)
{
    return scaling_is_nv((enum scaling)loop->op->shape.gemm.scaling_a);
}

bool host_gemm_scales_parts(const struct loop *loop)
{
    return loop->op->shape.gemm.scaling_a != SCALING_WHOLE && !is_nv(loop);
}

float host_gemm_inverse_scale(const struct loop *loop)
{
    float factor = gemm_scale(&loop->op->shape.gemm);
    int   first  = is_nv(loop) ? GEMM_TENSOR_SCALE_A : GEMM_INVERSE_SCALE_A;
    for (int slot = first; slot <= first + 1 && !host_gemm_scales_parts(loop); slot++) {
        factor *= loop->buffers[slot].data != NULL ? *(const float *)loop->buffers[slot].data : 1;
    }
    return factor;
}

static float factor_at(const struct buffer *factors, int64_t at)
{
    return element_read(factors->format, factors->data, at);
}

// For NVFP4: multiplies a block of an operand, [rows, k], by the inverse scale of each 16 elements. The products are
// exact in fp32.
static void scale_blocks(const struct loop *loop, bool is_a, const struct panel *panel, int64_t row, int64_t k)
{
    const struct gemm_shape *shape   = &loop->op->shape.gemm;
    const struct buffer     *factors = &loop->buffers[is_a ? GEMM_INVERSE_SCALE_A : GEMM_INVERSE_SCALE_B];
    for (int64_t i = 0; i < panel->rows && is_nv(loop); i++) {
        for (int64_t j = 0; j < panel->columns; j += SCALING_NV_BLOCK) {
            int64_t at     = scaling_inverse_at(SCALING_NV, is_a ? shape->m : shape->n, shape->k, row + i, k + j);
            int64_t count  = number_min(SCALING_NV_BLOCK, panel->columns - j);
            float  *values = panel->data + i * panel->leading + j;
            row_scale(values, values, count, factor_at(factors, at));
        }
    }
}

void host_gemm_scale_part(const struct loop *loop, const struct depth_part *part, const struct panel *from,
                          const struct panel *c)
{
    const struct gemm_shape *shape     = &loop->op->shape.gemm;
    const struct rectangle  *place     = part->place;
    enum scaling             scaling_a = (enum scaling)shape->scaling_a;
    enum scaling             scaling_b = (enum scaling)shape->scaling_b;
    const struct buffer     *a = &loop->buffers[GEMM_INVERSE_SCALE_A], *b = &loop->buffers[GEMM_INVERSE_SCALE_B];
    float                    of_columns[BLOCK_COLUMNS];
    for (int64_t i = 0; i < place->columns; i++) {
        of_columns[i] = factor_at(b, scaling_inverse_at(scaling_b, shape->n, shape->k, place->column + i, part->k));
    }
    for (int64_t row = 0; row < place->rows; row++) {
        float of_row      = factor_at(a, scaling_inverse_at(scaling_a, shape->m, shape->k, place->row + row, part->k));
        const float *sums = from->data + row * from->leading;
        float       *to   = c->data + row * c->leading;
        for (int64_t i = 0; i < place->columns; i++) {
            to[i] = (part->keeps ? to[i] : 0) + sums[i] * (of_row * of_columns[i]);
        }
    }
}

static void add_addend(const struct loop *loop, const struct rectangle *place, float *c, int64_t leading)
{
    const struct gemm_shape *shape  = &loop->op->shape.gemm;
    const struct buffer     *addend = &loop->buffers[GEMM_ADDEND];
    for (int64_t row = 0; addend->data != NULL && row < place->rows; row++) {
        for (int64_t first = 0; first < place->columns; first += BLOCK_COLUMNS) {
            float        space[BLOCK_COLUMNS];
            int64_t      count  = number_min(BLOCK_COLUMNS, place->columns - first);
            int64_t      at     = (place->row + row) * shape->n + place->column + first;
            const float *values = row_read(addend, at, count, space);
            for (int64_t i = 0; i < count; i++) {
                c[row * leading + first + i] += shape->addend * values[i];
            }
        }
    }
}

void host_gemm_add_bias(const struct loop *loop, const struct rectangle *place, float *c, int64_t leading)
{
    const struct buffer *bias = &loop->buffers[GEMM_BIAS];
    for (int64_t first = 0; bias->data != NULL && first < place->columns; first += BLOCK_COLUMNS) {
        float        space[BLOCK_COLUMNS];
        int64_t      count  = number_min(BLOCK_COLUMNS, place->columns - first);
        const float *values = row_read(bias, place->column + first, count, space);
        for (int64_t row = 0; row < place->rows; row++) {
            for (int64_t i = 0; i < count; i++) {
                c[row * leading + first + i] += values[i];
            }
        }
    }
    add_addend(loop, place, c, leading);
}

static void multiply_block(const struct loop *loop, const struct rectangle *block, int64_t depth, float *space)
{
    const struct gemm_shape *shape   = &loop->op->shape.gemm;
    const struct buffer     *buffers = loop->buffers, *c = &buffers[GEMM_C];
    float       *b_space = space + BLOCK_ROWS * BLOCK_DEPTH, *c_space = b_space + BLOCK_DEPTH * BLOCK_COLUMNS;
    struct view  place    = {block->row * shape->n + block->column, shape->n, block->rows, block->columns};
    bool         in_place = c->format == FORMAT_F32;
    struct panel part     = {c_space + BLOCK_ROWS * BLOCK_COLUMNS, BLOCK_COLUMNS, block->rows, block->columns, false};
    struct panel to       = in_place ? panel_read(c, &place, c_space)
                                     : (struct panel){c_space, BLOCK_COLUMNS, block->rows, block->columns, false};
    for (int64_t k = 0; k < shape->k; k += depth) {
        int64_t          length = number_min(depth, shape->k - k);
        float            keep   = k > 0 || (in_place && loop->op->accumulates) ? 1.0f : 0.0f;
        struct rectangle of_a = {block->row, k, block->rows, length}, of_b = {k, block->column, length, block->columns};
        struct panel     a =
            read_block(&buffers[GEMM_A], &of_a, shape->transpose_a ? shape->m : shape->k, shape->transpose_a, space);
        struct panel b =
            read_block(&buffers[GEMM_B], &of_b, shape->transpose_b ? shape->k : shape->n, shape->transpose_b, b_space);
        scale_blocks(loop, true, &a, block->row, k);
        scale_blocks(loop, false, &b, block->column, k);
        if (host_gemm_scales_parts(loop)) {
            panel_multiply(&part, &a, &b, 1, 0);
            host_gemm_scale_part(loop, &(struct depth_part){block, k, keep != 0}, &part, &to);
        } else {
            panel_multiply(&to, &a, &b, host_gemm_inverse_scale(loop), keep);
        }
    }
    host_gemm_add_bias(loop, block, to.data, to.leading);
    if (!in_place) {
        panel_write(c, &place, &to, loop->op->accumulates);
    }
}

static int64_t block_side(int64_t size, int64_t minimum, int64_t maximum)
{
    int64_t half = number_groups(size, PARTS * MULTIPLE) * MULTIPLE;
    return half < minimum ? minimum : number_min(maximum, half);
}

// Returns the size of a block of C: half of each side of C, so that several threads get a block, within limits. Below
// the minimum BLAS is slow. If all matrices are fp32 (is_wide), a block may be larger, so that operands are read fewer
// times. Else scratch holds blocks of the matrices, which limits their size.
static struct rectangle first_block(const struct gemm_shape *shape, bool is_wide)
{
    static const struct bounds {
        int64_t rows, columns;
    } minimum = {256, 512}, maximum = {BLOCK_ROWS, BLOCK_COLUMNS}, most_wide = {1024, 2048};
    const struct bounds *bounds = is_wide ? &most_wide : &maximum;
    return (struct rectangle){.rows    = block_side(shape->m, minimum.rows, bounds->rows),
                              .columns = block_side(shape->n, minimum.columns, bounds->columns)};
}

static bool is_all_wide(const struct buffer buffers[OP_OPERANDS])
{
    return buffers[GEMM_A].format == FORMAT_F32 && buffers[GEMM_B].format == FORMAT_F32 &&
           buffers[GEMM_C].format == FORMAT_F32;
}

static void multiply_blocks(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct gemm_shape *shape   = &loop->op->shape.gemm;
    float                   *space   = host_space(loop, thread);
    bool                     is_wide = is_all_wide(loop->buffers);
    int64_t                  part    = scaling_depth((enum scaling)shape->scaling_a);
    int64_t                  depth   = is_wide ? shape->k : host_gemm_scales_parts(loop) ? part : BLOCK_DEPTH;
    struct rectangle         whole   = first_block(shape, is_wide);
    int64_t                  across  = number_groups(shape->n, whole.columns);
    for (int64_t index = first; index < last; index++) {
        struct rectangle block = {.row = index / across * whole.rows, .column = index % across * whole.columns};
        block.rows             = number_min(whole.rows, shape->m - block.row);
        block.columns          = number_min(whole.columns, shape->n - block.column);
        multiply_block(loop, &block, depth, space);
    }
}

// Returns whether gemm_packed.c supports these operands: fp32 with fp32, or bf16 and FP8 in any combination. It does
// not support FP4.
static bool can_be_packed(const struct buffer buffers[OP_OPERANDS])
{
    enum format a = buffers[GEMM_A].format, b = buffers[GEMM_B].format;
    return a == FORMAT_F32 ? b == FORMAT_F32 : b != FORMAT_F32 && a != FORMAT_E2M1 && b != FORMAT_E2M1;
}

static void run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct host *host = backend->state;
    if (host->pairs != NULL && can_be_packed(buffers)) {
        host_packed_gemm(backend, op, buffers);
    } else {
        const struct gemm_shape *shape  = &op->shape.gemm;
        struct rectangle         block  = first_block(shape, is_all_wide(buffers));
        int64_t                  blocks = number_groups(shape->m, block.rows) * number_groups(shape->n, block.columns);
        host_run_loop(backend, op, buffers, multiply_blocks, blocks);
    }
}

const struct host_op host_gemm = {.run = run, .each = floats};

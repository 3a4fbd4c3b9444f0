// SPDX-License-Identifier: MIT
// bf16 and FP8 GEMMs with AMX tiles and fp32 accumulation. Both operands are first packed into tiles as bf16, which
// represents every FP8 value exactly.
#define _GNU_SOURCE    // syscall
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gswbench/fp8.h"
#include "internal.h"

#if defined(__AMX_BF16__) && defined(__AVX512VBMI__)
#include <immintrin.h>

// A tile is 16 rows of 16 words, and a word holds two bf16 adjacent in k. A tile of A has one row for each row of A; a
// tile of B has one row for each pair of k. So both hold 16 x 32 elements.
enum { SIDE = 16, TILE_DEPTH = 2 * SIDE, TILE_BYTES = 1024, TILE_FLOATS = TILE_BYTES / 4 };
// Block of C per thread, and tiles of k per pass. The packed parts of A stay in the L2 cache and the parts of B in the
// L1 cache.
enum { BLOCK_ROWS = 256, BLOCK_COLUMNS = 256, DEPTH_TILES = 8 };

static int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

bool host_amx_enable(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };    // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

// Number of panels of SIDE rows of A or SIDE columns of B. It is even, because panels are multiplied in pairs.
static int64_t panels_of(int64_t size)
{
    return 2 * ceiling(size, 2 * SIDE);
}

static int64_t depth_of(const struct op *op)
{
    return ceiling(op->shape.gemm.k, TILE_DEPTH);
}

// Scratch: one block of C per thread, then the packed operands, shared.
int64_t host_amx_floats(const struct op *op, int threads)
{
    const struct gemm_shape *shape  = &op->shape.gemm;
    int64_t                  shared = (panels_of(shape->m) + panels_of(shape->n)) * depth_of(op) * TILE_FLOATS;
    return BLOCK_ROWS * BLOCK_COLUMNS + shared / threads + 32;
}

// Packed panels of A, followed by the panels of B.
static uint32_t *packed_panel(const struct loop *loop, int64_t panel)
{
    float *shared = host_scratch(loop, pool_threads(loop->host->pool), BLOCK_ROWS * BLOCK_COLUMNS);
    return (uint32_t *)(void *)shared + panel * depth_of(loop->op) * TILE_FLOATS;
}

// Transposes a 16 x 16 matrix of words by exchanging blocks of 8, 4, 2 and 1.
static void transpose_words(uint32_t *tile)
{
    __m512i rows[SIDE];
    for (int i = 0; i < SIDE; i++) {
        rows[i] = _mm512_loadu_si512(tile + i * SIDE);
    }
    for (int side = SIDE / 2; side >= 1; side /= 2) {
        uint32_t low[SIDE], high[SIDE];
        for (int i = 0; i < SIDE; i++) {
            low[i]  = (uint32_t)((i & side) == 0 ? i : SIDE + i - side);
            high[i] = (uint32_t)((i & side) == 0 ? i + side : SIDE + i);
        }
        __m512i take_low = _mm512_loadu_si512(low), take_high = _mm512_loadu_si512(high);
        for (int i = 0; i < SIDE; i++) {
            if ((i & side) == 0) {
                __m512i first  = rows[i];
                rows[i]        = _mm512_permutex2var_epi32(first, take_low, rows[i + side]);
                rows[i + side] = _mm512_permutex2var_epi32(first, take_high, rows[i + side]);
            }
        }
    }
    for (int i = 0; i < SIDE; i++) {
        _mm512_storeu_si512(tile + i * SIDE, rows[i]);
    }
}

// Low and high bytes of the bf16 values of every FP8 code without sign.
struct decoder {
    __m512i low[2], high[2];
};

static void decoder_fill(struct decoder *decoder, enum format format)
{
    enum { CODES = 128 };
    uint8_t *low = (uint8_t *)decoder->low, *high = (uint8_t *)decoder->high;
    for (int code = 0; code < CODES; code++) {
        bf16 value = bf16_from_float(fp8_to_float(format, (uint8_t)code));
        low[code]  = (uint8_t)value;
        high[code] = (uint8_t)(value >> 8);
    }
}

// Operand: (i, k) is element i * across + k * along, for i < size and k < depth. Tiles are zero-padded.
struct source {
    const struct buffer *buffer;
    struct decoder       decoder;    // if the buffer is FP8
    int64_t              across, along, size, depth;
    bool                 is_strided;    // k is not contiguous
};

static uint32_t mask_of(int64_t elements)
{
    return elements >= 32 ? UINT32_MAX : elements <= 0 ? 0 : (1u << elements) - 1;
}

// Loads elements from at on as bf16; masked-out elements are zero.
static __m512i load_elements(const struct source *source, int64_t at, uint32_t mask)
{
    if (source->buffer->format == FORMAT_BF16) {
        return _mm512_maskz_loadu_epi16(mask, (const bf16 *)source->buffer->data + at);
    }
    const struct decoder *decoder = &source->decoder;
    const uint8_t        *bytes   = (const uint8_t *)source->buffer->data + at;
    // The upper bytes of the 16-bit codes are zero and look up zero.
    __m512i codes = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, bytes));
    __m512i low   = _mm512_permutex2var_epi8(decoder->low[0], codes, decoder->low[1]);
    __m512i high  = _mm512_permutex2var_epi8(decoder->high[0], codes, decoder->high[1]);
    __m512i sign  = _mm512_and_si512(codes, _mm512_set1_epi16(0x80));
    return _mm512_or_si512(low, _mm512_slli_epi16(_mm512_or_si512(high, sign), 8));
}

// One tile row for each i.
static void copy_rows(uint32_t *tile, const struct source *source, int64_t start, int64_t k)
{
    uint32_t mask = mask_of(source->depth - k);
    for (int64_t row = 0; row < SIDE; row++) {
        int64_t i = start + row;
        _mm512_storeu_si512(tile + row * SIDE,
                            load_elements(source, i * source->across + k, i < source->size ? mask : 0));
    }
}

// One tile row for each pair of k.
static void interleave_rows(uint32_t *tile, const struct source *source, int64_t start, int64_t k)
{
    uint32_t mask = mask_of(source->size - start) & 0xffffu;
    for (int64_t pair = 0; pair < SIDE; pair++, k += 2) {
        int64_t at    = start + k * source->along;
        __m512i first = load_elements(source, at, k < source->depth ? mask : 0);
        __m512i next  = load_elements(source, at + source->along, k + 1 < source->depth ? mask : 0);
        __m512i words = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(next)), 16);
        first         = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(first));
        _mm512_storeu_si512(tile + pair * SIDE, _mm512_or_si512(words, first));
    }
}

static struct source source_of(const struct loop *loop, bool is_a)
{
    const struct gemm_shape *shape      = &loop->op->shape.gemm;
    const struct buffer     *buffer     = &loop->buffers[is_a ? GEMM_A : GEMM_B];
    int64_t                  size       = is_a ? shape->m : shape->n;
    bool                     is_strided = is_a ? shape->transpose_a : !shape->transpose_b;
    struct source            source     = {.buffer     = buffer,
                                           .across     = is_strided ? 1 : shape->k,
                                           .along      = is_strided ? size : 1,
                                           .size       = size,
                                           .depth      = shape->k,
                                           .is_strided = is_strided};
    if (format_is_low_precision(buffer->format)) {
        decoder_fill(&source.decoder, buffer->format);
    }
    return source;
}

// Packs two panels together, because their strided elements share cache lines.
static void pack_panel_pairs(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    (void)thread;
    const struct source a = source_of(loop, true), b = source_of(loop, false);
    int64_t             a_panels = panels_of(a.size), tiles = depth_of(loop->op);
    for (int64_t pair = first; pair < last; pair++) {
        bool                 is_a   = 2 * pair < a_panels;
        const struct source *source = is_a ? &a : &b;
        int64_t              start  = (is_a ? 2 * pair : 2 * pair - a_panels) * SIDE;
        uint32_t            *packed = packed_panel(loop, 2 * pair);
        for (int64_t i = 0; i < 2 * tiles; i++) {
            uint32_t *tile = packed + (i % 2 * tiles + i / 2) * TILE_FLOATS;
            (source->is_strided ? interleave_rows : copy_rows)(tile, source, start + i % 2 * SIDE, i / 2 * TILE_DEPTH);
            if (source->is_strided == is_a) {
                transpose_words(tile);
            }
        }
    }
}

static void configure_tiles(void)
{
    struct {
        uint8_t  palette, start_row, reserved[14];
        uint16_t column_bytes[16];
        uint8_t  rows[16];
    } layout = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        layout.column_bytes[i] = SIDE * 4;
        layout.rows[i]         = SIDE;
    }
    _tile_loadconfig(&layout);
}

// Two panels of A and two of B, starting at some k; stride: words from one panel to the next.
struct panel_pairs {
    const uint32_t *a, *b;
    int64_t         tiles, stride;
};

// c[32, 32] = a * b, or += if it accumulates.
static void multiply_panels(float *c, const struct panel_pairs *pairs, bool accumulates)
{
    enum { ROW_BYTES = BLOCK_COLUMNS * 4 };
    float *below = c + SIDE * BLOCK_COLUMNS;
    if (accumulates) {
        _tile_loadd(0, c, ROW_BYTES);
        _tile_loadd(1, c + SIDE, ROW_BYTES);
        _tile_loadd(2, below, ROW_BYTES);
        _tile_loadd(3, below + SIDE, ROW_BYTES);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    const uint32_t *a = pairs->a, *b = pairs->b;
    for (int64_t i = 0; i < pairs->tiles; i++, a += TILE_FLOATS, b += TILE_FLOATS) {
        _tile_loadd(4, a, SIDE * 4);
        _tile_loadd(6, b, SIDE * 4);
        _tile_loadd(7, b + pairs->stride, SIDE * 4);
        _tile_loadd(5, a + pairs->stride, SIDE * 4);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, ROW_BYTES);
    _tile_stored(1, c + SIDE, ROW_BYTES);
    _tile_stored(2, below, ROW_BYTES);
    _tile_stored(3, below + SIDE, ROW_BYTES);
}

// multiply_panels with separate scales for each range of k.
static void multiply_part(const struct loop *loop, const struct rectangle *place, int64_t k,
                          const struct panel_pairs *pairs, float *c)
{
    float        part[2 * SIDE * BLOCK_COLUMNS];
    struct panel from = {part, BLOCK_COLUMNS, place->rows, place->columns, false};
    struct panel to   = {c, BLOCK_COLUMNS, place->rows, place->columns, false};
    multiply_panels(part, pairs, false);
    host_gemm_scale_part(loop, &(struct depth_part){place, k, k > 0}, &from, &to);
}

static void multiply_block(const struct loop *loop, const struct rectangle *block, float *c)
{
    const struct gemm_shape *shape     = &loop->op->shape.gemm;
    bool                     has_parts = host_gemm_scales_parts(loop);
    int64_t                  depth = depth_of(loop->op), stride = depth * TILE_FLOATS;
    int64_t         step = has_parts ? scaling_depth((enum scaling)shape->scaling_a) / TILE_DEPTH : DEPTH_TILES;
    const uint32_t *a    = packed_panel(loop, block->row / SIDE);
    const uint32_t *b    = packed_panel(loop, panels_of(shape->m) + block->column / SIDE);
    for (int64_t k = 0; k < depth; k += step) {
        int64_t tiles = host_minimum(step, depth - k);
        for (int64_t column = 0; column < block->columns; column += 2 * SIDE) {
            for (int64_t row = 0; row < block->rows; row += 2 * SIDE) {
                struct panel_pairs pairs = {a + row / SIDE * stride + k * TILE_FLOATS,
                                            b + column / SIDE * stride + k * TILE_FLOATS, tiles, stride};
                struct rectangle   place = {block->row + row, block->column + column,
                                            host_minimum(2 * SIDE, block->rows - row),
                                            host_minimum(2 * SIDE, block->columns - column)};
                float             *to    = c + row * BLOCK_COLUMNS + column;
                if (has_parts) {
                    multiply_part(loop, &place, k * TILE_DEPTH, &pairs, to);
                } else {
                    multiply_panels(to, &pairs, k > 0);
                }
            }
        }
    }
    float factor = host_gemm_inverse_scale(loop);
    for (int64_t row = 0; row < block->rows; row++) {
        row_scale(c + row * BLOCK_COLUMNS, block->columns, factor);
    }
    host_gemm_add_bias(loop, block, c, BLOCK_COLUMNS);
    for (int64_t row = 0; row < block->rows; row++) {
        float *values = c + row * BLOCK_COLUMNS;
        row_store(&loop->buffers[GEMM_C], (block->row + row) * shape->n + block->column, block->columns, values,
                  loop->op->accumulates);
    }
}

static void multiply_rectangles(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    float *c = host_scratch(loop, thread, BLOCK_ROWS * BLOCK_COLUMNS);
    configure_tiles();
    for (int64_t index = first; index < last; index++) {
        struct rectangle whole = host_gemm_rectangle(&loop->op->shape.gemm, pool_threads(loop->host->pool), index);
        for (int64_t row = 0; row < whole.rows; row += BLOCK_ROWS) {
            for (int64_t column = 0; column < whole.columns; column += BLOCK_COLUMNS) {
                struct rectangle block = {whole.row + row, whole.column + column,
                                          host_minimum(BLOCK_ROWS, whole.rows - row),
                                          host_minimum(BLOCK_COLUMNS, whole.columns - column)};
                multiply_block(loop, &block, c);
            }
        }
    }
    _tile_release();
}

void host_amx_gemm(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct host *host = backend->state;
    host_run_loop(backend, op, buffers, pack_panel_pairs,
                  (panels_of(op->shape.gemm.m) + panels_of(op->shape.gemm.n)) / 2);
    host_run_loop(backend, op, buffers, multiply_rectangles, pool_threads(host->pool));
}

#else

bool host_amx_enable(void)
{
    return false;
}

int64_t host_amx_floats(const struct op *op, int threads)
{
    (void)op;
    (void)threads;
    return 0;
}

void host_amx_gemm(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    (void)op;
    (void)buffers;
}

#endif

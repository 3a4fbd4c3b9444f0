// SPDX-License-Identifier: MIT
// Computes GEMMs C = A B with AVX-512 or AMX, with sums in fp32.
//
// Loops, from outside to inside: a thread handles a block of C (1024 x 512), then a range of k, then 256 rows of A. It
// first packs its parts of A and B into tiles, converting FP8 to bf16, which is exact. The inner kernel then computes
// 32 x 32 elements of C from two panels of A and two of B. A panel is 16 rows of A, or 16 columns of B, along the whole
// range of k.
#define _GNU_SOURCE    // syscall
#include <sys/syscall.h>
#include <unistd.h>

#include "gswbench/fp8.h"
#include "internal.h"

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
#include <immintrin.h>

// A tile is 16 x 16 words: 16 rows of A, or 16 columns of B, by 16 words along k. A word is one fp32, or two bf16 that
// are adjacent in k. In a tile of A, each row of the tile is a row of A; in a tile of B, each row of the tile is one
// word along k.
enum { SIDE = 16, TILE_WORDS = SIDE * SIDE };
// Rows and columns of a block of C, rows of A that are packed at a time, and tiles in a range of k. The packed parts of
// A and B stay in the L2 cache, and two panels of B in the L1 cache.
enum { BLOCK_ROWS = 1024, BLOCK_COLUMNS = 512, PACKED_ROWS = 256, DEPTH_TILES = 8 };
enum { BLOCK_FLOATS = BLOCK_ROWS * BLOCK_COLUMNS, PANEL_WORDS = DEPTH_TILES * TILE_WORDS };

// Two adjacent panels of A and of B for the inner kernel. tiles: tiles of a panel. stride: words from one panel to the
// next.
struct panel_pairs {
    const uint32_t *a, *b;
    int64_t         tiles, stride;
    bool            is_k_major;    // tiles of A are stored like tiles of B: a row is one word along k
};

// The inner kernel: c[32, 32] = a * b, or c += a * b if it accumulates. Rows of c are BLOCK_COLUMNS apart.
typedef void multiply_panels(float *c, const struct panel_pairs *pairs, bool accumulates);

// An implementation of the inner kernel for bf16. A thread calls begin before its first use and end after its last.
struct host_pairs {
    const char      *name;
    bool             takes_k_major;    // supports is_k_major; else tiles of A are transposed
    multiply_panels *multiply;
    void (*begin)(void), (*end)(void);
};

// Returns the number of elements along k in a tile.
static int64_t tile_depth(const struct buffer *buffer)
{
    return buffer->format == FORMAT_F32 ? SIDE : 2 * SIDE;
}

int64_t host_packed_floats(void)
{
    return BLOCK_FLOATS + (PACKED_ROWS + BLOCK_COLUMNS) / SIDE * PANEL_WORDS;
}

// Returns a vector of the numbers 0 to 15. Does not load them from a local array: gcc 14 assumes that such an array is
// aligned to 64 bytes, but with sanitizers it is not.
static inline __m512i number_words(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// Transposes a tile by exchanging blocks of 8, 4, 2 and 1 words.
static void transpose_words(uint32_t *tile)
{
    const __m512i numbers = number_words();
    __m512i       rows[SIDE];
    for (int i = 0; i < SIDE; i++) {
        rows[i] = _mm512_loadu_si512(tile + i * SIDE);
    }
    for (int side = SIDE / 2; side >= 1; side /= 2) {
        __mmask16 is_low    = _mm512_testn_epi32_mask(numbers, _mm512_set1_epi32(side));
        __m512i   take_low  = _mm512_mask_add_epi32(numbers, ~is_low, numbers, _mm512_set1_epi32(SIDE - side));
        __m512i   take_high = _mm512_mask_add_epi32(_mm512_add_epi32(numbers, _mm512_set1_epi32(SIDE)), is_low, numbers,
                                                    _mm512_set1_epi32(side));
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

// Tables that convert FP8 to bf16: the lower 7 bits of a code (without sign) select the low and the high byte of the
// bf16 value.
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

// An operand in memory. i: row of A or column of B, below size; k is below depth. Element (i, k) is at i * across + k *
// along. Packing pads the last tiles with zeros.
struct source {
    const struct buffer *buffer;
    struct decoder       decoder;    // if the buffer is FP8
    int64_t              across, along, size, depth;
    bool                 is_strided;       // elements that are adjacent in k are not adjacent in memory
    bool                 is_transposed;    // tiles are transposed after the copy
};

static uint32_t mask_of(int64_t elements)
{
    return elements >= 32 ? UINT32_MAX : elements <= 0 ? 0 : (1u << elements) - 1;
}

// Rounds a number of rows of A, or columns of B, up to pairs of panels, because the inner kernel uses two.
static int64_t round_up(int64_t size)
{
    return number_round_up(size, 2 * SIDE);
}

// Loads 16 words, from element `at` on, as fp32 or bf16. Elements that are not in the mask become zero.
static __m512i load_words(const struct source *source, int64_t at, uint32_t mask)
{
    const void *data = source->buffer->data;
    if (source->buffer->format == FORMAT_F32) {
        return _mm512_maskz_loadu_epi32((__mmask16)mask, (const float *)data + at);
    }
    if (source->buffer->format == FORMAT_BF16) {
        return _mm512_maskz_loadu_epi16(mask, (const bf16 *)data + at);
    }
    const struct decoder *decoder = &source->decoder;
    // FP8 codes are widened to 16 bits, and each byte is looked up. The upper byte is code 0, for which both tables
    // have 0.
    __m512i codes = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, (const uint8_t *)data + at));
    __m512i low   = _mm512_permutex2var_epi8(decoder->low[0], codes, decoder->low[1]);
    __m512i high  = _mm512_permutex2var_epi8(decoder->high[0], codes, decoder->high[1]);
    __m512i sign  = _mm512_and_si512(codes, _mm512_set1_epi16(0x80));
    return _mm512_or_si512(low, _mm512_slli_epi16(_mm512_or_si512(high, sign), 8));
}

// A part of an operand to pack: `size` rows of A or columns of B from `start` on, and `tiles` tiles along k from k on.
struct range {
    int64_t start, size, k, tiles;
};

// Returns a tile of packed panels: the tile with row (or column) i of the range, which is number `tile` along k.
static uint32_t *tile_at(uint32_t *packed, const struct range *range, int64_t i, int64_t tile)
{
    return packed + (i / SIDE * range->tiles + tile) * TILE_WORDS;
}

// Packs an operand with contiguous k: one row of a tile for each row of A or column of B. The inner loops of the
// packing functions read contiguous memory.
static void copy_rows(uint32_t *packed, const struct source *source, const struct range *range)
{
    for (int64_t row = 0; row < round_up(range->size); row++) {
        int64_t i = range->start + row;
        for (int64_t tile = 0, k = range->k; tile < range->tiles; tile++, k += tile_depth(source->buffer)) {
            uint32_t mask = i < source->size ? mask_of(source->depth - k) : 0;
            _mm512_storeu_si512(tile_at(packed, range, row, tile) + row % SIDE * SIDE,
                                load_words(source, i * source->across + k, mask));
        }
    }
}

// Packs an fp32 operand with strided k: one row of a tile for each k.
static void copy_columns(uint32_t *packed, const struct source *source, const struct range *range)
{
    for (int64_t row = 0, k = range->k; row < range->tiles * SIDE; row++, k++) {
        for (int64_t i = 0; i < round_up(range->size); i += SIDE) {
            uint32_t mask = k < source->depth ? mask_of(source->size - range->start - i) : 0;
            _mm512_storeu_si512(tile_at(packed, range, i, row / SIDE) + row % SIDE * SIDE,
                                load_words(source, range->start + i + k * source->along, mask));
        }
    }
}

// Packs a bf16 or FP8 operand with strided k: one row of a tile for each pair k, k + 1, whose two values are joined in
// a word.
static void interleave_columns(uint32_t *packed, const struct source *source, const struct range *range)
{
    // Permutation indices: word i takes element i of k in its low half, and of k + 1 (index 32 + i) in its high half.
    const __m512i left =
        _mm512_add_epi32(_mm512_mullo_epi32(number_words(), _mm512_set1_epi32(0x10001)), _mm512_set1_epi32(32 << 16));
    const __m512i right = _mm512_add_epi16(left, _mm512_set1_epi16(SIDE));
    for (int64_t row = 0, k = range->k; row < range->tiles * SIDE; row++, k += 2) {
        for (int64_t i = 0; i < range->size; i += 2 * SIDE) {
            uint32_t  mask  = mask_of(source->size - range->start - i);
            int64_t   at    = range->start + i + k * source->along;
            __m512i   first = load_words(source, at, k < source->depth ? mask : 0);
            __m512i   next  = load_words(source, at + source->along, k + 1 < source->depth ? mask : 0);
            uint32_t *tile  = tile_at(packed, range, i, row / SIDE) + row % SIDE * SIDE;
            _mm512_storeu_si512(tile, _mm512_permutex2var_epi16(first, left, next));
            _mm512_storeu_si512(tile + range->tiles * TILE_WORDS, _mm512_permutex2var_epi16(first, right, next));
        }
    }
}

static struct source source_of(const struct loop *loop, bool is_a)
{
    const struct host_pairs *pairs      = loop->host->pairs;
    const struct gemm_shape *shape      = &loop->op->shape.gemm;
    const struct buffer     *buffer     = &loop->buffers[is_a ? GEMM_A : GEMM_B];
    int64_t                  size       = is_a ? shape->m : shape->n;
    bool                     is_strided = is_a ? shape->transpose_a : !shape->transpose_b;
    struct source            source     = {.buffer        = buffer,
                                           .across        = is_strided ? 1 : shape->k,
                                           .along         = is_strided ? size : 1,
                                           .size          = size,
                                           .depth         = shape->k,
                                           .is_strided    = is_strided,
                                           .is_transposed = is_strided == is_a && !(is_a && pairs->takes_k_major)};
    if (format_is_low_precision(buffer->format)) {
        decoder_fill(&source.decoder, buffer->format);
    }
    return source;
}

// Packs a part of an operand into an even number of panels.
static void pack(uint32_t *packed, const struct source *source, const struct range *range)
{
    if (!source->is_strided) {
        copy_rows(packed, source, range);
    } else if (source->buffer->format == FORMAT_F32) {
        copy_columns(packed, source, range);
    } else {
        interleave_columns(packed, source, range);
    }
    for (int64_t i = 0; i < round_up(range->size) && source->is_transposed; i += SIDE) {
        for (int64_t tile = 0; tile < range->tiles; tile++) {
            transpose_words(tile_at(packed, range, i, tile));
        }
    }
}

static inline __attribute__((always_inline)) __m512 add_products(__m512 sum, __m512 a, __m512 b, bool is_fp32)
{
    return is_fp32 ? _mm512_fmadd_ps(a, b, sum) : _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

// Implements the inner kernel with AVX-512. It computes eight rows of c at a time, which are in 16 registers.
static inline __attribute__((always_inline)) void multiply_by_vectors(float *c, const struct panel_pairs *pairs,
                                                                      bool accumulates, bool is_fp32, bool is_k_major)
{
    enum { ROWS = 8 };
    const int64_t row_step = is_k_major ? 1 : SIDE, word_step = is_k_major ? SIDE : 1;
    for (int64_t row = 0; row < 2 * SIDE; row += ROWS, c += ROWS * BLOCK_COLUMNS) {
        const uint32_t *a = pairs->a + row / SIDE * pairs->stride + row % SIDE * row_step, *b = pairs->b;
        __m512          left[ROWS], right[ROWS];
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            left[i]  = accumulates ? _mm512_loadu_ps(c + i * BLOCK_COLUMNS) : _mm512_setzero_ps();
            right[i] = accumulates ? _mm512_loadu_ps(c + i * BLOCK_COLUMNS + SIDE) : _mm512_setzero_ps();
        }
        for (int64_t tile = 0; tile < pairs->tiles; tile++, a += TILE_WORDS - SIDE * word_step) {
            for (int word = 0; word < SIDE; word++, a += word_step, b += SIDE) {
                __m512 b_left = _mm512_loadu_ps(b), b_right = _mm512_loadu_ps(b + pairs->stride);
#pragma GCC unroll 8
                for (int i = 0; i < ROWS; i++) {
                    __m512 of_row = _mm512_castsi512_ps(_mm512_set1_epi32((int)a[i * row_step]));
                    left[i]       = add_products(left[i], of_row, b_left, is_fp32);
                    right[i]      = add_products(right[i], of_row, b_right, is_fp32);
                }
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            _mm512_storeu_ps(c + i * BLOCK_COLUMNS, left[i]);
            _mm512_storeu_ps(c + i * BLOCK_COLUMNS + SIDE, right[i]);
        }
    }
}

static void multiply_floats(float *c, const struct panel_pairs *pairs, bool accumulates)
{
    if (pairs->is_k_major) {
        multiply_by_vectors(c, pairs, accumulates, true, true);
    } else {
        multiply_by_vectors(c, pairs, accumulates, true, false);
    }
}

static void multiply_pairs(float *c, const struct panel_pairs *pairs, bool accumulates)
{
    if (pairs->is_k_major) {
        multiply_by_vectors(c, pairs, accumulates, false, true);
    } else {
        multiply_by_vectors(c, pairs, accumulates, false, false);
    }
}

#ifdef __AMX_BF16__
// Asks Linux for permission to use AMX tiles. Without it they trap.
static bool enable_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };    // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
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

static void multiply_by_tiles(float *c, const struct panel_pairs *pairs, bool accumulates)
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
    for (int64_t i = 0; i < pairs->tiles; i++, a += TILE_WORDS, b += TILE_WORDS) {
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

static void release_tiles(void)
{
    _tile_release();
}
#endif

static void do_nothing(void)
{
}

const struct host_pairs *host_pairs_find(void)
{
#ifdef __AMX_BF16__
    static const struct host_pairs by_tiles = {"AMX", false, multiply_by_tiles, configure_tiles, release_tiles};
    if (enable_tiles()) {
        return &by_tiles;
    }
#endif
    static const struct host_pairs by_vectors = {"AVX512_BF16", true, multiply_pairs, do_nothing, do_nothing};
    return &by_vectors;
}

const char *host_pairs_name(const struct host_pairs *pairs)
{
    return pairs->name;
}

// State of a thread during a GEMM: operands, inner kernel and scratch.
struct work {
    const struct loop *loop;
    struct source      a, b;
    multiply_panels   *multiply;
    float             *c;    // block of C in fp32
    uint32_t          *packed_a, *packed_b;
};

// Calls the inner kernel for one scaling block along k, and adds the result, multiplied by inverse scales, to c.
static void multiply_scaled(const struct work *work, const struct rectangle *place, int64_t k,
                            const struct panel_pairs *pairs, float *c)
{
    float        part[2 * SIDE * BLOCK_COLUMNS];
    struct panel from = {part, BLOCK_COLUMNS, place->rows, place->columns, false};
    struct panel to   = {c, BLOCK_COLUMNS, place->rows, place->columns, false};
    work->multiply(part, pairs, false);
    host_gemm_scale_part(work->loop, &(struct depth_part){place, k, k > 0}, &from, &to);
}

// Computes part of a block of C from packed rows of A and packed columns of B, over one range of k.
static void multiply_packed(const struct work *work, const struct rectangle *part, const struct range *range, float *c)
{
    bool    has_parts = host_gemm_scales_parts(work->loop);
    int64_t stride    = range->tiles * TILE_WORDS;
    for (int64_t column = 0; column < part->columns; column += 2 * SIDE) {
        for (int64_t row = 0; row < part->rows; row += 2 * SIDE) {
            struct panel_pairs pairs = {work->packed_a + row / SIDE * stride, work->packed_b + column / SIDE * stride,
                                        range->tiles, stride, work->a.is_strided && !work->a.is_transposed};
            struct rectangle   place = {part->row + row, part->column + column, number_min(2 * SIDE, part->rows - row),
                                        number_min(2 * SIDE, part->columns - column)};
            float             *to    = c + row * BLOCK_COLUMNS + column;
            if (has_parts) {
                multiply_scaled(work, &place, range->k, &pairs, to);
            } else {
                work->multiply(to, &pairs, range->k > 0);
            }
        }
    }
}

static void multiply_block(const struct work *work, const struct rectangle *block)
{
    const struct loop       *loop  = work->loop;
    const struct gemm_shape *shape = &loop->op->shape.gemm;
    int64_t                  depth = tile_depth(work->a.buffer);
    int64_t step = host_gemm_scales_parts(loop) ? scaling_depth((enum scaling)shape->scaling_a) : DEPTH_TILES * depth;
    for (int64_t k = 0; k < shape->k; k += step) {
        int64_t tiles = (number_min(step, shape->k - k) + depth - 1) / depth;
        pack(work->packed_b, &work->b, &(struct range){block->column, block->columns, k, tiles});
        for (int64_t row = 0; row < block->rows; row += PACKED_ROWS) {
            struct range     range = {block->row + row, number_min(PACKED_ROWS, block->rows - row), k, tiles};
            struct rectangle part  = {range.start, block->column, range.size, block->columns};
            pack(work->packed_a, &work->a, &range);
            multiply_packed(work, &part, &range, work->c + row * BLOCK_COLUMNS);
        }
    }
    float factor = host_gemm_inverse_scale(loop);
    for (int64_t row = 0; row < block->rows && factor != 1; row++) {
        row_scale(work->c + row * BLOCK_COLUMNS, work->c + row * BLOCK_COLUMNS, block->columns, factor);
    }
    host_gemm_add_bias(loop, block, work->c, BLOCK_COLUMNS);
    for (int64_t row = 0; row < block->rows; row++) {
        row_store(&loop->buffers[GEMM_C], (block->row + row) * shape->n + block->column, block->columns,
                  work->c + row * BLOCK_COLUMNS, loop->op->accumulates);
    }
}

static void multiply_rectangles(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct host_pairs *pairs   = loop->host->pairs;
    float                   *scratch = host_space(loop, thread);
    struct work              work    = {.loop = loop, .a = source_of(loop, true), .b = source_of(loop, false)};
    work.multiply                    = work.a.buffer->format == FORMAT_F32 ? multiply_floats : pairs->multiply;
    work.c                           = scratch;
    work.packed_a                    = (uint32_t *)(void *)(scratch + BLOCK_FLOATS);
    work.packed_b                    = work.packed_a + PACKED_ROWS / SIDE * PANEL_WORDS;
    pairs->begin();
    for (int64_t index = first; index < last; index++) {
        struct rectangle whole = host_gemm_rectangle(&loop->op->shape.gemm, pool_threads(loop->host->pool), index);
        for (int64_t row = 0; row < whole.rows; row += BLOCK_ROWS) {
            for (int64_t column = 0; column < whole.columns; column += BLOCK_COLUMNS) {
                struct rectangle block = {whole.row + row, whole.column + column,
                                          number_min(BLOCK_ROWS, whole.rows - row),
                                          number_min(BLOCK_COLUMNS, whole.columns - column)};
                multiply_block(&work, &block);
            }
        }
    }
    pairs->end();
}

void host_packed_gemm(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct host *host = backend->state;
    host_run_loop(backend, op, buffers, multiply_rectangles, pool_threads(host->pool));
}

#else

const struct host_pairs *host_pairs_find(void)
{
    return NULL;
}

const char *host_pairs_name(const struct host_pairs *pairs)
{
    (void)pairs;
    return "";
}

int64_t host_packed_floats(void)
{
    return 0;
}

void host_packed_gemm(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    (void)op;
    (void)buffers;
}

#endif

// SPDX-License-Identifier: MIT
// Divides buffers and reduces them in a fixed order, for the communicators local and mpi.
#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "internal.h"

enum { BLOCK = 1024 };    // elements whose fp32 sums fit in the L1 cache

// Sums of one block: fp32 for floating point, `whole` for integers.
union sums {
    float    real[BLOCK];
    uint32_t whole[BLOCK];
};

int64_t comm_slice_begin(int64_t elements, int64_t size, int64_t slice)
{
    return elements / size * slice + elements % size * slice / size;
}

int64_t comm_rows_before(const int64_t *parts, int64_t index)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < index; i++) {
        rows += parts[i];
    }
    return rows;
}

int64_t *comm_copy_members(const int64_t *members, int64_t size)
{
    int64_t *copy = memory_allocate((size_t)size * sizeof(*copy));
    memcpy(copy, members, (size_t)size * sizeof(*copy));
    return copy;
}

void comm_copy(void *to, const void *from, int64_t bytes)
{
    if (to != from && bytes > 0) {
        memcpy(to, from, (size_t)bytes);
    }
}

static void add_f32(union sums *sums, const float *in, int64_t count, bool is_first)
{
    for (int64_t i = 0; i < count; i++) {
        sums->real[i] = is_first ? in[i] : sums->real[i] + in[i];
    }
}

static void add_bf16(union sums *sums, const bf16 *in, int64_t count, bool is_first)
{
    for (int64_t i = 0; i < count; i++) {
        sums->real[i] = is_first ? bf16_to_float(in[i]) : sums->real[i] + bf16_to_float(in[i]);
    }
}

static void add_i32(union sums *sums, const uint32_t *in, int64_t count, bool is_first)
{
    for (int64_t i = 0; i < count; i++) {
        sums->whole[i] = is_first ? in[i] : sums->whole[i] + in[i];
    }
}

struct block {
    int64_t     first, elements;
    enum format format;
};

static void reduce_block(void *out, const void *const *in, int64_t count, const struct block *block)
{
    int64_t    first = block->first, elements = block->elements;
    union sums sums;
    for (int64_t i = 0; i < count; i++) {
        if (block->format == FORMAT_BF16) {
            add_bf16(&sums, (const bf16 *)in[i] + first, elements, i == 0);
        } else if (block->format == FORMAT_I32) {
            add_i32(&sums, (const uint32_t *)in[i] + first, elements, i == 0);
        } else {
            add_f32(&sums, (const float *)in[i] + first, elements, i == 0);
        }
    }
    if (block->format == FORMAT_BF16) {
        for (int64_t i = 0; i < elements; i++) {
            ((bf16 *)out)[first + i] = bf16_from_float(sums.real[i]);
        }
    } else {
        memcpy((char *)out + first * 4, &sums, (size_t)elements * 4);
    }
}

void comm_sum(void *out, const void *const *in, int64_t count, int64_t elements, enum format format)
{
    for (int64_t first = 0; first < elements; first += BLOCK) {
        int64_t left = elements - first;
        reduce_block(out, in, count, &(struct block){first, left < BLOCK ? left : BLOCK, format});
    }
}

static void find_maximum(void *out, const void *const *in, int64_t count, int64_t elements, enum format format)
{
    if (format != FORMAT_F32) {
        FATAL(EXIT_INTERNAL, "a maximum of %s", format_name(format));
    }
    for (int64_t e = 0; e < elements; e++) {
        float largest = ((const float *)in[0])[e];
        for (int64_t i = 1; i < count; i++) {
            largest = ((const float *)in[i])[e] > largest ? ((const float *)in[i])[e] : largest;
        }
        ((float *)out)[e] = largest;
    }
}

comm_reduction *comm_reduction_of(enum op_kind kind)
{
    return kind == OP_ALL_REDUCE_MAXIMUM ? find_maximum : comm_sum;
}

// SPDX-License-Identifier: MIT
// Computes the causal convolution of each channel, with bias and SiLU, and its gradient. Each thread handles blocks of
// channels.
#include <string.h>

#include "gswbench/arithmetic.h"
#include "internal.h"

enum { BLOCK = 32, TAPS_MAX = 16 };

// A block of channels at the current position of a sequence. `in` and `slope` are ring buffers for the last `taps`
// positions: the inputs, and the gradients of the convolution's output before SiLU. Both start with zeros.
struct block {
    const struct mamba_shape *shape;
    int64_t                   channel, count;
    float                     weight[BLOCK * TAPS_MAX], bias[BLOCK];
    float                     in[TAPS_MAX][BLOCK], slope[TAPS_MAX][BLOCK];
    double                    d_weight[BLOCK * TAPS_MAX], d_bias[BLOCK];
};

static int64_t count_blocks(const struct op *op)
{
    return number_groups(mamba_channels(&op->shape.mamba), BLOCK);
}

static void block_open(struct block *block, const struct mamba_shape *shape, int64_t index, const struct buffer *weight,
                       const struct buffer *bias)
{
    *block             = (struct block){.shape = shape, .channel = index * BLOCK};
    block->count       = number_min(BLOCK, mamba_channels(shape) - block->channel);
    int64_t      count = block->count * shape->taps;
    const float *w     = row_read(weight, block->channel * shape->taps, count, block->weight);
    const float *b     = row_read(bias, block->channel, block->count, block->bias);
    memmove(block->weight, w, (size_t)count * sizeof(*w));
    memmove(block->bias, b, (size_t)block->count * sizeof(*b));
}

// Returns the index of the block's first channel of a token in the packed input rows.
static int64_t packed_at(const struct block *block, int64_t token)
{
    return token * mamba_packed(block->shape) + mamba_inner(block->shape) + block->channel;
}

static int64_t channels_at(const struct block *block, int64_t token)
{
    return token * mamba_channels(block->shape) + block->channel;
}

// Reads the input of a position, and computes the convolution before SiLU (sum).
static void advance(struct block *block, const struct buffer *packed, int64_t sequence, int64_t position, float *sum)
{
    int64_t      taps = block->shape->taps;
    float        space[BLOCK];
    const float *in =
        row_read(packed, packed_at(block, sequence * block->shape->sequence + position), block->count, space);
    memcpy(block->in[position % taps], in, (size_t)block->count * sizeof(*in));
    for (int64_t i = 0; i < block->count; i++) {
        sum[i] = block->bias[i];
        for (int64_t tap = 0; tap < taps; tap++) {
            sum[i] += block->weight[i * taps + tap] * block->in[(position + 1 + tap) % taps][i];
        }
    }
}

static void clear_rings(struct block *block)
{
    memset(block->in, 0, sizeof(block->in));
    memset(block->slope, 0, sizeof(block->slope));
}

static void forward_blocks(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct mamba_shape *shape = &loop->op->shape.mamba;
    (void)thread;
    for (int64_t index = first; index < last; index++) {
        struct block block;
        float        sum[BLOCK];
        block_open(&block, shape, index, &loop->buffers[CONVOLUTION_WEIGHT], &loop->buffers[CONVOLUTION_BIAS]);
        for (int64_t at = 0; at < shape->batch * shape->sequence; at++) {
            if (at % shape->sequence == 0) {
                clear_rings(&block);
            }
            advance(&block, &loop->buffers[CONVOLUTION_PACKED], at / shape->sequence, at % shape->sequence, sum);
            for (int64_t i = 0; i < block.count; i++) {
                sum[i] = arithmetic_silu(sum[i]);
            }
            row_store(&loop->buffers[CONVOLUTION_OUT], channels_at(&block, at), block.count, sum, false);
        }
    }
}

const struct host_op host_convolution_forward = {.body = forward_blocks, .count = count_blocks};

// Computes the gradient of the convolution's output before SiLU at a position, and adds its contribution to the
// gradients of weight and bias.
static void add_position(struct block *block, const struct buffer *gradient, int64_t token, int64_t position,
                         const float *sum)
{
    int64_t      taps = block->shape->taps;
    float        space[BLOCK], *slope = block->slope[position % taps];
    const float *d_out = row_read(gradient, channels_at(block, token), block->count, space);
    for (int64_t i = 0; i < block->count; i++) {
        slope[i] = d_out[i] * arithmetic_silu_slope(sum[i]);
        block->d_bias[i] += (double)slope[i];
        for (int64_t tap = 0; tap < taps; tap++) {
            block->d_weight[i * taps + tap] += (double)slope[i] * (double)block->in[(position + 1 + tap) % taps][i];
        }
    }
}

// Stores the gradient of the input at a position. The input affects the outputs at this position and the next taps - 1.
// At positions after the end of the sequence, `slope` is zero.
static void store_input(struct block *block, const struct buffer *packed, int64_t sequence, int64_t position)
{
    int64_t taps = block->shape->taps;
    float   values[BLOCK];
    for (int64_t i = 0; i < block->count; i++) {
        values[i] = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            values[i] += block->weight[i * taps + tap] * block->slope[(position + taps - 1 - tap) % taps][i];
        }
    }
    row_store(packed, packed_at(block, sequence * block->shape->sequence + position), block->count, values, false);
}

static void backward_sequence(struct block *block, const struct buffer *buffers, int64_t sequence)
{
    int64_t taps = block->shape->taps, length = block->shape->sequence;
    clear_rings(block);
    for (int64_t position = 0; position < length + taps - 1; position++) {
        if (position < length) {
            float sum[BLOCK];
            advance(block, &buffers[CONVOLUTION_GRADIENT_PACKED_IN], sequence, position, sum);
            add_position(block, &buffers[CONVOLUTION_GRADIENT_OUT], sequence * length + position, position, sum);
        } else {
            memset(block->slope[position % taps], 0, sizeof(block->slope[0]));
        }
        if (position >= taps - 1) {
            store_input(block, &buffers[CONVOLUTION_GRADIENT_PACKED], sequence, position - taps + 1);
        }
    }
}

static void backward_blocks(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct mamba_shape *shape = &loop->op->shape.mamba;
    (void)thread;
    for (int64_t index = first; index < last; index++) {
        struct block block;
        block_open(&block, shape, index, &loop->buffers[CONVOLUTION_GRADIENT_WEIGHT_IN],
                   &loop->buffers[CONVOLUTION_GRADIENT_BIAS_IN]);
        for (int64_t sequence = 0; sequence < shape->batch; sequence++) {
            backward_sequence(&block, loop->buffers, sequence);
        }
        row_store_sums(&loop->buffers[CONVOLUTION_GRADIENT_WEIGHT], block.channel * shape->taps,
                       block.count * shape->taps, block.d_weight, block.weight, loop->op->accumulates);
        row_store_sums(&loop->buffers[CONVOLUTION_GRADIENT_BIAS], block.channel, block.count, block.d_bias, block.bias,
                       loop->op->accumulates);
    }
}

const struct host_op host_convolution_backward = {.body = backward_blocks, .count = count_blocks};

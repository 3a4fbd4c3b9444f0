// SPDX-License-Identifier: MIT
// Computes the digest of a tensor: a hash and a sketch with 256 buckets (formulas: gswbench/digest.h). A quad is 16
// bytes; each chunk of 256 quads adds one quad to every bucket. Thread i of a block handles the quad for bucket i of
// each chunk. Then one block adds the digests of the blocks in order, so that the same tensor always has the same
// digest on this device.
#include "device.cuh"
#include "elements.h"

namespace
{
// Loads a quad (16 bytes), zero-padded at the end of the tensor. is_wide: the tensor is 16-byte aligned. bytes: size of
// the tensor.
template <bool is_wide> __device__ inline uint4 load_quad(const void *in, int64_t quad, int64_t bytes)
{
    int64_t begin = quad * DIGEST_QUAD, count = launch_minimum(bytes - begin, DIGEST_QUAD);
    if (is_wide && count == DIGEST_QUAD) {
        return ((const uint4 *)in)[quad];
    }
    uint32_t word[4] = {};
    for (int i = 0; i < DIGEST_QUAD; i++) {
        uint32_t byte = i < count ? ((const uint8_t *)in)[begin + i] : 0;
        word[i / 4] |= byte << 8 * (i % 4);
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
}

template <bool is_wide> __global__ void __launch_bounds__(DIGEST_BUCKETS) part_kernel(const struct digest_args args)
{
    int64_t  quads = digest_quads(args.bytes);
    uint64_t hash  = 0;
    double   sum   = 0;
#pragma unroll 4
    for (int64_t chunk = blockIdx.x; chunk * DIGEST_BUCKETS < quads; chunk += gridDim.x) {
        int64_t quad = digest_quad(chunk, threadIdx.x);
        if (quad < quads) {
            uint4          words   = load_quad<is_wide>(args.in, quad, args.bytes);
            const uint32_t word[4] = {words.x, words.y, words.z, words.w};
            hash += digest_hash((uint64_t)word[1] << 32 | word[0], (uint64_t)word[3] << 32 | word[2], quad);
            sum += digest_has_sketch(args.type) ? digest_sum(args.type, word, digest_signs(quad)) : 0.0;
        }
    }
    hash                                       = block_sum(hash);
    args.parts[blockIdx.x].bucket[threadIdx.x] = sum;
    if (threadIdx.x == 0) {
        args.parts[blockIdx.x].hash = hash;
    }
}

__global__ void __launch_bounds__(DIGEST_BUCKETS) total_kernel(const struct digest_args args, int64_t blocks)
{
    uint64_t hash = 0;
    double   sum  = 0;
    for (int64_t block = 0; block < blocks; block++) {
        sum += args.parts[block].bucket[threadIdx.x];
        hash += args.parts[block].hash;
    }
    args.out->bucket[threadIdx.x] = sum;
    if (threadIdx.x == 0) {
        args.out->hash = hash;
    }
}
}    // namespace

int kernel_digest(const struct digest_args *args, const struct kernel_target *target)
{
    int64_t  chunks  = launch_groups(digest_quads(args->bytes), DIGEST_BUCKETS);
    uint32_t blocks  = launch_blocks(chunks, DIGEST_BUCKETS, target->multiprocessors);
    bool     is_wide = launch_is_wide(LAUNCH_WIDTH, addresses(args->in));
    int      error   = with_flag(is_wide, [&](auto wide) {
        return enqueue(part_kernel<wide.value>, {blocks, DIGEST_BUCKETS}, 0, target, *args);
    });
    return error != 0 ? error : enqueue(total_kernel, {1, DIGEST_BUCKETS}, 0, target, *args, (int64_t)blocks);
}

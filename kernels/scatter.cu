// SPDX-License-Identifier: MIT
// Computes the gradient of the embedding table: d table[t] = multiplier * sum of d out over the rows with token t.
// link_kernel links these rows. sum_kernel follows the links with one block per distinct t, so a sum has a fixed order.
#include "device.cuh"
#include "route.h"

namespace
{
constexpr int SEARCHED = sizeof(int4) / sizeof(int32_t);    // rows that a lane compares together

// Compares the tokens of a lane's SEARCHED rows, the first at `at`, with a token. Returns a bit for each equal one
// after row `place`.
__device__ inline unsigned find_token(const struct scatter_args &args, int64_t at, int64_t place, int32_t token)
{
    unsigned equal = 0;
    if (at > place && at + SEARCHED <= args.rows) {
        int4 tokens = *reinterpret_cast<const int4 *>(args.tokens + at);
        return (tokens.x == token) | (tokens.y == token) << 1 | (tokens.z == token) << 2 | (tokens.w == token) << 3;
    }
    for (int i = 0; i < SEARCHED; i++) {
        equal |= at + i > place && at + i < args.rows && args.tokens[at + i] == token ? 1u << i : 0u;
    }
    return equal;
}

// One warp per row finds the next row with the same token, and links the two rows. The caller has set `befores` to -1.
__global__ void __launch_bounds__(LAUNCH_THREADS) link_kernel(const struct scatter_args args)
{
    int32_t *nexts = args.scratch, *befores = args.scratch + args.rows;
    int      lane = threadIdx.x % LAUNCH_WARP;
    // Number of tokens that precede args.tokens in its 16-byte word, so that the loop starts at aligned addresses.
    int ahead = (int)((uintptr_t)args.tokens / sizeof(int32_t) % SEARCHED);
    for (int64_t place = own_warp(); place < args.rows; place += all_warps()) {
        int32_t token = args.tokens[place], next = -1;
        for (int64_t begin = (place + ahead) / SEARCHED * SEARCHED - ahead; begin < args.rows && next < 0;
             begin += LAUNCH_WARP * SEARCHED) {
            unsigned equal = find_token(args, begin + lane * SEARCHED, place, token);
            unsigned lanes = __ballot_sync(0xffffffffu, equal != 0);
            if (lanes != 0) {
                int first = __ffs((int)lanes) - 1;
                next      = (int32_t)begin + first * SEARCHED + __ffs(__shfl_sync(0xffffffffu, (int)equal, first)) - 1;
            }
        }
        if (lane == 0) {
            nexts[place] = next;
            if (next >= 0) {
                befores[next] = (int32_t)place;
            }
        }
    }
}

template <typename T, typename Gradient, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) sum_kernel(const struct scatter_args args)
{
    const int32_t *nexts = args.scratch, *befores = args.scratch + args.rows;
    for (int64_t place = blockIdx.x; place < args.rows; place += gridDim.x) {
        int64_t row = args.tokens[place] - args.first;
        if (row < 0 || row >= args.table_rows || befores[place] >= 0) {
            continue;
        }
        Gradient *to = (Gradient *)args.table + row * args.columns;
        for (int64_t at = threadIdx.x * width; at < args.columns; at += blockDim.x * width) {
            int   count       = packet_elements<is_wide>(at, args.columns);
            float sums[width] = {};
            for (int64_t from = place; from >= 0; from = nexts[from]) {
                float values[width];
                load<is_wide>(values, (const T *)args.gradient + from * args.columns + at, count);
                each([&](int i) { sums[i] += values[i]; });
            }
            each([&](int i) { sums[i] *= args.multiplier; });
            store_sum<is_wide>(to + at, sums, count, args.accumulates);
        }
    }
}
}    // namespace

int kernel_scatter(const struct scatter_args *args, const struct kernel_target *target)
{
    size_t place_bytes = (size_t)args->rows * sizeof(int32_t);
    size_t table_bytes = (size_t)format_bytes(args->table_type, args->table_rows * args->columns);
    int    error       = cudaMemsetAsync(args->scratch + args->rows, 0xff, place_bytes, target->stream);
    if (error == 0 && !args->accumulates) {
        error = cudaMemsetAsync(args->table, 0, table_bytes, target->stream);
    }
    if (error != 0) {
        return error;
    }
    struct launch warps = launch_warps(args->rows, target->multiprocessors);
    error               = enqueue(link_kernel, warps, 0, target, *args);
    if (error != 0) {
        return error;
    }
    struct launch launch  = launch_packets(args->rows, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->gradient, args->table));
    return with_types(args->activation, args->table_type, [&](auto type, auto gradient) {
        return with_flag(is_wide, [&](auto wide) {
            return enqueue(sum_kernel<decltype(type), decltype(gradient), wide.value>, launch, 0, target, *args);
        });
    });
}

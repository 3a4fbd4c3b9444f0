// SPDX-License-Identifier: MIT
// Digest of a tensor: hash and sketch. Memory-bound: each byte is read once.
#ifndef GSWBENCH_KERNELS_DIGEST_H
#define GSWBENCH_KERNELS_DIGEST_H

#include "gswbench/digest.h"
#include "launch.h"

struct digest_args {
    const void    *in;       // [bytes]
    struct digest *parts;    // [digest_blocks]: partial digest of each block
    struct digest *out;      // [1]
    int64_t        bytes;
    enum format    type;
};
KERNEL_FUNCTION int kernel_digest(const struct digest_args *args, const struct kernel_target *target);

// Maximum number of blocks for any tensor.
GSWBENCH_INLINE int64_t digest_blocks(int32_t multiprocessors)
{
    return (int64_t)multiprocessors * (LAUNCH_RESIDENT_THREADS / DIGEST_BUCKETS);
}

#endif

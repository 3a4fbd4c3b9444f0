// SPDX-License-Identifier: MIT
// Computes digests of host memory, and estimates norms and distances of tensors from their digests.
#include "gswbench/digest.h"

#include <math.h>
#include <string.h>

double digest_norm(const struct digest *digest)
{
    return digest_distance(digest, &(const struct digest){.hash = 0});
}

double digest_distance(const struct digest *one, const struct digest *other)
{
    double squares = 0;
    for (int i = 0; i < DIGEST_BUCKETS; i++) {
        double difference = one->bucket[i] - other->bucket[i];
        squares += difference * difference;
    }
    return sqrt(squares);
}

void digest_take(struct digest *digest, enum format format, const void *data, int64_t elements)
{
    int64_t bytes = format_bytes(format, elements), quads = digest_quads(bytes);
    memset(digest, 0, sizeof(*digest));
    for (int64_t chunk = 0; chunk * DIGEST_BUCKETS < quads; chunk++) {
        // Index within this chunk of the quad (16 bytes) that is added to bucket 0.
        int64_t rotation = digest_quad(chunk, 0) - chunk * DIGEST_BUCKETS;
        for (int64_t i = 0; i < DIGEST_BUCKETS && chunk * DIGEST_BUCKETS + i < quads; i++) {
            int64_t  quad = chunk * DIGEST_BUCKETS + i, left = bytes - quad * DIGEST_QUAD;
            uint32_t word[4] = {0};
            memcpy(word, (const char *)data + quad * DIGEST_QUAD, (size_t)(left < DIGEST_QUAD ? left : DIGEST_QUAD));
            digest->hash += digest_hash((uint64_t)word[1] << 32 | word[0], (uint64_t)word[3] << 32 | word[2], quad);
            if (digest_has_sketch(format)) {
                digest->bucket[(i - rotation + DIGEST_BUCKETS) % DIGEST_BUCKETS] +=
                    digest_sum(format, word, digest_signs(quad));
            }
        }
    }
}

// SPDX-License-Identifier: MIT
// Tests which differences of tensors a digest's hash detects, and the error of norms estimated from its count sketch.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/digest.h"
#include "gswbench/random.h"

enum { COUNT = 100000 };

static float *draw(uint64_t stream)
{
    float *values = memory_allocate(COUNT * sizeof(*values));
    for (int i = 0; i < COUNT; i++) {
        values[i] = random_normal(random_key(3, stream), (uint64_t)i);
    }
    return values;
}

Test(digest, hashes_are_what_splitmix64_makes_of_words_and_their_places)
{
    static const uint32_t words[] = {1, 2, 3, 4, 5};
    struct digest         digest;
    digest_take(&digest, FORMAT_I32, words, 5);
    cr_expect_eq(digest.hash, UINT64_C(0x84b0c1fd29e4d910), "%llx", (unsigned long long)digest.hash);
}

Test(digest, a_hash_notices_each_bit_and_two_words_that_change_places)
{
    float        *values = draw(1), first = values[0];
    struct digest before, after;
    digest_take(&before, FORMAT_F32, values, COUNT);
    for (int bit = 0; bit < 32; bit++) {
        uint32_t bits;
        int      at = 3011 * bit;
        memcpy(&bits, &values[at], sizeof(bits));
        bits ^= 1u << bit;
        memcpy(&values[at], &bits, sizeof(bits));
        digest_take(&after, FORMAT_F32, values, COUNT);
        cr_expect_neq(after.hash, before.hash, "bit %d", bit);
        before = after;
    }
    first             = values[0];
    values[0]         = values[COUNT - 1];
    values[COUNT - 1] = first;
    digest_take(&after, FORMAT_F32, values, COUNT);
    cr_expect_neq(after.hash, before.hash);
    free(values);
}

// Compares 20 pairs of tensors. The squared norm of a sketch has a standard deviation of 9 %, and the norm half of
// that.
Test(digest, sketches_are_as_far_apart_as_tensors)
{
    for (uint64_t pair = 0; pair < 20; pair++) {
        float        *one = draw(2 * pair), *other = draw(2 * pair + 1);
        double        squares = 0, norm = 0;
        struct digest a, b;
        for (int i = 0; i < COUNT; i++) {
            other[i] = one[i] + 1e-3f * other[i];
            squares += pow((double)other[i] - (double)one[i], 2);
            norm += (double)one[i] * (double)one[i];
        }
        digest_take(&a, FORMAT_F32, one, COUNT);
        digest_take(&b, FORMAT_F32, other, COUNT);
        cr_expect_float_eq(digest_distance(&a, &b) / sqrt(squares), 1, 0.18);
        cr_expect_float_eq(digest_norm(&a) / sqrt(norm), 1, 0.18);
        free(one);
        free(other);
    }
}

Test(digest, the_difference_of_one_element_is_exact)
{
    float        *values = draw(1);
    struct digest before, after;
    digest_take(&before, FORMAT_F32, values, COUNT);
    values[77777] += 0.25f;
    digest_take(&after, FORMAT_F32, values, COUNT);
    cr_expect_float_eq(digest_distance(&before, &after), 0.25, 1e-6);
    free(values);
}

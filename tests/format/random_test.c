// SPDX-License-Identifier: MIT
// Tests the random generator: known answers, moments, and independence of the drawing order. Also tests which
// differences of tensors a digest's hash detects, and the error of norms estimated from its count sketch.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/digest.h"
#include "gswbench/random.h"

// Known answers of the generator's reference implementation.
Test(random, gives_the_published_answers_of_philox)
{
    static const struct {
        uint64_t key, high, low;
        uint32_t word[4];
    } rows[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct random_block block = random_philox(rows[i].key, rows[i].high, rows[i].low);
        cr_assert_arr_eq(block.word, rows[i].word, sizeof(block.word), "row %zu", i);
    }
}

Test(random, gives_the_documented_vectors)
{
    uint64_t key = random_key(1, 2);

    cr_assert_eq(key, 0x8e76cc9d3f55b3f0, "%llx", (unsigned long long)key);
    cr_assert_eq(random_normal(key, 0), 0.368567199f, "%.9g", (double)random_normal(key, 0));
    cr_assert_eq(random_normal(key, 1), -1.97363412f, "%.9g", (double)random_normal(key, 1));
    cr_assert_eq(random_normal(key, 5000000000), 0.0908242837f, "%.9g", (double)random_normal(key, 5000000000));
    cr_assert_eq(random_below(key, 3, 4, 32000), 1870, "%u", random_below(key, 3, 4, 32000));
}

Test(random, normal_has_the_moments_of_a_normal)
{
    enum { COUNT = 1 << 20 };
    uint64_t key    = random_key(7, 3);
    double   sum[5] = {0};

    for (uint64_t i = 0; i < COUNT; i++) {
        double value = (double)random_normal(key, i);
        sum[1] += value;
        sum[2] += value * value;
        sum[3] += value * value * value;
        sum[4] += value * value * value * value;
    }

    // Tolerances are four standard errors. A sum of eight uniforms has kurtosis 3 - 6 / 5 / 8 = 2.85.
    cr_assert_float_eq(sum[1] / COUNT, 0, 0.004);
    cr_assert_float_eq(sum[2] / COUNT, 1, 0.0056);
    cr_assert_float_eq(sum[3] / COUNT, 0, 0.015);
    cr_assert_float_eq(sum[4] / COUNT, 2.85, 0.033);
}

Test(random, normals_of_neighbours_and_of_streams_do_not_correlate)
{
    enum { COUNT = 1 << 18 };
    uint64_t key = random_key(7, 3), other = random_key(7, 4), reseeded = random_key(8, 3);
    double   neighbour = 0, stream = 0, seed = 0;

    for (uint64_t i = 0; i < COUNT; i++) {
        double value = (double)random_normal(key, i);
        neighbour += value * (double)random_normal(key, i + 1);
        stream += value * (double)random_normal(other, i);
        seed += value * (double)random_normal(reseeded, i);
    }

    double four_errors = 4 / sqrt(COUNT);
    cr_assert_float_eq(neighbour / COUNT, 0, four_errors);
    cr_assert_float_eq(stream / COUNT, 0, four_errors);
    cr_assert_float_eq(seed / COUNT, 0, four_errors);
}

Test(random, below_is_uniform_and_reaches_both_ends)
{
    enum { COUNT = 70000, BOUND = 7 };
    int times[BOUND] = {0};

    for (uint64_t i = 0; i < COUNT; i++) {
        uint32_t value = random_below(99, i, 12, BOUND);
        cr_assert_lt(value, BOUND);
        times[value]++;
    }

    for (int i = 0; i < BOUND; i++) {
        cr_assert_float_eq(times[i], COUNT / BOUND, 4 * sqrt(COUNT / BOUND), "%d: %d times", i, times[i]);
    }
    cr_assert_eq(random_below(99, 1, 12, 1), 0);
}

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

// SPDX-License-Identifier: MIT
// Tests SipHash with the vectors of the paper (Appendix A) and of the authors' implementation
// (github.com/veorq/SipHash, vectors.h).
#include "gswbench/siphash.h"

#include <criterion/criterion.h>

Test(siphash, has_the_values_that_its_authors_publish)
{
    uint8_t key[SIPHASH_KEY_BYTES], data[64];
    for (int i = 0; i < 64; i++) {
        key[i % SIPHASH_KEY_BYTES] = (uint8_t)(i % SIPHASH_KEY_BYTES);
        data[i]                    = (uint8_t)i;
    }

    cr_expect_eq(siphash(key, data, 0), 0x726fdb47dd0e0e31);
    cr_expect_eq(siphash(key, data, 1), 0x74f839c593dc67fd);
    cr_expect_eq(siphash(key, data, 8), 0x93f5f5799a932462);
    cr_expect_eq(siphash(key, data, 15), 0xa129ca6149be45e5);
    cr_expect_eq(siphash(key, data, 63), 0x958a324ceb064572);
}

Test(siphash, changes_with_every_bit_of_key_and_data)
{
    uint8_t  key[SIPHASH_KEY_BYTES] = {0}, data[21] = {0};
    uint64_t whole = siphash(key, data, sizeof(data));
    for (size_t bit = 0; bit < 8 * (sizeof(key) + sizeof(data)); bit++) {
        uint8_t *byte = bit < 8 * sizeof(key) ? &key[bit / 8] : &data[bit / 8 - sizeof(key)];
        *byte ^= (uint8_t)(1 << bit % 8);
        cr_expect_neq(siphash(key, data, sizeof(data)), whole, "bit %zu", bit);
        *byte = 0;
    }
}

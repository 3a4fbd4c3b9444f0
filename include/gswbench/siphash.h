// SPDX-License-Identifier: MIT
// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed 64-bit hash that cannot be forged without the key.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SIPHASH_KEY_BYTES = 16 };

uint64_t siphash(const uint8_t key[SIPHASH_KEY_BYTES], const void *data, size_t bytes);

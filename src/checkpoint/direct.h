// SPDX-License-Identifier: MIT
// Reads a file with O_DIRECT, one piece ahead of the caller: the disk stays busy during verification, and data that are
// read once do not fill the page cache.
#ifndef GSWBENCH_CHECKPOINT_DIRECT_H
#define GSWBENCH_CHECKPOINT_DIRECT_H

#include <stdint.h>

enum { DIRECT_PIECE = 4 << 20 };    // two ranks on a virtual disk: 2.6 GB/s, and 2.2 GB/s with 8 MiB

// Returns NULL if the file system rejects O_DIRECT.
struct direct *direct_open(const char *path);
void           direct_close(struct direct *direct);    // accepts NULL

// Announces the next range. Reads ahead beyond it only if it continues the previous one.
void direct_expect(struct direct *direct, int64_t begin, int64_t end);

// Waits for data at offset; returns the available bytes, 0 at the end of the file, or -1 with errno. Data are valid
// until the next call.
int64_t direct_take(struct direct *direct, int64_t offset, const char **data);

#endif

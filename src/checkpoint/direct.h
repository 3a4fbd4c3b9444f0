// SPDX-License-Identifier: MIT
// Reads a file past the system's memory of files (O_DIRECT), a piece ahead of who takes them: the disk is busy while
// the piece before is verified and copied, and nothing is kept that nobody reads again.
#ifndef GSWBENCH_CHECKPOINT_DIRECT_H
#define GSWBENCH_CHECKPOINT_DIRECT_H

#include <stdint.h>

enum { DIRECT_PIECE = 4 << 20 };    // two ranks read 2.6 GB/s of a virtual disk with it, 2.2 with 8 MiB

// NULL where it cannot be had, as on file systems that refuse O_DIRECT: read otherwise.
struct direct *direct_open(const char *path);
void           direct_close(struct direct *direct);    // NULL: nothing

// What is taken next, of which nothing beyond the end is read; but where it follows on what was expected before, so may
// what comes next.
void direct_expect(struct direct *direct, int64_t begin, int64_t end);

// Waits for the bytes from there on, and says how many there are, 0 at the end of the file; -1: errno says why not.
// Data are valid until the next call.
int64_t direct_take(struct direct *direct, int64_t offset, const char **data);

#endif

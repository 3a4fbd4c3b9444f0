// SPDX-License-Identifier: MIT
// What kernels move, counted for docs/performance.md. Counting costs time: it begins when it is first asked for.
#ifndef GSWBENCH_TESTS_PTX_TRAFFIC_H
#define GSWBENCH_TESTS_PTX_TRAFFIC_H

#include <stdint.h>

// Sectors of 32 bytes that were read and that a small cache did not have, as a multiprocessor's own would; bytes that
// were written; bytes that fed matrix instructions from shared memory, and the operations of these; and bytes that were
// copied beside kernels.
struct emulator_traffic {
    int64_t read_bytes, written_bytes, fed_bytes, operations, copied_bytes;
};
extern "C" struct emulator_traffic emulator_count(void);    // since the call before

namespace ptx
{
extern bool             the_count_runs;
extern emulator_traffic the_traffic;

void begin_count(void);    // of a launch, which finds the cache empty
void count_read(uint64_t address, int bytes);
}    // namespace ptx

#endif

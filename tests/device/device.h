// SPDX-License-Identifier: MIT
// Functions for tests on a GPU, or on an emulated one. A test is skipped with the reason if there is none.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "gswbench/backend.h"

enum { DEVICE_SKIPPED = 77 };

// Ends the test as skipped if there is no GPU.
static inline void device_require(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);    // so the output is kept if the test is killed
    status detected = backend_cuda.detect();
    if (failed(&detected)) {
        printf("skipped: %s\n", detected.text);
        exit(DEVICE_SKIPPED);
    }
}

// Ends the test as failed if the result is a failure.
static inline void device_check(status result)
{
    if (failed(&result)) {
        printf("FAIL %s\n", result.text);
        exit(1);
    }
}

// Prints the outcome of a check, and counts failed checks.
static int         device_failures;
static inline void report(bool passes, const char *what)
{
    printf("%s %s\n", passes ? "ok  " : "FAIL", what);
    device_failures += !passes;
}

static const struct backend_setup device_setup = {.threads = 2, .is_deterministic = true, .cache = ""};

// Sets the order in which an emulated GPU runs the threads of a block. 0 is ascending, 1 is descending, other values
// shuffle with this seed. On a real GPU this has no effect.
#ifdef GSWBENCH_EMULATED
void emulator_order(unsigned seed);
// Memory traffic of kernels and copies since the last call; ptx/ptx.h describes the fields.
struct emulator_traffic {
    int64_t read_bytes, written_bytes, fed_bytes, operations, copied_bytes;
};
struct emulator_traffic emulator_count(void);
#endif
static inline void device_order(unsigned seed)
{
#ifdef GSWBENCH_EMULATED
    emulator_order(seed);
#else
    (void)seed;
#endif
}

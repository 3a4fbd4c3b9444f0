// SPDX-License-Identifier: MIT
// Opens the device for tests, or reports why they are skipped.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "gswbench/backend.h"

enum { DEVICE_SKIPPED = 77 };

// Ends the program if there is no device. Algorithms are chosen by rule, so that tests are reproducible bit by bit.
static inline void device_require(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);    // a killed test keeps its output
    status detected = backend_cuda.detect();
    if (failed(&detected)) {
        printf("skipped: %s\n", detected.text);
        exit(DEVICE_SKIPPED);
    }
}

// Ends the program on failure.
static inline void device_check(status result)
{
    if (failed(&result)) {
        printf("FAIL %s\n", result.text);
        exit(1);
    }
}

// Prints a check, and counts it if it fails.
static int         device_failures;
static inline void report(bool passes, const char *what)
{
    printf("%s %s\n", passes ? "ok  " : "FAIL", what);
    device_failures += !passes;
}

static const struct backend_setup device_setup = {.threads = 2, .is_deterministic = true, .cache = ""};

// Sets the order in which the emulator runs the threads of a block. 0: ascending; 1: descending; else: shuffled with
// this seed. No effect on a real device.
#ifdef GSWBENCH_EMULATED
void emulator_order(unsigned seed);
// Traffic of kernels and copies since the last call (ptx/ptx.h).
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

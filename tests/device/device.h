// SPDX-License-Identifier: MIT
// What the tests on a device share: opening it, or saying why there is nothing to test.
#ifndef GSWBENCH_TESTS_DEVICE_H
#define GSWBENCH_TESTS_DEVICE_H

#include <stdio.h>
#include <stdlib.h>

#include "gswbench/backend.h"

enum { DEVICE_SKIPPED = 77 };

// Ends the program when there is no device. Algorithms are taken by rule, so that tests repeat bit for bit.
static inline void device_require(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);    // a killed test keeps what it found
    status detected = backend_cuda.detect();
    if (failed(&detected)) {
        printf("skipped: %s\n", detected.text);
        exit(DEVICE_SKIPPED);
    }
}

// Ends the program where something failed.
static inline void device_check(status result)
{
    if (failed(&result)) {
        printf("FAIL %s\n", result.text);
        exit(1);
    }
}

static const struct backend_setup device_setup = {.threads = 2, .is_deterministic = true, .cache = ""};

// In which order the threads of a block take their turns from now on. 0: rising; 1: falling; else: shuffled with this
// seed. A real device decides by itself.
#ifdef GSWBENCH_EMULATED
void emulator_order(unsigned seed);
#endif
static inline void device_order(unsigned seed)
{
#ifdef GSWBENCH_EMULATED
    emulator_order(seed);
#else
    (void)seed;
#endif
}

#endif

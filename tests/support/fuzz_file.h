// SPDX-License-Identifier: MIT
// Writes fuzzed bytes to a file, for fuzz targets of code that reads files.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// libFuzzer's entry points. Each target defines the second one.
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static inline void require(bool is_right)
{
    if (!is_right) {
        abort();
    }
}

// Returns a folder in memory that is removed with this process.
const char *fuzz_folder(void);
// Replaces the contents of the named file in it, and returns its path.
const char *fuzz_file(const char *name, const void *data, size_t bytes);

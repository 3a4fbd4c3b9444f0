// SPDX-License-Identifier: MIT
// Writes fuzzed bytes to a file, for fuzz targets whose code reads files.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Entry points of libFuzzer. Each fuzz target defines LLVMFuzzerTestOneInput.
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static inline void require(bool is_right)
{
    if (!is_right) {
        abort();
    }
}

// Returns a folder in memory, which is removed when this process ends.
const char *fuzz_folder(void);
// Replaces the contents of a file in this folder, and returns its path.
const char *fuzz_file(const char *name, const void *data, size_t bytes);

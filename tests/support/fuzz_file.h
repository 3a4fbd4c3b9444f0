// SPDX-License-Identifier: MIT
// Files with fuzzed bytes, for code that reads files.
#ifndef GSWBENCH_FUZZ_FILE_H
#define GSWBENCH_FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>

// libFuzzer's entry point, which each target defines.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

// Returns a folder in memory that is removed with this process.
const char *fuzz_folder(void);
// Replaces the contents of the named file in it, and returns its path.
const char *fuzz_file(const char *name, const void *data, size_t bytes);

#endif

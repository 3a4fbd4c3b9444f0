// SPDX-License-Identifier: MIT
// Bytes as a file, for what reads files.
#ifndef GSWBENCH_FUZZ_FILE_H
#define GSWBENCH_FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>

// libFuzzer's, which each target defines.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

// A folder of this process in memory, which goes with it.
const char *fuzz_folder(void);
// A file of that name in it, with these bytes instead of those that it had. Returns its path.
const char *fuzz_file(const char *name, const void *data, size_t bytes);

#endif

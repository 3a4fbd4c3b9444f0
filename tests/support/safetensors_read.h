// SPDX-License-Identifier: MIT
// Reads a tensor of a safetensors file by its name, for tests. The program reads slices of a checkpoint instead.
#pragma once

#include "gswbench/safetensors.h"

// Reads a tensor that must have this size. Verifies its checksum, if there is one, and rejects NaN and infinities, as
// the program does. Errors are EXIT_CHECKPOINT, and name file and tensor.
status safetensors_read(struct safetensors_reader *reader, const char *name, void *data, int64_t bytes);

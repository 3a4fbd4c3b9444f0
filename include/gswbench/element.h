// SPDX-License-Identifier: MIT
// Reads and writes single elements of an array in any format, for code that inspects data.
#pragma once

#include <stdint.h>

#include "gswbench/format.h"

float element_read(enum format format, const void *data, int64_t i);
// Rounds to nearest.
void element_write(enum format format, void *data, int64_t i, float number);

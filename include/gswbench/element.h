// SPDX-License-Identifier: MIT
// A single number of an array in any format that ops compute in, for whoever looks at data rather than computes.
#ifndef GSWBENCH_ELEMENT_H
#define GSWBENCH_ELEMENT_H

#include <stdint.h>

#include "gswbench/format.h"

float element_read(enum format format, const void *data, int64_t i);
// Rounded to the nearest.
void element_write(enum format format, void *data, int64_t i, float number);

#endif

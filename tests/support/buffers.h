// SPDX-License-Identifier: MIT
// Test operands in host memory: allocation, filling, and access by element.
#pragma once

#include "gswbench/backend.h"

// Zeroed memory that lives as long as the process; free_buffers returns it earlier.
void         *make_space(size_t bytes);
struct buffer make_buffer(enum format format, int64_t elements);
double        get(const struct buffer *buffer, int64_t i);
void          set(const struct buffer *buffer, int64_t i, double value);

// Approximately normal with this standard deviation.
struct buffer make_random(enum format format, int64_t elements, uint64_t seed, double deviation);
struct buffer make_tokens(int64_t elements, uint64_t seed, uint32_t bound);
void          free_buffers(struct buffer *buffers);

// SPDX-License-Identifier: MIT
// Test operands in host memory: allocates them, fills them, and accesses single elements.
#pragma once

#include "gswbench/backend.h"

// Returns zeroed memory, which is kept until the process ends or free_buffers releases it.
void         *make_space(size_t bytes);
struct buffer make_buffer(enum format format, int64_t elements);
double        get(const struct buffer *buffer, int64_t i);
void          set(const struct buffer *buffer, int64_t i, double value);

// Fills with approximately normal values of this standard deviation.
struct buffer make_random(enum format format, int64_t elements, uint64_t seed, double deviation);
struct buffer make_tokens(int64_t elements, uint64_t seed, uint32_t bound);
void          free_buffers(struct buffer *buffers);

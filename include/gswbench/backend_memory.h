// SPDX-License-Identifier: MIT
// Memory functions of backends without a device: they use host memory.
#ifndef GSWBENCH_BACKEND_MEMORY_H
#define GSWBENCH_BACKEND_MEMORY_H

#include "gswbench/backend.h"

void   *backend_memory_allocate(struct backend *backend, int64_t bytes);
void    backend_memory_release(struct backend *backend, void *data);
int64_t backend_memory_available(struct backend *backend);
void    backend_memory_copy(struct backend *backend, void *to, const void *from, int64_t bytes);
void    backend_memory_digest(struct backend *backend, const struct buffer *buffer, struct digest *digest);

#endif

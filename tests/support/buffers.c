// SPDX-License-Identifier: MIT
// Reads and writes elements of host memory in every format.
#include "buffers.h"

#include <stdlib.h>

#include "gswbench/format.h"
#include "gswbench/random.h"

// Keeps pointers to all allocations, because tests do not free them and LeakSanitizer would report them.
void *make_space(size_t bytes)
{
    static void **kept;
    static size_t count;
    kept        = realloc(kept, (count + 1) * sizeof(*kept));
    kept[count] = calloc(1, bytes);
    return kept[count++];
}

struct buffer make_buffer(enum format format, int64_t elements)
{
    void *data = make_space((size_t)format_bytes(format, elements + 1));
    return (struct buffer){.data = data, .elements = elements, .format = format};
}

double get(const struct buffer *buffer, int64_t i)
{
    return buffer->format == FORMAT_I32 ? (double)((const int32_t *)buffer->data)[i]
                                        : (double)element_read(buffer->format, buffer->data, i);
}

void set(const struct buffer *buffer, int64_t i, double value)
{
    if (buffer->format == FORMAT_I32) {
        ((int32_t *)buffer->data)[i] = isnan(value) ? INT32_MIN : (int32_t)value;    // a float cannot hold every int32
    } else {
        element_write(buffer->format, buffer->data, i, (float)value);
    }
}

struct buffer make_random(enum format format, int64_t elements, uint64_t seed, double deviation)
{
    struct buffer buffer = make_buffer(format, elements);
    for (int64_t i = 0; i < elements; i++) {
        set(&buffer, i, deviation * (double)random_normal(random_key(seed, 0), (uint64_t)i));
    }
    return buffer;
}

struct buffer make_tokens(int64_t elements, uint64_t seed, uint32_t bound)
{
    struct buffer buffer = make_buffer(FORMAT_I32, elements);
    for (int64_t i = 0; i < elements; i++) {
        set(&buffer, i, random_below(random_key(seed, 1), 0, (uint64_t)i, bound));
    }
    return buffer;
}

void free_buffers(struct buffer *buffers)
{
    for (int i = 0; i < OP_OPERANDS; i++) {
        free(buffers[i].data);
    }
}
